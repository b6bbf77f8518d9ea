"""How much of what was found is read."""

from collections.abc import Callable, Sequence

from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.utils import get_tokenizer

from hierindex.errors import InputError

Count = Callable[[NodeWithScore], int]


def selected(
    found: Sequence[NodeWithScore], top_k: int | None = None, token_budget: int | None = None
) -> list[NodeWithScore]:
    """The best nodes, so many and so long at most, none of which says what others say.

    Filled best first; a node that does not fit is passed over. A parent all of whose children
    are taken says nothing that they do not: it makes room for the next best. Tokens are those of
    the text that a language model is shown, as LlamaIndex's global tokenizer counts them.

    Raises
    ------
    InputError
        If nodes were found and none fits.
    """
    count = _counter() if token_budget is not None else _free
    left, taken, room = list(found), list[NodeWithScore](), token_budget or 0
    while True:
        for node in left:
            if len(taken) == top_k:
                break
            if (n_tokens := count(node)) <= room:
                taken.append(node)
                room -= n_tokens
        ids, said = {node.node_id for node in taken}, told(taken)
        if not said:
            break
        left = [node for node in left if node.node_id not in ids]
        room += sum(count(node) for node in taken if node.node_id in said)
        taken = [node for node in taken if node.node_id not in said]
    if found and not taken:
        least = min(map(count, found))
        raise InputError(
            f"No retrieved node fits token_budget={token_budget}; the shortest has {least} tokens."
        )
    return [node for node in found if node.node_id in ids]


def told(found: Sequence[NodeWithScore]) -> set[str]:
    """Ids of the parents all of whose children are there as well."""
    ids = {node.node_id for node in found}
    families = ((node.node_id, node.node.child_nodes) for node in found)
    return {
        node_id
        for node_id, children in families
        if children and all(child.node_id in ids for child in children)
    }


def _counter() -> Count:
    """Counts the tokens of a node, each node's once, and only of those that come into question."""
    tokens, known = get_tokenizer(), dict[str, int]()

    def count(found: NodeWithScore) -> int:
        node_id = found.node_id
        if node_id not in known:
            known[node_id] = len(tokens(found.get_content(MetadataMode.LLM)))
        return known[node_id]

    return count


def _free(found: NodeWithScore) -> int:
    return 0
