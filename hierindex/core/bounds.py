"""Caps on a group's tokens and children, and no group of one where it can be helped."""

from dataclasses import dataclass

import numpy as np

from hierindex.core.membership import (
    Floats2d,
    Ints1d,
    Membership,
    from_groups,
    groups_of,
    one_hot,
    strongest_parent,
    weights_of,
)
from hierindex.errors import InputError


@dataclass(frozen=True)
class Caps:
    """What a group of two rows or more may hold."""

    max_tokens: int
    max_children: int

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise InputError(f"max_tokens must be at least 1, got {self.max_tokens}.")
        if self.max_children < 2:
            raise InputError(f"max_children must be at least 2, got {self.max_children}.")

    def hold(self, n_tokens: int, n_rows: int) -> bool:
        """Whether `n_rows` rows of `n_tokens` in all may be one group; a single row always may."""
        return n_rows == 1 or (n_rows <= self.max_children and n_tokens <= self.max_tokens)


def bounded(
    M: Membership,
    X: Floats2d,
    n_tokens: Ints1d,
    *,
    max_tokens: int,
    max_children: int,
    document: Ints1d | None = None,
) -> Membership:
    """Split groups over the caps, then let groups of one join their nearest group.

    Parameters
    ----------
    M : (n_rows, n_groups) csr_array
    X : (n_rows, n_dims) unit vectors
    n_tokens : (n_rows,) int
        A row counts in full in each group that it belongs to.
    max_tokens, max_children : int
        Hold for every group of two rows or more, also when the data will not split.
    document : (n_rows,) int, optional
        Given, groups are runs of rows in one document and stay so: they are split and
        joined in reading order. Without it, they are split along their principal axis.

    Returns
    -------
    (n_rows, n_groups') csr_array
        Fewer groups than rows, unless no two rows may share a group: then one each.

    Notes
    -----
    O(n_rows * n_dims) for the splits, O(singles * groups * n_dims) for the joins.
    """
    caps = Caps(max_tokens, max_children)
    M = _split_groups(M, X, n_tokens, caps, in_order=document is not None)
    M = _join_singles(M, X, n_tokens, caps, document)
    is_soft = M.nnz > M.shape[0]
    if is_soft and M.shape[1] >= M.shape[0]:
        # Overlap alone made as many groups as rows: without overlap there are fewer.
        M = _join_singles(one_hot(strongest_parent(M)), X, n_tokens, caps, document)
    return M


def _split_groups(
    M: Membership, X: Floats2d, n_tokens: Ints1d, caps: Caps, *, in_order: bool
) -> Membership:
    groups, weights = [], []
    for group, weight in zip(groups_of(M), weights_of(M), strict=True):
        for part in _parts(X[group], n_tokens[group], caps, in_order=in_order):
            groups.append(group[part])
            weights.append(weight[part])
    return from_groups(groups, weights, M.shape[0])


def _parts(X: Floats2d, n_tokens: Ints1d, caps: Caps, *, in_order: bool) -> list[Ints1d]:
    """Positions of a group's rows, ascending, in parts within the caps, equal if possible."""
    if caps.hold(int(n_tokens.sum()), len(X)):
        return [np.arange(len(X))]
    order = np.arange(len(X)) if in_order else np.argsort(_principal_coordinate(X), kind="stable")
    filled = _filled_in_turn(n_tokens[order], caps)
    equal = np.array_split(order, len(filled))
    if all(caps.hold(int(n_tokens[part].sum()), len(part)) for part in equal):
        return [np.sort(part) for part in equal]
    return [np.sort(order[run]) for run in filled]


def _filled_in_turn(n_tokens: Ints1d, caps: Caps) -> list[slice]:
    """Runs that are each filled up to a cap before the next begins."""
    runs, start, held = [], 0, 0
    for i, n in enumerate(n_tokens.tolist()):
        if i > start and not caps.hold(held + n, i - start + 1):
            runs.append(slice(start, i))
            start, held = i, 0
        held += n
    return [*runs, slice(start, len(n_tokens))]


def _principal_coordinate(X: Floats2d) -> Floats2d:
    """Each row's coordinate on the axis of largest variance; its sign follows the first row."""
    centred = X - X.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    coordinate = centred @ axes[0]
    return np.asarray(np.round(-coordinate if coordinate[0] > 0 else coordinate, 9))


def _join_singles(
    M: Membership, X: Floats2d, n_tokens: Ints1d, caps: Caps, document: Ints1d | None
) -> Membership:
    """Add each group of one to the allowed group whose centroid is nearest."""
    groups, weights = groups_of(M), weights_of(M)
    size = np.array([len(group) for group in groups])  # (n_groups,); 0 once joined to another
    tokens = np.array([n_tokens[group].sum() for group in groups])
    total = np.asarray(M.T @ X)  # (n_groups, n_dims)
    column = strongest_parent(M)
    for g in np.flatnonzero(size == 1):
        if size[g] != 1:
            continue
        row = groups[g][0]
        near = np.arange(len(groups)) if document is None else column[_neighbours(row, document)]
        near = near[(near != g) & (size[near] > 0)]
        fits = (size[near] < caps.max_children) & (tokens[near] + n_tokens[row] <= caps.max_tokens)
        near = near[fits]
        if len(near) == 0:
            continue
        length = np.maximum(np.linalg.norm(total[near], axis=1), 1e-12)
        nearest = near[np.argmax(total[near] @ X[row] / length)]
        groups[nearest] = np.append(groups[nearest], groups[g])
        weights[nearest] = np.append(weights[nearest], weights[g])
        column[row] = nearest
        size[nearest], size[g] = size[nearest] + 1, 0
        tokens[nearest] += tokens[g]
        total[nearest] += total[g]
    kept = np.flatnonzero(size)
    orders = [np.argsort(groups[g]) for g in kept]
    return from_groups(
        [groups[g][order] for g, order in zip(kept, orders, strict=True)],
        [weights[g][order] for g, order in zip(kept, orders, strict=True)],
        M.shape[0],
    )


def _neighbours(row: int, document: Ints1d) -> Ints1d:
    """The rows before and after `row` in its document."""
    near = np.array([r for r in (row - 1, row + 1) if 0 <= r < len(document)], dtype=np.int64)
    return np.asarray(near[document[near] == document[row]])
