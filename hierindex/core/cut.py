"""Cuts of a tree: rows that summarise it within a token budget, none an ancestor of another."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arrays import Floats1d, Ints1d
from hierindex.errors import InputError

Mask = NDArray[np.bool_]

N_STEPS = 64  # of the search for the rate; 10 are usual
CONCAVITY = 1 / 3  # 1/2 leaves out articles of squad, 1/4 leaves out topics of qmsum
SHARPNESS = 0.25  # from 0.5 on, fewer topics are told for a question about all of a meeting
CELLS = 4_000_000  # of the table that decides about the rows at the margin, 32 MB


class Forest:
    """Rows with their parents.

    Parameters
    ----------
    parent : (n,) int
        Row of each row's parent, -1 for a root.
    level : (n,) int
        0 for text; a parent's level is above those of its children.

    Raises
    ------
    InputError
        If a parent is not a row of a higher level.
    """

    def __init__(self, parent: Ints1d, level: Ints1d) -> None:
        n = len(parent)
        child = np.flatnonzero(parent != -1)
        if len(level) != n or not ((parent >= -1) & (parent < n)).all():
            raise InputError(f"Each of {len(level)} rows needs a parent from -1 to {n - 1}.")
        if (level[parent[child]] <= level[child]).any():
            raise InputError("A parent must be of a higher level than its children.")
        self.parent = parent
        self.level = np.asarray(level, dtype=np.int64)
        child = child[np.argsort(level[child], kind="stable")]
        self.is_text = self.level == 0
        """(n,) whether a row is text, which all other rows summarise."""
        self._children = np.split(child, np.flatnonzero(np.diff(level[child])) + 1)

    def summed(self, x: Floats1d) -> Floats1d:
        """Return the sum of x over each row and the rows under it, (n,) float64."""
        total = np.array(x, dtype=np.float64)
        for child in self._children:
            np.add.at(total, self.parent[child], total[child])
        return total

    def best(self, net: Floats1d) -> tuple[Floats1d, Floats1d]:
        """Return the highest sum of `net` over a cut from each row down, and from its children.

        Both are (n,) float64. A cut may be empty, so no sum is below 0.
        """
        best, below = np.zeros(len(net)), np.zeros(len(net))
        for child in self._children:  # a level at a time, the lowest first
            best[child] = np.maximum(net[child], below[child])
            np.add.at(below, self.parent[child], best[child])
        return np.maximum(net, below), below

    def under(self, marked: Mask) -> Mask:
        """Return which rows have a marked row above them."""
        found = np.zeros(len(marked), dtype=np.bool_)
        for child, parent in self.down():
            found[child] = found[parent] | marked[parent]
        return found

    def highest(self, marked: Mask) -> Ints1d:
        """Return the highest marked row above each row or at it, -1 if there is none; (n,)."""
        found = np.where(marked, np.arange(len(marked)), -1)
        for child, parent in self.down():
            found[child] = np.where(found[parent] == -1, found[child], found[parent])
        return found

    def down(self) -> Iterator[tuple[Ints1d, Ints1d]]:
        """Yield the rows of each level that have a parent, and their parents, from the top."""
        for child in reversed(self._children):
            yield child, self.parent[child]


def share_and_value(
    forest: Forest, n_tokens: Ints1d, cosine: Floats1d | None = None
) -> tuple[Floats1d, Floats1d]:
    """Return each row's share of the text, and the value of showing it.

    Parameters
    ----------
    forest : Forest
        At least one row of text. The other rows summarise the text below them.
    n_tokens : (n,) int
        At least 1.
    cosine : (n,) floats, optional
        Similarities to a question. Text then counts for more the more similar it is.

    Returns
    -------
    share : (n,) float64
        Of all text, by tokens; with a question, weighted by exp(z / 4), z the similarity in
        standard deviations from the mean. 0 for a summary without text below it.
    value : (n,) float64
        share * r ** (1 / 3), r the tokens of the row to those of the text under it, at most 1.

    Notes
    -----
    The value per token grows with the text that a row stands for, at every height of the tree.
    Without a question, the best cut within b tokens stands for a share of at least
    (n / b) ** (1 / 2) of the text if a root of n tokens stands for all of it, by Jensen's
    inequality.
    """
    is_text = forest.is_text
    text = np.where(is_text, n_tokens, 0).astype(np.float64)
    mass = text
    if cosine is not None:
        like = np.where(is_text, cosine - cosine[is_text].mean(), 0.0)
        mass = text * np.exp(SHARPNESS * like / max(float(cosine[is_text].std()), 1e-12))
    share = np.minimum(forest.summed(mass) / mass.sum(), 1.0)  # rounded up, it may be more
    ratio = np.minimum(n_tokens / np.maximum(forest.summed(text), 1.0), 1.0)
    return share, share * ratio**CONCAVITY


def select_cut(forest: Forest, n_tokens: Ints1d, value: Floats1d, budget: int) -> Ints1d:
    """Select rows of the highest total value within a budget, none of them above another.

    Parameters
    ----------
    forest : Forest
    n_tokens : (n,) int
        At least 1.
    value : (n,) floats
        A row of value 0 or less is not selected.
    budget : int
        Maximum sum of tokens.

    Returns
    -------
    (n_selected,) int64
        Ascending row indices.

    Notes
    -----
    The problem is a knapsack over a tree. Its Lagrangian relaxation, which pays for tokens at a
    rate instead of limiting them, is linear in n: from the leaves up, a row is better than the
    best cut under it or not. The rate is found by the secant method (Kelley's cutting planes).
    Then each row has a bound on what it costs to decide otherwise than the relaxation, and the
    rows that cost least are decided exactly by dynamic programming, as far as the table has
    room: all of them if n * budget is below 4 million. Otherwise the value is less than the
    optimum by at most the rate times the tokens that the relaxation leaves unused, and usually
    by nothing. A million rows of nine levels take 1 s.
    """
    value = np.where(n_tokens <= budget, value, 0.0)
    rate, base = _relaxed(forest, n_tokens, value, budget)
    order = np.lexsort((~base, _losses(forest, value - rate * n_tokens, base)))
    order = order[value[order] > 0]  # the least certain first
    kept = np.where(base[order], n_tokens[order], 0)  # tokens that a free row gives back
    room = budget - n_tokens[base].sum() + np.cumsum(kept)
    room = np.minimum(room, np.cumsum(n_tokens[order]))
    free = np.zeros(len(value), dtype=np.bool_)
    free[order[np.arange(2, len(order) + 2) * (room + 1) <= CELLS]] = True
    fixed = base & ~free
    free &= ~forest.under(fixed) & (forest.summed(fixed.astype(np.float64)) == 0)
    rows = np.flatnonzero(free)
    exact = _exact(forest.parent, rows, n_tokens, value, budget - int(n_tokens[fixed].sum()))
    return np.sort(np.concatenate([np.flatnonzero(fixed), exact]))


def _relaxed(forest: Forest, n_tokens: Ints1d, value: Floats1d, budget: int) -> tuple[float, Mask]:
    """Return the rate at which the best cut passes the budget, and a best cut that fits."""

    def best_at(rate: float) -> Mask:
        net = value - rate * n_tokens
        wanted: Mask = net > forest.best(net)[1]
        return wanted & ~forest.under(wanted)

    fits, over = np.zeros(len(value), dtype=np.bool_), best_at(0.0)
    rate = 0.0
    if n_tokens[over].sum() <= budget:
        return rate, over
    for _ in range(N_STEPS):
        more = n_tokens[over].sum() - n_tokens[fits].sum()
        rate = float((value[over].sum() - value[fits].sum()) / more)
        cut = best_at(rate)
        if (cut == fits).all() or (cut == over).all():
            break
        if n_tokens[cut].sum() <= budget:
            fits = cut
        else:
            over = cut
    return rate, fits


def _losses(forest: Forest, net: Floats1d, base: Mask) -> Floats1d:
    """Return a lower bound on the net value lost if a row is selected, or not, unlike in `base`."""
    best, below = forest.best(net)
    opened = np.zeros(len(net))  # lost if no row above is selected
    above = np.full(len(net), np.inf)  # lost if one is
    for child, parent in forest.down():
        opened[child] = opened[parent] + best[parent] - below[parent]
        selected = opened[parent] + best[parent] - net[parent]
        above[child] = np.minimum(above[parent], selected)
    return np.where(base, np.minimum(best - below, above), opened + best - net)


def _exact(parent: Ints1d, rows: Ints1d, n_tokens: Ints1d, value: Floats1d, budget: int) -> Ints1d:
    """Select the best cut of some rows, with a table of (n_rows + 1, budget + 1) values."""
    order, after = _preorder(parent, rows)
    cost, gain = n_tokens[order], value[order]
    budget = min(budget, int(cost.sum()))
    most = np.zeros((len(order) + 1, budget + 1))  # by the rows from i on, within b tokens
    for i in reversed(range(len(order))):
        most[i] = most[i + 1]
        taken = most[after[i], : max(0, budget + 1 - cost[i])] + gain[i]
        most[i, cost[i] :] = np.maximum(most[i, cost[i] :], taken)
    i, chosen = 0, list[int]()
    while i < len(order):
        if most[i, budget] > most[i + 1, budget]:
            chosen.append(order[i])
            budget -= int(cost[i])
            i = after[i]
        else:
            i += 1
    return np.array(chosen, dtype=np.int64)


def _preorder(parent: Ints1d, rows: Ints1d) -> tuple[Ints1d, list[int]]:
    """Order rows so that all rows under a row follow it; return where the next others begin."""
    among = np.zeros(len(parent) + 1, dtype=np.bool_)  # the last for -1
    among[rows] = among[-1] = True
    above = parent[rows]
    while not among[above].all():
        above = np.where(among[above], above, parent[above])
    children: dict[int, list[int]] = {row: [] for row in (-1, *rows.tolist())}
    for row, over in zip(rows.tolist(), above.tolist(), strict=True):
        children[over].append(row)
    order, after, coming = list[int](), dict[int, int](), children[-1][::-1]
    while coming:
        row = coming.pop()
        if row < 0:
            after[~row] = len(order)
        else:
            order.append(row)
            coming += [~row, *reversed(children[row])]
    return np.array(order, dtype=np.int64), [after[row] for row in order]
