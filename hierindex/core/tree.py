"""The tree: a stack of memberships, grown level by level."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from hierindex.core.membership import Membership
from hierindex.core.rows import Rows

Grouper = Callable[[Rows], Membership | None]
"""Groups a level's rows; returns None when it is done."""


@dataclass(frozen=True)
class Tree:
    """Memberships of each level's rows in the next level's: `layers[l]` is (n_l, n_{l+1}).

    A group of one row is no new node: the row itself passes up. Only a first layer by document
    gives every document a node.
    """

    layers: tuple[Membership, ...]


def grow_tree(
    leaves: Rows, groupers: Sequence[Grouper], *, max_levels: int | None = None
) -> Generator[Membership, Rows, Tree]:
    """Apply each grouper repeatedly until it is done, then the next one.

    A generator that yields a level's membership, receives the next level's rows and returns the
    tree. The caller makes rows from groups, in column order: a summary and its embedding, or a
    centroid. If the rows are part of a level (`Rows.is_part`), others may come in on the way.

    Parameters
    ----------
    leaves : Rows
    groupers : sequence of Grouper
        A grouper is done if it returns None or as many groups as rows. The latter is allowed on
        the leaves, for one summary per short document, and for a part of a level.
    max_levels : int, optional
        Levels above the leaves; unlimited by default.

    Returns
    -------
    Tree
        As the value of StopIteration.

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
            if M is None or (M.shape[1] >= len(rows) and layers and not rows.is_part):
                break
            layers.append(M)
            rows = yield M
    return Tree(tuple(layers))
