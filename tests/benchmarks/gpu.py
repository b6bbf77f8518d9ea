"""What an NVIDIA GPU does a second: chunks embedded, extracts rewritten.

Embedding takes pieces of 1,000 characters of FILE as `hierindex build` does, on torch, in several
batch sizes and types. Rewriting takes extracts of 600 to 900 tokens to a bart-large of random
weights, as `seq2seq.py` does. `peak` is the most memory of the GPU in use, weights included.

Usage: python tests/benchmarks/gpu.py FILE [N_CHUNKS [N_EXTRACTS [MODEL]]]
"""

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from llama_index.embeddings.huggingface import HuggingFaceEmbedding

sys.path.insert(0, str(Path(__file__).parents[1]))
from seq2seq import LENGTHS, MAX_TOKENS, write_to_the_end
from tiny_models import WORDS, save_bart

from hierindex import load_embed_model
from hierindex.models.embedder import Embedder
from hierindex.summarize import Seq2SeqRewriter

DEVICE = "cuda"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"  # the bundled one
ROUNDS = 3
KINDS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median seconds of some rounds, after one that does not count."""
    took = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
    return float(np.median(took[1:]))


def embedding(texts: list[str], name: str) -> None:
    print(f"\n{'embedding':<12}{'batch':>6}{'chunks/s':>10}{'least cosine':>14}", end="")
    print(f"{'peak, GiB':>11}")
    exact = None
    for kind, dtype in KINDS.items():
        model = load_embed_model(name, device=DEVICE)
        assert isinstance(model, HuggingFaceEmbedding)
        model._model.to(dtype)
        embed = Embedder(model).embed
        for model.embed_batch_size in (10, 32, 64, 128):
            torch.cuda.reset_peak_memory_stats()
            X = embed(texts)
            peak = torch.cuda.max_memory_allocated() / 2**30
            exact = X if exact is None else exact
            rate = len(texts) / seconds(partial(embed, texts))
            cosine = (X * exact).sum(axis=1).min()
            row = f"{kind:<12}{model.embed_batch_size:6}{rate:10.0f}{cosine:14.6f}"
            print(f"{row}{peak:11.2f}", flush=True)


def rewriting(number: int, folder: str) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, n)) for n in rng.choice(LENGTHS, number)]
    print(f"\n{number} extracts of {LENGTHS.min()} to {LENGTHS.max()} tokens, {MAX_TOKENS} written")
    print(f"{'beams':>5}{'batch':>7}{'extracts/s':>12}{'peak, GiB':>11}")
    for num_beams in (1, 4):
        rewriter = Seq2SeqRewriter(folder, num_beams=num_beams, device=DEVICE)
        write_to_the_end(rewriter)
        for rewriter.batch_size in (8, 16, 32, 64, 128):
            torch.cuda.reset_peak_memory_stats()
            took = seconds(partial(rewriter.rewrite, texts, max_tokens=MAX_TOKENS), 1)
            peak = torch.cuda.max_memory_allocated() / 2**30
            row = f"{num_beams:5}{rewriter.batch_size:7}{number / took:12.2f}{peak:11.1f}"
            print(row, flush=True)


def main(file: Path, n_chunks: int = 4096, n_extracts: int = 128, name: str = MODEL) -> None:
    text = file.read_text("utf-8")
    texts = [text[i : i + 1000] for i in range(0, len(text), 1000)][:n_chunks]
    device = f"{torch.cuda.get_device_name()}, {torch.get_num_threads()} threads of torch"
    print(f"{len(texts)} chunks; {device} {torch.__version__}")
    embedding(texts, name)
    with tempfile.TemporaryDirectory() as folder:
        save_bart(Path(folder))
        rewriting(n_extracts, folder)


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("torch finds no NVIDIA GPU; precision.py and seq2seq.py measure a CPU.")
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        sys.exit(__doc__.split("\n\n")[-1].strip())
    _, file, *numbers = sys.argv
    main(Path(file), *map(int, numbers[:2]), *numbers[2:])
