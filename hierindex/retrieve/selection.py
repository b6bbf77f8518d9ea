"""Selection of the retrieved nodes that fit a number of results and a token budget."""

from collections.abc import Callable, Sequence

from hierindex.errors import InputError
from hierindex.llm.tokenizer import llm_tokenizer
from hierindex.node import Found

Count = Callable[[Found], int]


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
    count = token_counter() if token_budget is not None else _free
    rest, taken, room = list(found), list[Found](), token_budget or 0
    while True:
        for node in rest:
            if len(taken) == top_k:
                break
            if (n_tokens := count(node)) <= room:
                taken.append(node)
                room -= n_tokens
        ids, redundant = {each.node.id for each in taken}, complete_parents(taken)
        if not redundant:
            break
        rest = [each for each in rest if each.node.id not in ids]
        room += sum(count(each) for each in taken if each.node.id in redundant)
        taken = [each for each in taken if each.node.id not in redundant]
    if found and not taken:
        least = min(map(count, found))
        raise InputError(
            f"No retrieved node fits token_budget={token_budget}; the shortest has {least} tokens."
        )
    return [each for each in found if each.node.id in ids]


def complete_parents(found: Sequence[Found]) -> set[str]:
    """Return ids of the parents all of whose children are among the nodes."""
    ids = {node.id for node, _ in found}
    return {node.id for node, _ in found if node.children and ids.issuperset(node.children)}


def token_counter() -> Count:
    """Return a function that counts a node's tokens for an LLM, once for each node."""
    tokens, known = llm_tokenizer(), dict[str, int]()

    def count(found: Found) -> int:
        node = found.node
        if node.id not in known:
            known[node.id] = len(tokens(node.llm_text))
        return known[node.id]

    return count


def _free(found: Found) -> int:
    return 0
