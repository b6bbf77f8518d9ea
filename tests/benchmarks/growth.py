"""Seconds per chunk of a whole build over 10, 100 and 1,000 copies of a document, each varied.

A copy has the document's sentences in an order of its own, some of them left out. Constant
time per chunk is a linear build.

Usage: python tests/benchmarks/growth.py FILE [METHOD]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from llama_index.core import Document

import hierindex
from hierindex.summarize.sentences import split_sentences

COPIES = (10, 100, 1000)
N_SENTENCES = 20
KINDS = {
    kind.method: kind
    for kind in (
        hierindex.SemanticHierarchy,
        hierindex.DocumentHierarchy,
        hierindex.RaptorHierarchy,
    )
}


def copies(sentences: list[str], n: int) -> list[Document]:
    rng = np.random.default_rng(0)
    n_kept = len(sentences) * 4 // 5
    return [
        Document(
            text=" ".join(rng.permutation(sentences)[:n_kept]),
            id_=f"copy {i}",
        )
        for i in range(n)
    ]


def main(file: Path, method: str) -> None:
    text = file.read_text(encoding="utf-8")
    sentences = [s.text for s in split_sentences(text) if len(s.text) > 40][:N_SENTENCES]
    model = hierindex.load_embed_model()
    head = None
    for n in (1, *COPIES):  # the first loads what is loaded once
        with tempfile.TemporaryDirectory() as uri:
            index = hierindex.HierarchicalIndex.build(
                copies(sentences, n), uri, hierarchy=KINDS[method](model)
            )
            seconds, n_chunks = index.last_build.seconds, index.info()["levels"][0]["nodes"]
        if n == 1:
            continue
        if head is None:
            head = list(seconds)
            print(f"{method}, milliseconds per chunk\n{'copies':>7}{'chunks':>8}", end="")
            print("".join(f"{stage:>11}" for stage in head))
        print(f"{n:7}{n_chunks:8}", end="")
        print("".join(f"{1000 * seconds[stage] / n_chunks:11.2f}" for stage in head), flush=True)


if __name__ == "__main__":
    if len(sys.argv) in (2, 3) and Path(sys.argv[1]).is_file():
        main(Path(sys.argv[1]), (sys.argv[2:] or ["semantic"])[0])
    else:
        sys.exit("Usage: python tests/benchmarks/growth.py FILE [METHOD]")
