"""What ways to put chunks on a plane keep of their neighbours and parents, and what they cost.

For 2,000 chunks of each index: trustworthiness at 10 neighbours, the share of the nearest ten that
are among the nearest ten on the plane, of these the share that has the chunk's parent at level 1
and at level 2 (of what there can be). Seconds are of
processor time on one thread, imports included, in a fresh process and the second time. What UMAP
compiles on first use, for half a minute, was compiled before. Ends with the seconds of the way that
the map takes, for more rows.

    python -W ignore tests/benchmarks/map.py INDEX...
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import numpy as np
from numpy.typing import NDArray

from hierindex import HierarchicalIndex
from hierindex.core.reduce import (
    nearest_rows,
    plane_coordinates,
    principal_coordinates,
    umap_coordinates,
)
from hierindex.retrieve.map import chunk_map

N, NEAREST, LEVELS = 2_000, 10, (1, 2)
HEAD = "| way | trust | nearest | level 1 | level 2 | first s | next s |"
Places = Callable[[NDArray], NDArray]


def isomap(X: NDArray) -> NDArray:
    from sklearn.manifold import Isomap

    return Isomap(n_neighbors=15).fit_transform(X)


def spectral(X: NDArray) -> NDArray:
    from sklearn.manifold import SpectralEmbedding

    return SpectralEmbedding(affinity="nearest_neighbors", n_neighbors=15).fit_transform(X)


def umap(X: NDArray) -> NDArray:
    from umap import UMAP

    return UMAP(metric="cosine", random_state=0, n_jobs=1).fit_transform(X)


def tsne(X: NDArray) -> NDArray:
    from sklearn.manifold import TSNE

    return TSNE(init="pca", random_state=0).fit_transform(X)


WAYS: dict[str, Places] = {
    "principal components": partial(principal_coordinates, n_dims=2),
    "spectral embedding": spectral,
    "Isomap": isomap,
    "UMAP as for clusters": partial(umap_coordinates, n_dims=2, n_neighbors=15, seed=0),
    "UMAP's defaults": umap,
    "t-SNE's defaults": tsne,
    "the map": plane_coordinates,
}


def timed(way: str, X: NDArray) -> tuple[NDArray, float, float]:
    """Return the places, and the seconds of both times."""
    seconds = []
    for _ in range(2):
        started = time.process_time()
        Z = WAYS[way](X)
        seconds.append(time.process_time() - started)
    return Z, *seconds


def apart(way: str, X: NDArray) -> tuple[NDArray, float, float]:
    """Return what `timed` does, in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(timed, way, X).result()


def nearest(X: NDArray) -> NDArray:
    return nearest_rows(X, NEAREST + 1)[0][:, 1:]


def share_of_parent(nearest: NDArray, parent: NDArray) -> float:
    """Return the share of neighbours that have the row's parent, of what there can be."""
    _, group, sizes = np.unique(parent, return_inverse=True, return_counts=True)
    most = np.minimum(sizes[group] - 1, NEAREST)
    same = (parent[nearest] == parent[:, None]).sum(axis=1)
    return (same[most > 0] / most[most > 0]).mean()


def figures(X: NDArray, Z: NDArray, parents: list[NDArray]) -> str:
    from sklearn.manifold import trustworthiness

    before, after = nearest(X), nearest(Z)
    kept = np.mean([np.isin(*rows).mean() for rows in zip(before, after, strict=True)])
    shares = " | ".join(f"{share_of_parent(after, parent):.3f}" for parent in parents)
    trust = trustworthiness(X, Z, n_neighbors=NEAREST)
    return f"{trust:.3f} | {kept:.3f} | {shares}"


def rows_of(uri: str) -> tuple[NDArray, list[NDArray]]:
    """Return the vectors of 2,000 chunks, and their parents at each level."""
    snapshot = HierarchicalIndex.open(uri).store.snapshot()
    maps = [chunk_map(snapshot, level, N) for level in LEVELS]
    ids = [point["id"] for point in maps[0]["points"]]
    found = snapshot.columns("id", "vector", node_ids=ids)
    vectors = dict(zip(found["id"], found["vector"], strict=True))
    of = [[point["parent"] for point in each["points"]] for each in maps]
    parents = [[-1 - i if p is None else p for i, p in enumerate(each)] for each in of]
    return np.array([vectors[i] for i in ids], np.float32), [np.array(each) for each in parents]


def main(uris: list[str]) -> None:
    """Print a table for each index, and the seconds of larger ones."""
    for uri in uris:
        X, parents = rows_of(uri)
        groups = " and ".join(f"{len(np.unique(parent)):,}" for parent in parents)
        print(f"\n{uri}: {len(X):,} chunks in {groups} groups\n\n{HEAD}")
        print("|---" * (HEAD.count("|") - 1) + "|")
        print(f"| all {X.shape[1]} dimensions | {figures(X, X, parents)} | | |")
        for way in WAYS:
            Z, first, second = apart(way, X)
            print(f"| {way} | {figures(X, Z, parents)} | {first:.1f} | {second:.1f} |", flush=True)
    rng = np.random.default_rng(0)
    for n in (2_000, 5_000):
        drawn = X[rng.integers(len(X), size=n)] + rng.normal(scale=0.03, size=(n, X.shape[1]))
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        print(f"{n:,} rows: {timed('the map', drawn.astype(np.float32))[2]:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
