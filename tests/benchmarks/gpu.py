"""What torch's device, a GPU if there is one, does a second: chunks embedded, extracts rewritten.

Embedding takes pieces of 1,000 characters of FILE as `hierindex build` does, on torch, in several
batch sizes and types. `forward` is the model alone, on token ids that are already there. Rewriting
takes extracts of 600 to 900 tokens to a bart-large of random weights, as `seq2seq.py` does.
A limit is what the device could do if it did nothing else: the products of the model at the
measured speed of large products, and the decoder's weights read once a step at the measured speed
of a copy.

Usage: python tests/benchmarks/gpu.py FILE [N_CHUNKS [N_EXTRACTS [MODEL]]]
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from llama_index.embeddings.huggingface import HuggingFaceEmbedding

sys.path.insert(0, str(Path(__file__).parents[1]))
from seq2seq import LENGTHS, MAX_TOKENS, write_to_the_end
from tiny_models import WORDS, save_bart

from hierindex import Seq2SeqRewriter, load_embed_model
from hierindex.device import accelerator
from hierindex.embed import embedder
from hierindex.embed.load import DEFAULT_EMBED_MODEL
from hierindex.loading import quiet

DEVICE = accelerator() or "cpu"
SIZE = 8192 if DEVICE != "cpu" else 1024  # of the products that are measured
ROUNDS = 3
KINDS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
Seconds = float


def wait() -> None:
    if DEVICE.startswith("cuda"):
        torch.cuda.synchronize()


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> Seconds:
    """Of the median of some rounds, after one that does not count."""
    took = []
    for _ in range(rounds + 1):
        wait()
        start = time.perf_counter()
        work()
        wait()
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
    print(f"\n{'embedding':<12}{'batch':>6}{'a call':>8}{'chunks/s':>10}{'least cosine':>14}  alone")
    exact = None
    for kind, dtype in KINDS.items():
        model = load_embed_model(name, device=DEVICE)
        assert isinstance(model, HuggingFaceEmbedding)
        model._model.to(dtype)
        for batch_size, a_call in ((10, 128), (128, 128), (256, 1024), (1024, 8192)):
            model.embed_batch_size, embedder.TEXTS_PER_CALL = batch_size, a_call
            ours = embedder.Embedder(model)
            X = ours.embed(texts)
            exact = X if exact is None else exact
            took = seconds(lambda ours=ours: ours.embed(texts))
            alone = np.concatenate([ours.embed([text]) for text in texts[:64]])
            same = np.abs(alone - X[:64]).max()
            cosine = (X * exact).sum(axis=1).min()
            print(
                f"{kind:<12}{batch_size:6}{a_call:8}{len(texts) / took:10.0f}{cosine:14.6f}"
                f"  {same:.1e}",
                flush=True,
            )
        bert = model._model[0].auto_model
        inputs = model._model.tokenizer(texts[:1024], padding=True, truncation=True)
        ids = torch.tensor(inputs["input_ids"], device=DEVICE)[:, : model.max_length]
        mask = torch.tensor(inputs["attention_mask"], device=DEVICE)[:, : model.max_length]
        with torch.inference_mode():
            took = seconds(lambda: bert(input_ids=ids, attention_mask=mask))
        limit = rates[kind] / (operations(bert, ids) / len(ids))
        print(
            f"{kind:<12}forward: {len(ids) / took:,.0f} chunks/s of {ids.shape[1]} tokens, limit "
            f"{limit:,.0f}",
            flush=True,
        )
    took = seconds(lambda: model._model.tokenizer(texts, padding=True, truncation=True))
    print(f"tokenizer alone: {len(texts) / took:,.0f} chunks/s")


def rewriting(number: int, folder: str, bytes_a_second: float) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, n)) for n in rng.choice(LENGTHS, number)]
    print(f"\n{number} extracts of {LENGTHS.min()} to {LENGTHS.max()} tokens, {MAX_TOKENS} written")
    print(f"{'beams':>5}{'a batch of':>12}{'extracts/s':>12}{'tokens/s':>10}{'limit, extracts/s':>19}")
    for num_beams in (1, 4):
        rewriter = Seq2SeqRewriter(folder, num_beams=num_beams, device=DEVICE)
        model = rewriter._model
        write_to_the_end(rewriter)
        read = (*model.model.decoder.layers.parameters(), *model.lm_head.parameters())
        step = sum(p.numel() * p.element_size() for p in read) / bytes_a_second
        for size in (8, 32, 128):
            if size > number:
                continue
            rewriter.batch_size = size
            took = seconds(lambda: rewriter.rewrite(texts, max_tokens=MAX_TOKENS), 1)
            print(
                f"{num_beams:5}{size:12}{number / took:12.2f}{number * MAX_TOKENS / took:10.0f}"
                f"{size / (MAX_TOKENS * step):19.0f}",
                flush=True,
            )


def main(file: Path, n_chunks: int = 4096, n_extracts: int = 128, name: str = "") -> None:
    text = file.read_text("utf-8")
    texts = [text[i : i + 1000] for i in range(0, len(text), 1000)][:n_chunks]
    device = torch.cuda.get_device_name() if DEVICE.startswith("cuda") else DEVICE
    print(f"{len(texts)} chunks; {device}, {torch.get_num_threads()} threads, torch {torch.__version__}")
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
    if DEVICE == "cpu":
        sys.exit("torch finds no GPU; precision.py and seq2seq.py measure a CPU.")
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_file():
        sys.exit(__doc__.split("\n\n")[-1].strip())
    _, file, *numbers = sys.argv
    main(Path(file), *map(int, numbers[:2]), *numbers[2:])
