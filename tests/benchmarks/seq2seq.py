"""Seconds a text to rewrite extracts by a bart-large: one call a group, and in batches.

The weights are random, so what is written means nothing; its length is fixed, so that all ways
do the same work. The model takes 1.6 GB in a temporary folder.

Usage: python tests/benchmarks/seq2seq.py
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from tiny_models import WORDS, save_bart

from hierindex.models.load import accelerator
from hierindex.summarize import Seq2SeqRewriter

LENGTHS = np.linspace(600, 900, 8, dtype=int)  # tokens of the extracts, each word one
MAX_TOKENS = 48
BATCH_SIZES = (1, 4, 8)
BEAMS = (1, 4)


def extracts() -> list[str]:
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, n)) for n in rng.permutation(LENGTHS)]


def write_to_the_end(rewriter: Seq2SeqRewriter) -> None:
    """Let the model write as many tokens as it may."""
    settings = rewriter._model.generation_config
    settings.forced_eos_token_id = None
    settings.suppress_tokens = [*settings.suppress_tokens, settings.eos_token_id]


def seconds(rewriter: Seq2SeqRewriter, texts: list[str], batch_size: int) -> float:
    """Of a text, where so many go in one call."""
    rewriter.batch_size = batch_size
    calls = [[text] for text in texts] if batch_size == 1 else [texts]
    start = time.perf_counter()
    for call in calls:
        rewriter.rewrite(call, max_tokens=MAX_TOKENS)
    return (time.perf_counter() - start) / len(texts)


def main(folder: str) -> None:
    save_bart(Path(folder))
    texts = extracts()
    print(
        f"{len(texts)} texts of {LENGTHS.min()} to {LENGTHS.max()} tokens, {MAX_TOKENS} tokens "
        f"written of each; on {accelerator() or 'cpu'}, {torch.get_num_threads()} threads"
    )
    print(f"{'beams':>5}{'a batch of':>12}{'s a text':>10}{'speed':>9}")
    for num_beams in BEAMS:
        rewriter = Seq2SeqRewriter(folder, num_beams=num_beams)
        write_to_the_end(rewriter)
        rewriter.rewrite(texts[:1], max_tokens=MAX_TOKENS)  # warm
        took = {}
        for size in BATCH_SIZES:
            took[size] = seconds(rewriter, texts, size)
            speed = took[1] / took[size]
            print(f"{num_beams:5}{size:12}{took[size]:10.2f}{speed:8.2f}x", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
