"""Seconds, memory and bytes of large indices: build, question, edit, deletion and verification.

The documents are passages of FOLDER's files, of about 50 chunks each, in which a tenth of the words
are replaced by others of FOLDER, so that no two have the same text. Vectors are those of a model
that is made up: the sum of fixed random vectors of a text's words, 384 dimensions. Its seconds are
no "own work" of the index. Tokens are counted by LlamaIndex's own tokenizer. Every step runs in a
process of its own, so that its peak of memory is known. "processor" are seconds of all its threads,
which depend less on what else the machine does; so are all seconds of a build but those that have
"passed".

Usage: python tests/benchmarks/scale.py FOLDER [METHOD] [N_CHUNKS...]   (by default semantic, 10000
and 100000)
"""

import json
import math
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.embeddings import BaseEmbedding
from update import METHODS

from hierindex import HierarchicalIndex, progress

SIZES = 10_000, 100_000
N_CHUNKS, N_WORDS = 50, 8_500  # of a document
REPLACED = 0.1
N_QUESTIONS = 50
OWN = "own work"


class WordSums(BaseEmbedding):
    """A text's vector is the sum of random vectors of its words, each by the root of its count."""

    model_name: str = "word sums"
    embed_batch_size: int = 1024
    _counts: Any = PrivateAttr()
    _vectors: np.ndarray = PrivateAttr()  # (n_buckets, n_dims)
    _seconds: float = PrivateAttr(default=0.0)

    def __init__(self, **fields: Any) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer

        super().__init__(**fields)
        self._counts = HashingVectorizer(
            n_features=2**15,
            stop_words="english",
            alternate_sign=False,
            norm=None,
            dtype=np.float32,
        )
        rng = np.random.default_rng(0)
        self._vectors = rng.standard_normal((2**15, 384), dtype=np.float32)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        start = time.process_time()
        X = self._counts.transform(texts).sqrt() @ self._vectors + 1e-3
        vectors = X.astype(np.float32).tolist()
        self._seconds += time.process_time() - start
        return vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def write_documents(folder: Path, to: Path, number: int) -> None:
    """Write documents of `N_WORDS` words as text files, in folders of 1,000."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in {".txt", ".md", ".rst"})
    text = "\n\n".join(path.read_text(encoding="utf-8") for path in paths)
    parts = np.array(re.split(r"(\s+)", text.strip()), dtype=object)  # words and what is between
    words, length = parts[::2], 2 * N_WORDS
    for i in range(number):
        rng = np.random.default_rng(i)
        start = 2 * int(rng.integers((len(parts) - length) // 2))
        document = parts[start : start + length].copy()
        at = 2 * rng.choice(N_WORDS, size=int(REPLACED * N_WORDS), replace=False)
        document[at] = rng.choice(words, size=len(at))
        path = to / f"{i // 1000:03}" / f"{i:06}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(document), encoding="utf-8")


def build(method: str, texts: Path, at: Path) -> dict[str, float]:
    model, start = WordSums(), time.perf_counter()
    with patch.object(progress, "time", SimpleNamespace(perf_counter=time.process_time)):
        index = HierarchicalIndex.build(texts, at, hierarchy=METHODS[method](model))
    passed, report = time.perf_counter() - start, index.last_build
    assert report is not None
    return {
        "chunks": report.statistics[0].nodes,
        "passed": passed,
        OWN: report.seconds["total"] - model._seconds,
        **report.seconds,
    }


def ask(method: str, texts: Path, at: Path) -> dict[str, float]:
    rng, paths = np.random.default_rng(1), sorted(texts.rglob("*.txt"))
    took, model, start = [], WordSums(), time.perf_counter()
    index = HierarchicalIndex.open(at, model)
    opened = time.perf_counter() - start
    for _ in range(1 + N_QUESTIONS):
        words = paths[rng.integers(len(paths))].read_text(encoding="utf-8").split()
        first = int(rng.integers(len(words) - 9))
        spent = index.ask(" ".join(words[first : first + 9])).seconds
        took.append(spent["search"] + spent["respond"])
    return {"open": opened, "first question": took[0], "question": median(took[1:])}


def edit(method: str, texts: Path, at: Path) -> dict[str, float]:
    path = sorted(texts.rglob("*.txt"))[0]
    document = path.read_text(encoding="utf-8")
    half = document.index(" ", len(document) // 2)
    path.write_text(f"{document[:half]} and then nobody knew why{document[half:]}", "utf-8")
    index = HierarchicalIndex.open(at, WordSums())
    return index.update(path).seconds


def delete(method: str, texts: Path, at: Path) -> dict[str, float]:
    index = HierarchicalIndex.open(at, WordSums())
    path = sorted(texts.rglob("*.txt"))[1]
    return index.delete(path.relative_to(texts).as_posix()).seconds


def verify(method: str, texts: Path, at: Path) -> dict[str, float]:
    start = time.perf_counter()
    outcome = HierarchicalIndex.open(at).verify()
    assert outcome.ok, outcome.failed
    return {"nodes": outcome.nodes, "total": time.perf_counter() - start}


STEPS = {step.__name__: step for step in (build, ask, edit, delete, verify)}


def run(name: str, *given: str) -> dict[str, float]:
    """The figures of a step, which runs in a process of its own."""
    command = [sys.executable, "-W", "ignore", __file__, "--step", name, *given]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(folder: Path, method: str, size: int) -> dict[str, dict[str, float]]:
    with TemporaryDirectory() as at:
        texts, index = Path(at) / "texts", Path(at) / "index"
        write_documents(folder, texts, size // N_CHUNKS)
        found = {}
        for name in STEPS:
            found[name] = run(name, method, str(texts), str(index))
            n_bytes = sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
            found[name]["folder, GiB"] = n_bytes / 2**30
            print(f"{method}, {size:,}: {name}", *found[name].items(), file=sys.stderr, flush=True)
        return found


def main(folder: Path, method: str, sizes: list[int]) -> None:
    found = [measure(folder, method, size) for size in sizes]
    n_chunks = [each["build"]["chunks"] for each in found]
    for name in STEPS:
        print(f"\n{method}, {name}\n{'':<20}" + "".join(f"{n:>12,.0f}" for n in n_chunks))
        for figure in dict.fromkeys(key for each in found for key in each[name]):
            values = [each[name].get(figure, math.nan) for each in found]
            print(f"{figure:<20}" + "".join(f"{value:12,.3f}" for value in values))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--step"]:
        figures = STEPS[sys.argv[2]](sys.argv[3], Path(sys.argv[4]), Path(sys.argv[5]))
        used = resource.getrusage(resource.RUSAGE_SELF)
        figures |= {"processor": used.ru_utime + used.ru_stime, "peak, GiB": used.ru_maxrss / 2**20}
        print(json.dumps(figures))
    elif len(sys.argv) > 1 and Path(sys.argv[1]).is_dir():
        method, *numbers = sys.argv[2:] or ["semantic"]
        main(Path(sys.argv[1]), method, [int(n) for n in numbers] or [*SIZES])
    else:
        sys.exit("Usage: python tests/benchmarks/scale.py FOLDER [METHOD] [N_CHUNKS...]")
