"""Nodes that hold chunks of one document, and those that summarise it whole."""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from hierindex.hierarchy.nodes import Draft


def documents_alone(drafts: Iterable[Draft]) -> set[str]:
    """Return the documents of the nodes that have text of one document only."""
    return {d.record.documents[0] for d in drafts if len(d.record.documents) == 1}


def leaves_of_one_document(
    drafts: Sequence[Draft], documents: Container[str]
) -> dict[str, list[Draft]]:
    """Return the chunks under each node that holds chunks of a single document.

    Parameters
    ----------
    drafts : Sequence[Draft]
        All nodes that hold chunks of one of the documents alone, children before their parents.
        Others are ignored.
    documents : Container[str]

    Returns
    -------
    dict[str, list[Draft]]
        By the node's id, each chunk once, in order. A chunk is under itself.
    """
    single = {
        draft.id: draft
        for draft in drafts
        if len(draft.record.documents) == 1 and draft.record.documents[0] in documents
    }
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
    leaves : Mapping
        See `leaves_of_one_document`; other nodes stay as they are.
    """
    inside = [draft for draft in drafts if draft.id in leaves]
    n_leaves = Counter(draft.record.documents[0] for draft in inside if draft.record.level == 0)
    for draft in inside:
        document = draft.record.documents[0]
        is_highest = not any(parent in leaves for parent, _ in draft.record.parents)
        is_whole = is_highest and len(leaves[draft.id]) == n_leaves[document]
        draft.note(whole_document=document if is_whole else "")
