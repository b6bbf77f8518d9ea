"""How much of what was found is read."""

import sys
from collections.abc import Sequence

from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.utils import get_tokenizer

from hierindex.errors import InputError


def selected(
    found: Sequence[NodeWithScore], top_k: int | None = None, token_budget: int | None = None
) -> list[NodeWithScore]:
    """The best nodes, so many and so long at most, none of which says what others say.

    Filled best first; a node that does not fit is passed over. A parent all of whose children
    are taken says nothing that they do not: it makes room for the next best.

    Parameters
    ----------
    found : Sequence[NodeWithScore]
        Best first.
    top_k : int, optional
        Nodes at most.
    token_budget : int, optional
        Tokens at most of all together, as LlamaIndex's global tokenizer counts the text that a
        language model is shown.

    Raises
    ------
    InputError
        If nodes were found and none fits.
    """
    left = _measured(found, token_budget)
    while True:
        taken = _filled(left, top_k, token_budget)
        ids = {node.node.node_id for node, _ in taken}
        told = [id(node) for node, _ in taken if _is_told(node, ids)]
        if not told:
            return [node for node, _ in taken]
        left = [(node, n_tokens) for node, n_tokens in left if id(node) not in told]


def _measured(
    found: Sequence[NodeWithScore], token_budget: int | None
) -> list[tuple[NodeWithScore, int]]:
    if token_budget is None:
        return [(node, 0) for node in found]
    count = get_tokenizer()
    texts = [node.node.get_content(MetadataMode.LLM) for node in found]
    measured = [(node, len(count(text))) for node, text in zip(found, texts, strict=True)]
    least = min((n_tokens for _, n_tokens in measured), default=0)
    if least > token_budget:
        raise InputError(f"token_budget must be at least {least} here, got {token_budget}.")
    return measured


def _filled(
    measured: Sequence[tuple[NodeWithScore, int]], top_k: int | None, token_budget: int | None
) -> list[tuple[NodeWithScore, int]]:
    left = sys.maxsize if token_budget is None else token_budget
    taken: list[tuple[NodeWithScore, int]] = []
    for node, n_tokens in measured:
        if len(taken) == top_k:
            break
        if n_tokens <= left:
            taken.append((node, n_tokens))
            left -= n_tokens
    return taken


def _is_told(found: NodeWithScore, ids: set[str]) -> bool:
    children = found.node.child_nodes
    return bool(children) and all(child.node_id in ids for child in children or ())
