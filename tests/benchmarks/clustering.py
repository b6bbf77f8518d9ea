"""Clustering one level, beside LlamaIndex's RAPTOR pack: seconds, ratios, peak memory, growth.

Both cluster the same unit vectors on the same machine, each in a process of its own: ours a
whole level, caps included, the pack's its clustering alone. "warm" is a call after one on 300
rows, "fresh" a whole process, from its start to the clusters. A process that finds no functions
compiled by an earlier one is "first ever".

Usage: python tests/benchmarks/clustering.py FOLDER
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from rows import embedded, load_pack, realistic

SIZES = (500, 1_000, 2_000, 5_000)
GROWTH = (5_000, 10_000, 20_000, 50_000, 100_000)
MILLION = 1_000_000


def ours(X):
    from hierindex.core.bounds import Caps
    from hierindex.core.rows import Rows
    from hierindex.core.tree import ByMixture

    rows = Rows(X, np.full(len(X), 250), np.arange(len(X)))
    return ByMixture(seed=0, caps=Caps(max_tokens=3500, max_children=12))(rows)


def pack(X):
    return load_pack().perform_clustering(X, dim=10, threshold=0.1)


METHODS = {"ours": ours, "pack": pack}


def measure(method: str, file: str, warm: str) -> dict[str, float]:
    """Seconds of one call and what the process held at most, in GiB."""
    warnings.simplefilter("ignore")
    X = np.load(file)
    if warm == "warm":
        METHODS[method](X[:300])
    start = time.perf_counter()
    METHODS[method](X)
    seconds = time.perf_counter() - start
    # Not ru_maxrss: that is never less than what the parent held when it forked.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 2**20  # of kibibytes: GiB
    return {"seconds": seconds, "peak": peak}


def run(method: str, X, *, warm: bool, **env: str) -> dict[str, float]:
    """`measure` in a process of its own, with its `wall` seconds."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, X)
        command = [sys.executable, __file__, method, file.name, "warm" if warm else "fresh"]
        start = time.perf_counter()
        process = subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, **env}
        )
        wall = time.perf_counter() - start
    return {**json.loads(process.stdout.splitlines()[-1]), "wall": wall}


def compare(name: str, ours: float, theirs: float, *more: str) -> None:
    print(f"{name:<28}{ours:9.2f}{theirs:9.2f}{theirs / ours:8.1f}  {' '.join(more)}", flush=True)


def against_the_pack(X) -> None:
    run("ours", X[:300], warm=False)  # whatever is compiled once is compiled now
    print(f"{'rows':<28}{'ours s':>9}{'pack s':>9}{'ratio':>8}  peak GiB, ours and pack's")
    for name, rows in [
        (f"{len(X):,} of the corpus, warm", X),
        *((f"{n:,} realistic, warm", realistic(X, n)) for n in SIZES),
    ]:
        one, other = run("ours", rows, warm=True), run("pack", rows, warm=True)
        peaks = f"{one['peak']:.2f}", f"{other['peak']:.2f}"
        compare(name, one["seconds"], other["seconds"], *peaks)
    one, other = run("ours", X, warm=False), run("pack", X, warm=False)
    compare(f"{len(X):,} of the corpus, fresh", one["wall"], other["wall"])
    with tempfile.TemporaryDirectory() as empty:
        one = run("ours", X, warm=False, NUMBA_CACHE_DIR=empty)
    with tempfile.TemporaryDirectory() as empty:
        other = run("pack", X, warm=False, NUMBA_CACHE_DIR=empty)
    compare(f"{len(X):,} of the corpus, first ever", one["wall"], other["wall"])


def growth(X) -> None:
    print(f"\n{'rows':<28}{'ours s':>9}{'ms a row':>10}{'peak GiB':>10}")
    for n in GROWTH:
        one = run("ours", realistic(X, n), warm=True)
        per_row = 1000 * one["seconds"] / n
        print(f"{n:<28,}{one['seconds']:9.1f}{per_row:10.2f}{one['peak']:10.2f}", flush=True)


def segmentation(X) -> None:
    from hierindex.core.bounds import Caps
    from hierindex.core.optimal import Optimal
    from hierindex.core.rows import Rows
    from hierindex.core.segments import Percentile, TargetSize, segment

    rows = realistic(X, MILLION)
    one, many = np.zeros(MILLION, dtype=np.int64), np.arange(MILLION) // 100
    ones = np.ones(MILLION, dtype=np.int64)
    print(f"\n{'a million rows, cut by':<44}{'seconds':>9}")
    for name, rule, document in [
        ("TargetSize(6), one document", TargetSize(6), one),
        ("TargetSize(6), 10,000 documents", TargetSize(6), many),
        ("Percentile(15), 10,000 documents", Percentile(15), many),
        ("Optimal(rows=6), 10,000 documents", Optimal(rows=6), many),
        ("Optimal(rows=6), one document", Optimal(rows=6), one),
    ]:
        start = time.perf_counter()
        segment(Rows(rows, ones, document), rule=rule, caps=Caps(3500, 12))
        print(f"{name:<44}{time.perf_counter() - start:9.2f}", flush=True)


def main(folder: str) -> None:
    from llama_index.core.node_parser import SentenceSplitter

    from hierindex import read_documents

    documents, _ = read_documents(folder)
    chunks = SentenceSplitter(chunk_size=256, chunk_overlap=20)(documents)
    X = embedded([chunk.text for chunk in chunks])
    print(folder)
    against_the_pack(X)
    growth(X)
    segmentation(X)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(measure(*sys.argv[1:])))
    elif len(sys.argv) == 2 and Path(sys.argv[1]).is_dir():
        main(sys.argv[1])
    else:
        sys.exit("Usage: python tests/benchmarks/clustering.py FOLDER")
