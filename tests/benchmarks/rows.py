"""Rows to cluster, and the clustering that ours is measured against."""

import hashlib
import importlib.util
import tempfile
import warnings
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from hierindex import Mixture

CACHE = Path(tempfile.gettempdir()) / "hierindex-benchmarks"
AS_PUBLISHED = Mixture(target_size=None, min_weight=0.1)  # groups by BIC, RAPTOR's overlap


def embedded(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors of texts by the bundled model, kept from run to run."""
    from hierindex import load_embed_model

    CACHE.mkdir(exist_ok=True)
    path = CACHE / f"{hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:16]}.npy"
    if not path.exists():
        vectors = np.array(load_embed_model().get_text_embedding_batch(list(texts)), np.float32)
        np.save(path, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    return np.load(path)


def realistic(X: NDArray[np.float32], n: int) -> NDArray[np.float32]:
    """`n` unit vectors, each between two real ones that stand near each other, with some noise."""
    rng = np.random.default_rng(0)
    one = rng.integers(len(X), size=n)
    other = (one + rng.integers(1, 6, size=n)) % len(X)
    share = rng.random((n, 1), dtype=np.float32)
    made = share * X[one] + (1 - share) * X[other]
    made += 0.02 * rng.standard_normal(made.shape, dtype=np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def load_pack() -> ModuleType:
    """The clustering of LlamaIndex's RAPTOR pack, by path: the package itself imports no more."""
    pack = distribution("llama-index-packs-raptor")
    path = pack.locate_file("llama_index/packs/raptor/clustering.py")
    spec = importlib.util.spec_from_file_location("pack_clustering", str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    return module
