"""Links from nodes to the parents of their groups."""

from collections import defaultdict
from collections.abc import Sequence

from hierindex.core.membership import Membership
from hierindex.hierarchy.earlier import EarlierTree
from hierindex.hierarchy.nodes import Draft


def link(
    nodes: Sequence[Draft],
    parents: list[Draft | str],
    M: Membership,
    level: int,
    earlier: EarlierTree | None,
) -> None:
    """Note each node's parents, strongest first, or the level that it passes up to.

    A node that would pass up, but has parents beside these groups, stays with those parents.
    """
    for i, draft in enumerate(nodes):
        row = slice(M.indptr[i], M.indptr[i + 1])
        columns, weights = M.indices[row], M.data[row]
        beside = earlier.parents_beside(draft) if earlier else {}
        passes = parents[columns[0]] is draft
        if passes and not beside:
            draft.note(level_max=level)
            continue
        total = sum(beside.values())
        if passes:
            parents[columns[0]] = next(iter(beside))
            weight_of = {parent: weight / total for parent, weight in beside.items()}
        else:
            weight_of = defaultdict(float, beside)
            for g, share in zip(columns, ((1 - total) * weights).tolist(), strict=True):
                weight_of[_id(parents[g])] += share
        pairs = sorted(weight_of.items(), key=lambda pair: -pair[1])
        known = {parent for parent, _ in draft.record.parents}
        if known != {parent for parent, _ in pairs}:
            draft.note(parents=tuple(pairs))
        draft.note(level_max=level - 1)


def _id(parent: Draft | str) -> str:
    return parent if isinstance(parent, str) else parent.id
