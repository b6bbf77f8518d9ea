"""Caps on a group's tokens and children, and merging of groups of one row."""

import sys
from dataclasses import dataclass

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d, is_whole, require
from hierindex.core.membership import (
    Membership,
    from_groups,
    groups_of,
    in_rows_of,
    one_hot,
    strongest_parent,
    weights_of,
)
from hierindex.core.reduce import principal_components
from hierindex.core.rows import canonical_order, one_thread


@dataclass(frozen=True)
class Caps:
    """Maximum tokens and rows of a group of two or more rows."""

    max_tokens: int
    max_children: int

    def __post_init__(self) -> None:
        tokens, children = self.max_tokens, self.max_children
        require(is_whole(tokens, 1), "max_tokens", "a whole number of at least 1", tokens)
        require(is_whole(children, 2), "max_children", "a whole number of at least 2", children)

    def hold(self, n_tokens: int, n_rows: int) -> bool:
        """Return whether rows fit the caps; a single row always does."""
        return n_rows == 1 or (n_rows <= self.max_children and n_tokens <= self.max_tokens)


UNBOUNDED = Caps(max_tokens=sys.maxsize, max_children=sys.maxsize)


def bounded(
    M: Membership,
    X: Floats2d,
    n_tokens: Ints1d,
    caps: Caps,
    *,
    document: Ints1d | None = None,
    heading: Ints1d | None = None,
) -> Membership:
    """Split groups that exceed the caps, then merge each group of one row into the nearest group.

    Parameters
    ----------
    M : (n_rows, n_groups) csr_array
    X : (n_rows, n_dims) unit vectors
    n_tokens : (n_rows,) int
        A row counts in full in each of its groups.
    caps : Caps
        Apply to every group of two or more rows, even of identical ones.
    document : (n_rows,) int, optional
        If given, groups are runs of rows in one document, and are split and merged in reading
        order. Otherwise groups are split along their first principal axis, and the result does
        not depend on the order of the rows.
    heading : (n_rows,) int, optional
        Level of the highest heading between a row and the one before it, 0 for none. With
        `document`, a row between two groups joins the one that the lower heading divides it from.

    Returns
    -------
    (n_rows, n_groups') csr_array
        If any two rows may share a group, n_groups' <= ceil(n_rows / 2), or with `document`
        two thirds of each document's rows, so a tree has O(log n_rows) levels.

    Notes
    -----
    A split costs O(n_rows * n_dims^2), the merges O(singles * groups * n_dims).
    """
    if document is not None:
        return _within(caps, M, X, n_tokens, _gaps(document, heading))
    order = canonical_order(X)
    with one_thread():  # or BLAS would wake all of them for each group that is split
        return in_rows_of(_within(caps, M[order], X[order], n_tokens[order], None), order)


def _gaps(document: Ints1d, heading: Ints1d | None) -> Floats1d:
    """Return the height of the boundary between rows i - 1 and i, as entry i of (n_rows + 1,).

    The height is infinite between documents, 1 at the highest headings, lower at lower
    headings, and 0 without a heading.
    """
    levels = np.zeros(len(document), dtype=np.int64) if heading is None else heading
    heights = np.where(levels > 0, 1 / np.maximum(levels, 1), 0.0)
    heights[1:][np.diff(document) != 0] = np.inf
    return np.concatenate([[np.inf], heights[1:], [np.inf]])


def _within(
    caps: Caps, M: Membership, X: Floats2d, n_tokens: Ints1d, gaps: Floats1d | None
) -> Membership:
    M = _join_singles(_split(M, X, n_tokens, caps, gaps), X, n_tokens, caps, gaps)
    is_soft = M.nnz > len(X)
    if is_soft and M.shape[1] > len(X) // 2:  # too much overlap for a tree of O(log n_rows) levels
        hard = one_hot(strongest_parent(M))
        M = _join_singles(hard, X, n_tokens, caps, gaps)
    return M


def _split(
    M: Membership, X: Floats2d, n_tokens: Ints1d, caps: Caps, gaps: Floats1d | None
) -> Membership:
    groups, weights = [], []
    for group, weight in zip(groups_of(M), weights_of(M), strict=True):
        for part in _parts(X[group], n_tokens[group], caps, in_order=gaps is not None):
            groups.append(group[part])
            weights.append(weight[part])
    return from_groups(groups, weights, len(X))


def _parts(X: Floats2d, n_tokens: Ints1d, caps: Caps, *, in_order: bool) -> list[Ints1d]:
    """Halve a group by its load until each part is within the caps; return row positions."""
    n_rows, tokens = len(X), int(n_tokens.sum())
    if caps.hold(tokens, n_rows):
        return [np.arange(n_rows)]
    order = np.arange(n_rows) if in_order else _principal_order(X)
    n_parts = max(-(-n_rows // caps.max_children), -(-tokens // caps.max_tokens))
    load = np.cumsum(1 / caps.max_children + n_tokens[order] / caps.max_tokens)
    half = load[-1] * (n_parts // 2) / n_parts
    cut = 1 + int(np.abs(load[:-1] - half).argmin())
    return [
        np.sort(side[part])
        for side in (order[:cut], order[cut:])
        for part in _parts(X[side], n_tokens[side], caps, in_order=in_order)
    ]


def _principal_order(X: Floats2d) -> Ints1d:
    """Return the order of rows along their first principal component; ties keep their order."""
    z = principal_components(X, 1)[:, 0].round(9)  # of equal rows, the last bits differ
    return np.argsort(z, kind="stable")


def _join_singles(
    M: Membership, X: Floats2d, n_tokens: Ints1d, caps: Caps, gaps: Floats1d | None
) -> Membership:
    """Merge each group of one row into the permitted group with the nearest centroid.

    In reading order the lower of the gaps before and after the row decides first.
    """
    groups, weights = groups_of(M), weights_of(M)
    size = np.array([len(group) for group in groups])  # (n_groups,); 0 after a merge
    tokens = np.array([n_tokens[group].sum() for group in groups])
    total = np.asarray(M.T @ X)  # (n_groups, n_dims)
    column = strongest_parent(M)
    for g in np.flatnonzero(size == 1):
        row = groups[g][0]
        if size[g] != 1:  # another single row has joined it
            continue
        if gaps is None:
            near, height = np.arange(len(groups)), np.zeros(len(groups))
        else:
            near, height = column.take([row - 1, row + 1], mode="wrap"), gaps[[row, row + 1]]
        fits = (near != g) & (size[near] > 0) & (height < np.inf)
        fits &= (size[near] < caps.max_children) & (tokens[near] + n_tokens[row] <= caps.max_tokens)
        if not fits.any():
            continue
        near = near[fits & (height == height[fits].min())]
        length = np.maximum(np.linalg.norm(total[near], axis=1), 1e-12)
        nearest = near[np.argmax(total[near] @ X[row] / length)]
        groups[nearest] = np.append(groups[nearest], groups[g])
        weights[nearest] = np.append(weights[nearest], weights[g])
        column[row] = nearest
        size[nearest], size[g] = size[nearest] + 1, 0
        tokens[nearest] += tokens[g]
        total[nearest] += total[g]
    kept = np.flatnonzero(size)
    return from_groups([groups[g] for g in kept], [weights[g] for g in kept], M.shape[0])
