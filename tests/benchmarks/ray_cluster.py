"""Builds on a Ray cluster of this machine: two workers beside one.

Documents are made up: sentences of words that are drawn at random, and vectors that are the sums of
their words' vectors. "workers" builds them with one worker and with two, of which each waits 200 ms
for each batch of 16 texts, as for a model on a device of its own. "grow" are the seconds from the
last file that is read until the trees of all documents have grown; "build" are all. "pools" does
the same by `raptor`, whose chunks are in pools if they are more than 10,000.

Usage: python tests/benchmarks/ray_cluster.py workers [N_CHUNKS]   (by default 4000)
       python tests/benchmarks/ray_cluster.py pools [N_CHUNKS]   (by default 20000)
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

TESTS = str(Path(__file__).parents[1])
sys.path.append(TESTS)  # for the made-up model, here and in workers
from fakes import HashingEmbedding  # noqa: E402

from hierindex import HierarchicalIndex, RaptorHierarchy, SemanticHierarchy  # noqa: E402
from hierindex.scale import RayEngine  # noqa: E402

LATENCY, BATCH = 0.2, 16  # seconds, texts
N_CHUNKS, N_WORDS, N_DIMS = 100, 30, 384  # of a document, a chunk and a vector
CHUNK_TOKENS = 90  # holds one paragraph, and not two
VOCABULARY = 5_000
SIZES = {"workers": ["4000"], "pools": ["20000"]}
STORE = 400_000_000  # bytes, of Ray's objects


class Slow(HashingEmbedding):
    """Waits for each batch, and keeps no record of them."""

    dim: int = N_DIMS
    embed_batch_size: int = BATCH

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        time.sleep(LATENCY)
        return [self._vector(text) for text in texts]


def write(folder: Path, n_chunks: int) -> None:
    """Write documents of one chunk per paragraph."""
    draw = np.random.default_rng(0)
    syllables = np.array("ka lo mi ne pu ra so ti vu wo".split())
    words = np.array(["".join(each) for each in syllables[draw.integers(10, size=(VOCABULARY, 3))]])
    for i in range(n_chunks // N_CHUNKS):
        drawn = words[draw.integers(VOCABULARY, size=(N_CHUNKS, N_WORDS))]
        text = "\n\n".join(f"{' '.join(each).capitalize()}." for each in drawn)
        (folder / f"{i}.txt").write_text(text)


def build(
    folder: Path, index: Path, kind: type[RaptorHierarchy | SemanticHierarchy], n_workers: int
) -> None:
    """Build, and print what it took."""
    import ray

    os.environ["PYTHONPATH"] = TESTS
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        "local", num_cpus=2, include_dashboard=False, object_store_memory=STORE, log_to_driver=False
    )
    marks = dict[str, float]()

    def timed(stage: str, done: int, total: int, cost: str = "") -> None:
        if stage == "read" and done == total:
            marks["first"] = time.perf_counter()
        if stage == "grow documents":
            marks["grown"] = time.perf_counter()

    start = time.perf_counter()
    tree = kind(Slow(), progress=timed)
    built = HierarchicalIndex.build(
        folder,
        index,
        hierarchy=tree,
        chunk_size=CHUNK_TOKENS,
        engine=RayEngine(workers=n_workers),
    )
    end = time.perf_counter()
    assert built.last_build is not None
    levels = [level.nodes for level in built.last_build.statistics]
    print(
        f"{n_workers} workers, {levels[0]:7,} chunks, {sum(levels):7,} nodes:"
        f"  grow {marks['grown'] - marks['first']:7.1f} s  build {end - start:7.1f} s",
        flush=True,
    )
    ray.shutdown()


def main(what: str, *sizes: str) -> None:
    if what == "build":
        folder, index, kind, n_workers = sizes
        method = RaptorHierarchy if kind == "pools" else SemanticHierarchy
        build(Path(folder), Path(index), method, int(n_workers))
        return
    for size in sizes or SIZES[what]:
        with TemporaryDirectory() as place:
            write(Path(place), int(size))
            for n_workers in (1, 2):
                with TemporaryDirectory() as index:
                    given = [place, index, what, str(n_workers)]
                    command = [sys.executable, "-W", "ignore", __file__, "build", *given]
                    subprocess.run(command, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
