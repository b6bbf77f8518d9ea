"""The three ways to group a level, as `grow_tree` takes them."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import block_diag, csr_array

from hierindex.core.bounds import Caps, bounded
from hierindex.core.membership import Membership, one_hot
from hierindex.core.mixture import mixture
from hierindex.core.segments import Rule, document_starts, segment
from hierindex.core.tree import Rows


@dataclass(frozen=True)
class BySegment:
    """Consecutive rows of a document, level after level until each document is one row."""

    rule: Rule
    caps: Caps

    def __call__(self, rows: Rows) -> Membership | None:
        """Segments within the caps; None where none holds two rows."""
        M = bounded(
            segment(rows.X, rows.document, rule=self.rule),
            rows.X,
            rows.n_tokens,
            max_tokens=self.caps.max_tokens,
            max_children=self.caps.max_children,
            document=rows.document,
        )
        return M if M.shape[1] < len(rows) else None


@dataclass(frozen=True)
class ByMixture:
    """Near rows anywhere, or anywhere in their document, until one row is left."""

    seed: int
    caps: Caps
    per_document: bool = False

    def __call__(self, rows: Rows) -> Membership | None:
        """Clusters within the caps, one where all rows fit; None where none holds two rows."""
        if not self.per_document:
            M = self._grouped(rows)
        else:
            starts = [*document_starts(rows.document), len(rows)]
            blocks = [
                self._grouped(Rows(rows.X[a:b], rows.n_tokens[a:b], rows.document[a:b]))
                for a, b in pairwise(starts)
            ]
            M = _block_diagonal(blocks)
        return M if M.shape[1] < len(rows) else None

    def _grouped(self, rows: Rows) -> Membership:
        if self.caps.hold(int(rows.n_tokens.sum()), len(rows)):
            return one_hot(np.zeros(len(rows), dtype=np.int64))
        return bounded(
            mixture(rows.X, seed=self.seed),
            rows.X,
            rows.n_tokens,
            max_tokens=self.caps.max_tokens,
            max_children=self.caps.max_children,
        )


@dataclass(frozen=True)
class ByDocument:
    """All leaves of a document, whatever their number; done after one level."""

    def __call__(self, rows: Rows) -> Membership | None:
        """One group for each document; None above the leaves."""
        return one_hot(rows.document) if rows.level == 0 else None


def _block_diagonal(blocks: list[Membership]) -> Membership:
    return csr_array(block_diag(blocks, format="csr"))
