"""Clustering one level, beside LlamaIndex's RAPTOR pack: seconds, ratios, peak memory.

Both cluster the same unit vectors on the same machine, each in a process of its own: ours a
whole level, caps included, the pack's its clustering alone. "warm" is a call after one on 300
rows, "fresh" a whole process, from its start to the clusters.

Usage: python tests/benchmarks/clustering.py FOLDER
"""

import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from rows import embedded, load_pack, realistic

SIZES = (1_000, 2_000)


def ours(X):
    from hierindex.core.bounds import Caps
    from hierindex.core.membership import Rows
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


def run(method: str, X, *, warm: bool) -> dict[str, float]:
    """`measure` in a process of its own, with its `wall` seconds."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file.name, X)
        command = [sys.executable, __file__, method, file.name, "warm" if warm else "fresh"]
        start = time.perf_counter()
        process = subprocess.run(command, check=True, capture_output=True, text=True)
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


def main(folder: str) -> None:
    from llama_index.core.node_parser import SentenceSplitter

    from hierindex import read_documents

    documents, _ = read_documents(folder)
    chunks = SentenceSplitter(chunk_size=256, chunk_overlap=20)(documents)
    X = embedded([chunk.text for chunk in chunks])
    print(folder)
    against_the_pack(X)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(measure(*sys.argv[1:])))
    elif len(sys.argv) == 2 and Path(sys.argv[1]).is_dir():
        main(sys.argv[1])
    else:
        sys.exit("Usage: python tests/benchmarks/clustering.py FOLDER")
