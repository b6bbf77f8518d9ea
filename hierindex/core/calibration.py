"""How an embedding model's similarities are read: against chance, by pairs that are known."""

from typing import NamedTuple

import numpy as np

from hierindex.core.membership import Floats1d, Floats2d

TELLS = 1e-3  # cosine by which known pairs are nearer than chance, or the model cannot tell


class Scale(NamedTuple):
    """A scale from 0, the similarity that chance brings, to 1, that of known pairs.

    Shares of it are the same whatever the model's unit and zero of similarity are.
    """

    chance: float
    pairs: float

    @classmethod
    def of(cls, known: Floats2d, *, nearest: bool = False) -> "Scale":
        """The scale of a model.

        Parameters
        ----------
        known : (n, n) floats
            Similarities of known texts, the rows, to those they belong to: text i is the one
            that belongs to row i, and n > 1.
        nearest : bool
            Whether chance is the mean similarity to the nearest of the other texts, not to all
            of them.
        """
        n, own = len(known), np.diag(known)
        if nearest:
            chance = np.where(np.eye(n, dtype=bool), -1, known).max(axis=1).mean()
        else:
            chance = (known.sum() - own.sum()) / (n * (n - 1))
        return cls(chance, own.mean())

    def shares(self, similarity: Floats1d) -> Floats1d:
        """Where similarities lie on the scale, of any size.

        All 1 where known pairs are no nearer than chance: such a model cannot tell.

        >>> scale = Scale.of(np.array([[0.7, 0.2], [0.2, 0.9]]))
        >>> scale.shares(np.array([0.2, 0.5, 0.8])).round(2).tolist()
        [0.0, 0.5, 1.0]
        """
        if self.pairs - self.chance < TELLS:
            return np.ones(len(similarity))
        return np.asarray((similarity - self.chance) / (self.pairs - self.chance))

    def similarity(self, share: float) -> float:
        """The similarity at a share of the scale.

        >>> known = np.array([[0.7, 0.1], [0.3, 0.9]])
        >>> round(Scale.of(known, nearest=True).similarity(0.7), 2)  # 0.2 + 0.7 * (0.8 - 0.2)
        0.62
        """
        return float(self.chance + share * (self.pairs - self.chance))
