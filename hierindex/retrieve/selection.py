"""Selection of the retrieved nodes that fit a number of results and a token budget."""

from collections.abc import Callable, Sequence

from hierindex.errors import InputError
from hierindex.models.tokenizer import llm_tokenizer
from hierindex.node import Found


def selected(
    found: Sequence[Found], top_k: int | None = None, token_budget: int | None = None
) -> list[Found]:
    """Select at most `top_k` nodes within the token budget, without redundant parents.

    Nodes are taken best first, and a node that does not fit is skipped. A parent whose children
    are all taken is dropped in favour of the next best node. Tokens are those of
    `MetadataMode.LLM`, counted by LlamaIndex's global tokenizer.

    Raises
    ------
    InputError
        If there are nodes and none fits the token budget.
    """
    n_tokens = dict.fromkeys((each.node.id for each in found), 0)
    if token_budget is not None:
        n_tokens = dict(zip(n_tokens, map(token_counter(), found), strict=True))
    rest, taken, room = list(found), list[Found](), token_budget or 0
    while True:
        for node in rest:
            if len(taken) == top_k:
                break
            if n_tokens[node.node.id] <= room:
                taken.append(node)
                room -= n_tokens[node.node.id]
        ids, redundant = {each.node.id for each in taken}, complete_parents(taken)
        if not redundant:
            break
        rest = [each for each in rest if each.node.id not in ids]
        room += sum(n_tokens[each] for each in redundant)
        taken = [each for each in taken if each.node.id not in redundant]
    if found and not taken:
        least = min(n_tokens.values())
        raise InputError(
            f"No retrieved node fits token_budget={token_budget}; the shortest has {least} tokens."
        )
    return [each for each in found if each.node.id in ids]


def complete_parents(found: Sequence[Found]) -> set[str]:
    """Return ids of the parents all of whose children are among the nodes."""
    ids = {node.id for node, _ in found}
    return {node.id for node, _ in found if node.children and ids.issuperset(node.children)}


def token_counter() -> Callable[[Found], int]:
    """Return a function that counts a node's tokens for an LLM."""
    tokens = llm_tokenizer()
    return lambda found: len(tokens(found.node.llm_text))
