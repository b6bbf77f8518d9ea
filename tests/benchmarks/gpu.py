"""What an NVIDIA GPU does a second: chunks embedded, extracts rewritten.

Embedding takes pieces of 1,000 characters of FILE as `hierindex build` does, on torch, in several
batch sizes and types. `forward` is the model alone, on token ids that are already there. Rewriting
takes extracts of 600 to 900 tokens to a bart-large of random weights, as `seq2seq.py` does.
A limit is what the GPU could do if it did nothing else: the products of the model at the measured
speed of large products, and the decoder's weights read once a step at the measured speed of a
copy. `alone` is the largest difference in any component between a text embedded alone and in a
batch, `peak` the most memory of the GPU in use, weights included.

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
from sentence_transformers import SentenceTransformer

sys.path.insert(0, str(Path(__file__).parents[1]))
from seq2seq import LENGTHS, MAX_TOKENS, write_to_the_end
from tiny_models import WORDS, save_bart

from hierindex import load_embed_model
from hierindex.loading import quiet
from hierindex.models.embedder import Embedder
from hierindex.models.load import DEFAULT_EMBED_MODEL
from hierindex.summarize import Seq2SeqRewriter

DEVICE = "cuda"
SIZE = 8192  # of the products that are measured
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


def products(kind: torch.dtype) -> float:
    """Floating-point operations a second of a large product."""
    A, B = (torch.randn(SIZE, SIZE, device=DEVICE).to(kind) for _ in range(2))
    return 2 * SIZE**3 / seconds(lambda: A @ B, 10)


def copied() -> float:
    """Bytes read and written a second by a large copy."""
    a = torch.randn(SIZE * SIZE, device=DEVICE)
    b = torch.empty_like(a)
    return 2 * a.numel() * a.element_size() / seconds(lambda: b.copy_(a), 10)


def operations(model: torch.nn.Module, ids: torch.Tensor) -> float:
    """Floating-point operations of the products of a BERT for (n_texts, n_tokens) token ids."""
    weights = sum(m.weight.numel() for m in model.modules() if isinstance(m, torch.nn.Linear))
    config = model.config
    attention = 4 * config.num_hidden_layers * ids.shape[1] * config.hidden_size
    return ids.numel() * (2 * weights + attention)


def embedding(texts: list[str], name: str, rates: dict[str, float]) -> None:
    print(f"\n{'embedding':<12}{'batch':>6}{'chunks/s':>10}{'least cosine':>14}", end="")
    print(f"{'alone':>10}{'peak, GiB':>11}")
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
            alone = np.concatenate([embed([text]) for text in texts[:64]])
            off = np.abs(alone - X[:64]).max()
            row = f"{kind:<12}{model.embed_batch_size:6}{rate:10.0f}{cosine:14.6f}{off:10.1e}"
            print(f"{row}{peak:11.2f}", flush=True)
        forward(model._model, texts[:1024], kind, rates[kind])
    took = seconds(lambda: model._model.tokenizer(texts, padding=True, truncation=True))
    print(f"tokenizer alone: {len(texts) / took:,.0f} chunks/s")


@torch.inference_mode()
def forward(model: SentenceTransformer, texts: list[str], kind: str, rate: float) -> None:
    inputs = model.tokenizer(
        texts, padding=True, truncation=True, max_length=model.max_seq_length, return_tensors="pt"
    ).to(DEVICE)
    bert, ids = model[0].auto_model, inputs["input_ids"]
    chunks = len(texts) / seconds(lambda: bert(**inputs))
    limit = rate * len(texts) / operations(bert, ids)
    size = f"{chunks:,.0f} chunks/s of {ids.shape[1]} tokens"
    print(f"{kind:<12}forward: {size}, limit {limit:,.0f}", flush=True)


def rewriting(number: int, folder: str, bytes_a_second: float) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, n)) for n in rng.choice(LENGTHS, number)]
    print(f"\n{number} extracts of {LENGTHS.min()} to {LENGTHS.max()} tokens, {MAX_TOKENS} written")
    print(f"{'beams':>5}{'batch':>7}{'batches':>9}{'extracts/s':>12}{'limit':>8}", end="")
    print(f"{'ms a step':>11}{'peak, GiB':>11}")
    for num_beams in (1, 4):
        rewriter = Seq2SeqRewriter(folder, num_beams=num_beams, device=DEVICE)
        write_to_the_end(rewriter)
        model = rewriter._model
        read = (*model.model.decoder.layers.parameters(), *model.lm_head.parameters())
        step = sum(p.numel() * p.element_size() for p in read) / bytes_a_second
        for rewriter.batch_size in (8, 16, 32, 64, 128):
            torch.cuda.reset_peak_memory_stats()
            took = seconds(partial(rewriter.rewrite, texts, max_tokens=MAX_TOKENS), 1)
            peak = torch.cuda.max_memory_allocated() / 2**30
            batches = len(rewriter._batches(texts))  # of similar length, so some are not full
            n_steps = batches * MAX_TOKENS
            row = f"{num_beams:5}{rewriter.batch_size:7}{batches:9}{number / took:12.2f}"
            row += f"{number / n_steps / step:8.0f}{1000 * took / n_steps:11.1f}{peak:11.1f}"
            print(row, flush=True)


def main(file: Path, n_chunks: int = 4096, n_extracts: int = 128, name: str = "") -> None:
    text = file.read_text("utf-8")
    texts = [text[i : i + 1000] for i in range(0, len(text), 1000)][:n_chunks]
    device = f"{torch.cuda.get_device_name()}, {torch.get_num_threads()} threads of torch"
    print(f"{len(texts)} chunks; {device} {torch.__version__}")
    rates = {kind: products(dtype) for kind, dtype in KINDS.items()}
    for kind, rate in rates.items():
        print(f"products in {kind}: {rate / 1e12:.1f} TFLOP/s")
    bytes_a_second = copied()
    print(f"copy: {bytes_a_second / 1e12:.2f} TB/s", flush=True)
    embedding(texts, name or DEFAULT_EMBED_MODEL, rates)
    with tempfile.TemporaryDirectory() as folder:
        with quiet():
            save_bart(Path(folder))
        rewriting(n_extracts, folder, bytes_a_second)


if __name__ == "__main__":
    if not torch.cuda.is_available():
        sys.exit("torch finds no NVIDIA GPU; precision.py and seq2seq.py measure a CPU.")
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        sys.exit(__doc__.split("\n\n")[-1].strip())
    _, file, *numbers = sys.argv
    main(Path(file), *map(int, numbers[:2]), *numbers[2:])
