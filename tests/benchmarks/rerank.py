"""Seconds to rerank 25 chunks by a cross-encoder as large as ms-marco-MiniLM-L6-v2.

The weights are random, so the order means nothing; the work is the same. Loading is measured
twice: with the export, which is made once, and from the cache.

Usage: python tests/benchmarks/rerank.py
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiny_models import WORDS, save_cross_encoder

from hierindex import Reranker, load_reranker

WINDOW = 512
SIZE = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "vocab_size": 30522,
    "initializer_range": 0.02,
}
QUESTION = "who wrote a letter to the harbour in the winter"
N_TEXTS = 25
N_TOKENS = (64, 128, 256)  # of a chunk, each word one
REPEATS = 7


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def time_texts(model: Reranker, n_tokens: int) -> tuple[float, float]:
    """Return the median seconds of a question, and the mean seconds of all cores together."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, n_tokens)) for _ in range(N_TEXTS)]
    model.rank(QUESTION, texts)  # warm
    start = time.process_time()
    took = median(seconds(lambda: model.rank(QUESTION, texts)) for _ in range(REPEATS))
    return took, (time.process_time() - start) / REPEATS


def main(folder: Path) -> None:
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    save_cross_encoder(folder / "model", WINDOW, **SIZE)
    name = str(folder / "model")
    for what in ("exported and loaded", "loaded"):
        print(f"{what} in {seconds(lambda: load_reranker(name).rank(QUESTION, [''])):.2f} s")
    model = load_reranker(name)
    print(f"{N_TEXTS} pairs by a {type(model).__name__}, median of {REPEATS}")
    for n_tokens in N_TOKENS:
        took, of_cores = time_texts(model, n_tokens)
        print(f"{n_tokens:>4} tokens each: {took:.2f} s, {of_cores:.2f} s of all cores together")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
