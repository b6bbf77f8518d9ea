"""Calibration of an embedding model's similarities against random and matching pairs."""

from typing import NamedTuple

import numpy as np

from hierindex.core.arguments import Floats1d, Floats2d

TELLS = 1e-3  # smallest difference of matching and random pairs that is significant


class Scale(NamedTuple):
    """A scale of similarity: 0 is the mean of random pairs, 1 the mean of matching pairs.

    Values on it are comparable between embedding models.
    """

    chance: float
    pairs: float

    @classmethod
    def of(cls, known: Floats2d, *, nearest: bool = False) -> "Scale":
        """Calibrate a model on n > 1 matching pairs of texts.

        Parameters
        ----------
        known : (n, n) floats
            Similarities of texts to each other's counterparts; the matching pairs are on the
            diagonal.
        nearest : bool
            Whether 0 is the mean similarity to the nearest wrong counterpart instead of to all.
        """
        n, own = len(known), np.diag(known)
        if nearest:
            chance = np.where(np.eye(n, dtype=bool), -1, known).max(axis=1).mean()
        else:
            chance = (known.sum() - own.sum()) / (n * (n - 1))
        return cls(chance, own.mean())

    def shares(self, similarity: Floats1d) -> Floats1d:
        """Convert similarities to the scale; values may lie outside [0, 1].

        All values are 1 if matching pairs are no more similar than random ones.

        >>> scale = Scale.of(np.array([[0.7, 0.2], [0.2, 0.9]]))
        >>> scale.shares(np.array([0.2, 0.5, 0.8])).round(2).tolist()
        [0.0, 0.5, 1.0]
        """
        if self.pairs - self.chance < TELLS:
            return np.ones(len(similarity))
        return np.asarray((similarity - self.chance) / (self.pairs - self.chance))

    def similarity(self, share: float) -> float:
        """Convert a value on the scale to a similarity.

        >>> known = np.array([[0.7, 0.1], [0.3, 0.9]])
        >>> round(Scale.of(known, nearest=True).similarity(0.7), 2)  # 0.2 + 0.7 * (0.8 - 0.2)
        0.62
        """
        return float(self.chance + share * (self.pairs - self.chance))
