"""The three ways to group a level, as `grow_tree` takes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hierindex.core.bounds import Caps, bounded
from hierindex.core.membership import (
    Ints1d,
    Membership,
    from_groups,
    groups_of,
    one_hot,
    weights_of,
)
from hierindex.core.mixture import DEFAULT, Mixture, mixture
from hierindex.core.partition import MAX_POOL, partition
from hierindex.core.rows import Rows
from hierindex.core.segments import Rule, document_starts, segment


@dataclass(frozen=True)
class BySegment:
    """Consecutive rows of a document, level after level until each document is one row."""

    rule: Rule
    caps: Caps

    def __call__(self, rows: Rows) -> Membership | None:
        """Segments within the caps; None where none holds two rows."""
        X, n_tokens, document = rows.X, rows.n_tokens, rows.document
        M = segment(X, document, rule=self.rule, n_tokens=n_tokens, caps=self.caps)
        M = bounded(M, X, n_tokens, self.caps, document=document)
        return M if M.shape[1] < len(rows) else None


@dataclass(frozen=True)
class ByMixture:
    """Near rows anywhere, or anywhere in their document, until one row is left.

    More than `max_pool` rows are first split into pools of near rows.
    """

    seed: int
    caps: Caps
    model: Mixture = DEFAULT
    per_document: bool = False
    max_pool: int = MAX_POOL

    def __call__(self, rows: Rows) -> Membership | None:
        """Clusters within the caps, one where all rows fit; None where none holds two rows."""
        if not self.per_document:
            M = self._clusters(rows)
        else:
            documents = np.split(np.arange(len(rows)), document_starts(rows.document)[1:])
            M = _each(documents, rows, self._clusters)
        return M if M.shape[1] < len(rows) else None

    def _clusters(self, rows: Rows) -> Membership:
        if self.caps.hold(int(rows.n_tokens.sum()), len(rows)):
            return one_hot(np.zeros(len(rows), dtype=np.int64))
        if len(rows) <= self.max_pool:
            M = mixture(rows.X, model=self.model, seed=self.seed)
        else:  # rows left alone may then join a group of another pool
            pool = partition(rows.X, max_rows=self.max_pool, seed=self.seed)
            M = _each(groups_of(one_hot(pool)), rows, self._clusters)
        return bounded(M, rows.X, rows.n_tokens, self.caps)


@dataclass(frozen=True)
class ByDocument:
    """All leaves of a document, whatever their number; done after one level."""

    def __call__(self, rows: Rows) -> Membership | None:
        """One group for each document; None above the leaves."""
        return one_hot(rows.document) if rows.level == 0 else None


def _each(parts: Sequence[Ints1d], rows: Rows, grouped: Callable[[Rows], Membership]) -> Membership:
    """Each part of the rows grouped by itself."""
    groups, weights = [], []
    for part in parts:
        M = grouped(rows[part])
        groups += [part[group] for group in groups_of(M)]
        weights += weights_of(M)
    return from_groups(groups, weights, len(rows))
