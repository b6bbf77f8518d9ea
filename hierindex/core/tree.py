"""The tree: memberships stacked on each other, grown level by level."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from hierindex.core.membership import Membership
from hierindex.core.rows import Rows

Grouper = Callable[[Rows], Membership | None]
"""Groups a level's rows into the next level's; None when it has nothing left to do."""


@dataclass(frozen=True)
class Tree:
    """`layers[l]`, (n_l, n_{l+1}), is the membership of level l's rows in level l + 1's.

    A group of one row is no new node: the row passes up and stands for its own parent.
    The exception is a first layer by document, where every document has a node.
    """

    layers: tuple[Membership, ...]

    @property
    def n_levels(self) -> int:
        """Number of cuts, the leaves included."""
        return len(self.layers) + 1


def grow_tree(
    leaves: Rows, groupers: Sequence[Grouper], *, max_levels: int | None = None
) -> Generator[Membership, Rows, Tree]:
    """Apply each grouper level after level until it is done, then the next, up to one root.

    A generator: it yields a level's membership, is sent the rows of the groups (one each,
    in column order), and returns the tree. What turns groups into rows, a summary and its
    embedding or a centroid, is the driver's.

    Parameters
    ----------
    leaves : Rows
    groupers : Sequence[Grouper]
        A grouper is done when it says so by None or does not shrink its rows; only on the
        leaves may it give each row a group of its own (one summary per short document).
    max_levels : int, optional
        Levels above the leaves; no bound by default.

    Returns
    -------
    Tree
        Sent as the generator's value.

    Examples
    --------
    >>> import numpy as np
    >>> from hierindex.core.membership import one_hot
    >>> pairs = lambda rows: one_hot(np.arange(len(rows)) // 2)
    >>> rows = lambda n: Rows(np.ones((n, 1)), np.ones(n, int), np.zeros(n, int))
    >>> growth = grow_tree(rows(4), [pairs])
    >>> growth.send(None).shape, growth.send(rows(2)).shape
    ((4, 2), (2, 1))
    """
    rows, layers = leaves, list[Membership]()
    for grouper in groupers:
        while len(rows) > 0 and (max_levels is None or len(layers) < max_levels):
            M = grouper(rows)
            if M is None or (M.shape[1] >= len(rows) and layers):
                break
            layers.append(M)
            rows = yield M
    return Tree(tuple(layers))
