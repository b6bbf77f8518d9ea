"""Vectors of words alone, for a rehearsal that must not wait for a model."""

from collections.abc import Sequence

import numpy as np

from hierindex.cache.vectors import VectorCache
from hierindex.core.membership import Floats2d
from hierindex.embed.embedder import Embedder
from hierindex.progress import Progress, silent

N_DIMS = 384


class HashedEmbedder(Embedder):
    """The model's tokens and window, but vectors that count words: a thousand texts a second.

    Weinberger et al., Feature Hashing for Large Scale Multitask Learning (ICML 2009).
    """

    def embed(
        self,
        texts: Sequence[str],
        *,
        progress: Progress = silent,
        memory: VectorCache | None = None,
    ) -> Floats2d:
        """Unit vectors (n_texts, 384) float32; neither kept nor recalled."""
        from sklearn.feature_extraction.text import HashingVectorizer

        X = HashingVectorizer(n_features=N_DIMS).transform(texts).toarray()
        X[~X.any(axis=1), 0] = 1.0  # no word is a word, too
        progress("embed", len(texts), len(texts))
        return np.asarray(X, dtype=np.float32)

    async def aembed(
        self,
        texts: Sequence[str],
        *,
        progress: Progress = silent,
        memory: VectorCache | None = None,
    ) -> Floats2d:
        """As `embed`."""
        return self.embed(texts, progress=progress)
