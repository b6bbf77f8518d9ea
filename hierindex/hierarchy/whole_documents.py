"""Nodes that hold chunks of one document, and those that summarise it whole."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from hierindex.hierarchy.nodes import Draft


def leaves_of_one_document(drafts: Sequence[Draft]) -> dict[str, list[Draft]]:
    """Return the chunks under each node that holds chunks of a single document.

    Parameters
    ----------
    drafts : Sequence[Draft]
        All nodes of a tree, children before their parents.

    Returns
    -------
    dict[str, list[Draft]]
        By the node's id, each chunk once, in order. A chunk is under itself.
    """
    single = {d.node.node_id: d for d in drafts if len(d.record.documents) == 1}
    leaves = {i: {i: draft} for i, draft in single.items() if draft.record.level == 0}
    for node_id, draft in single.items():
        for parent, _ in draft.record.parents:
            if parent in single:
                leaves.setdefault(parent, {}).update(leaves[node_id])
    return {node_id: list(under.values()) for node_id, under in leaves.items()}


def note_whole_documents(drafts: Sequence[Draft], leaves: Mapping[str, Collection[Draft]]) -> None:
    """Set `whole_document` on the highest node that holds all chunks of one document only.

    Parameters
    ----------
    drafts : Sequence[Draft]
        All nodes of a tree.
    leaves : Mapping
        See `leaves_of_one_document`.
    """
    n_leaves = Counter(draft.record.documents[0] for draft in drafts if draft.record.level == 0)
    for draft in drafts:
        under = leaves.get(draft.node.node_id, ())
        document = draft.record.documents[0]
        is_highest = not any(parent in leaves for parent, _ in draft.record.parents)
        if is_highest and len(under) == n_leaves[document]:
            draft.note(whole_document=document)
