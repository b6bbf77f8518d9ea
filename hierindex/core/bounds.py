"""Caps on a group's tokens and children, and merging of groups of one row."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d, is_whole, require
from hierindex.core.membership import (
    Membership,
    Rows,
    canonical_order,
    from_groups,
    in_rows_of,
    one_hot,
    one_thread,
    strongest_parent,
    weighted_groups,
)
from hierindex.core.reduce import principal_components


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


def bounded(M: Membership, rows: Rows, caps: Caps, *, in_order: bool = False) -> Membership:
    """Split groups that exceed the caps, then merge each group of one row into the nearest group.

    Parameters
    ----------
    M : (n_rows, n_groups) csr_array
    rows : Rows
        A row's tokens count in full in each of its groups.
    caps : Caps
        Apply to every group of two or more rows, even of identical ones.
    in_order : bool
        Whether groups are runs of rows in one document, which are split and merged in reading
        order; a row between two groups joins the one that the lower heading divides it from.
        Otherwise groups are split along their first principal axis, and the result does not depend
        on the order of the rows.

    Returns
    -------
    (n_rows, n_groups') csr_array
        If any two rows may share a group, n_groups' <= ceil(n_rows / 2), or in reading order two
        thirds of each document's rows, so a tree has O(log n_rows) levels.

    Notes
    -----
    A split costs O(n_rows * n_dims^2), the merges O(singles * groups * n_dims).
    """
    if in_order:
        return _within(caps, M, rows, _gaps(rows))
    order = canonical_order(rows.X)
    with one_thread():  # or BLAS would wake all of them for each group that is split
        return in_rows_of(_within(caps, M[order], rows[order], None), order)


def _gaps(rows: Rows) -> Floats1d:
    """Return the height of the boundary between rows i - 1 and i, as entry i of (n_rows + 1,).

    The height is infinite between documents, 1 at the highest headings, lower at lower
    headings, and 0 without a heading.
    """
    heights = np.where(rows.heading > 0, 1 / np.maximum(rows.heading, 1), 0.0)
    heights[1:][np.diff(rows.document) != 0] = np.inf
    return np.concatenate([[np.inf], heights[1:], [np.inf]])


def _within(caps: Caps, M: Membership, rows: Rows, gaps: Floats1d | None) -> Membership:
    """Return groups within the caps; in reading order if there are `gaps`."""
    parts = partial(_parts, caps=caps, in_order=gaps is not None)
    split = from_groups(
        (
            (group[part], weight[part])
            for group, weight in weighted_groups(M)
            for part in parts(rows.X[group], rows.n_tokens[group])
        ),
        len(rows),
    )
    M = _join_singles(split, rows, caps, gaps)
    is_soft = M.nnz > len(rows)
    if is_soft and M.shape[1] > len(rows) // 2:  # too much overlap for a tree of O(log n) levels
        M = _join_singles(one_hot(strongest_parent(M)), rows, caps, gaps)
    return M


def _parts(X: Floats2d, n_tokens: Ints1d, caps: Caps, in_order: bool) -> list[Ints1d]:
    """Halve a group by its load until each part is within the caps; return row positions."""
    n_rows, tokens = len(X), int(n_tokens.sum())
    if caps.hold(tokens, n_rows):
        return [np.arange(n_rows)]
    order = np.arange(n_rows)
    if not in_order:  # along the first principal axis; of equal rows, the last bits differ
        order = np.argsort(principal_components(X, 1)[:, 0].round(9), kind="stable")
    n_parts = max(-(-n_rows // caps.max_children), -(-tokens // caps.max_tokens))
    load = np.cumsum(1 / caps.max_children + n_tokens[order] / caps.max_tokens)
    half = load[-1] * (n_parts // 2) / n_parts
    cut = 1 + int(np.abs(load[:-1] - half).argmin())
    return [
        np.sort(side[part])
        for side in (order[:cut], order[cut:])
        for part in _parts(X[side], n_tokens[side], caps, in_order)
    ]


def _join_singles(M: Membership, rows: Rows, caps: Caps, gaps: Floats1d | None) -> Membership:
    """Merge each group of one row into the permitted group with the nearest centroid.

    In reading order the lower of the gaps before and after the row decides first.
    """
    groups = weighted_groups(M)
    size = np.array([len(group) for group, _ in groups])  # (n_groups,); 0 after a merge
    tokens = np.array([rows.n_tokens[group].sum() for group, _ in groups])
    total = np.asarray(M.T @ rows.X)  # (n_groups, n_dims)
    column = strongest_parent(M)
    near, height = np.arange(len(groups)), np.zeros(len(groups))
    for g in np.flatnonzero(size == 1):
        row = groups[g][0][0]
        if size[g] != 1:  # another single row has joined it
            continue
        if gaps is not None:
            near, height = column.take([row - 1, row + 1], mode="wrap"), gaps[[row, row + 1]]
        fits = (near != g) & (size[near] > 0) & (height < np.inf)
        fits &= size[near] < caps.max_children
        fits &= tokens[near] + tokens[g] <= caps.max_tokens
        if not fits.any():
            continue
        best = near[fits & (height == height[fits].min())]
        length = np.maximum(np.linalg.norm(total[best], axis=1), 1e-12)
        nearest = best[np.argmax(total[best] @ rows.X[row] / length)]
        (group, weight), (_, share) = groups[nearest], groups[g]
        groups[nearest] = np.append(group, row), np.append(weight, share)
        column[row] = nearest
        size[nearest], size[g] = size[nearest] + 1, 0
        tokens[nearest] += tokens[g]
        total[nearest] += total[g]
    return from_groups([groups[g] for g in np.flatnonzero(size)], len(rows))
