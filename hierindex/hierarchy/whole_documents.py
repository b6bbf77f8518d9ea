"""Marking of the nodes that summarise one whole document."""

from collections import Counter
from collections.abc import Sequence

from hierindex.hierarchy.nodes import Draft


def note_whole_documents(drafts: Sequence[Draft]) -> None:
    """Set `whole_document` on the highest node that holds all chunks of one document only.

    Parameters
    ----------
    drafts : Sequence[Draft]
        All nodes of a tree, children before their parents.
    """
    single = {d.node.node_id: d for d in drafts if len(d.record.documents) == 1}
    leaves = {i: {i} for i, draft in single.items() if draft.record.level == 0}
    n_leaves = Counter(single[i].record.documents[0] for i in leaves)
    for node_id, draft in single.items():
        above = [parent for parent, _ in draft.record.parents if parent in single]
        for parent in above:
            leaves.setdefault(parent, set()).update(leaves[node_id])
        document = draft.record.documents[0]
        if not above and len(leaves[node_id]) == n_leaves[document]:
            draft.note(whole_document=document)
