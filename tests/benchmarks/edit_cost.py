"""What one edit costs in indices of more and more chunks.

Builds an index of generated documents, 50 chunks each, whose vectors are counts of hashed words.
Changes one paragraph of one document and updates the index with that document, five times. Prints
the median seconds of an update.

Usage: python tests/benchmarks/edit_cost.py [METHOD] [N_CHUNKS...]   (by default semantic and 1000,
10000 and 100000)
"""

import random
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from fakes import HashingEmbedding
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document
from update import METHODS

from hierindex import HierarchicalIndex

N_PARAGRAPHS = 50
N_EDITS = 5
WORDS = [f"word{i}" for i in range(400)]


def paragraph(draw: random.Random, topic: int) -> str:
    words = draw.choices(WORDS[topic : topic + 30], k=24)
    return f"{' '.join(words[:12]).capitalize()}. {' '.join(words[12:]).capitalize()}."


def document(i: int) -> list[str]:
    draw = random.Random(i)
    topics = [draw.randrange(len(WORDS) - 30) for _ in range(5)]
    return [paragraph(draw, topics[at * 5 // N_PARAGRAPHS]) for at in range(N_PARAGRAPHS)]


def main(method: str = "semantic", *sizes: str) -> None:
    for size in map(int, sizes or (1_000, 10_000, 100_000)):
        with TemporaryDirectory() as folder:
            measure(method, size, folder)


def measure(method: str, size: int, folder: str) -> None:
    texts = {f"{i:05}": document(i) for i in range(size // N_PARAGRAPHS)}
    hierarchy = METHODS[method](HashingEmbedding())
    splitter = SentenceSplitter(chunk_size=64, chunk_overlap=0, paragraph_separator="\n\n")
    start = time.perf_counter()
    index = HierarchicalIndex.build(
        [Document(id_=name, text="\n\n".join(parts)) for name, parts in texts.items()],
        folder,
        hierarchy=hierarchy,
        splitter=splitter,
    )
    built = time.perf_counter() - start
    n_chunks = index.info()["levels"][0]["nodes"]
    updates, draw = [], random.Random(size)
    for _ in range(N_EDITS):
        name = draw.choice([*texts])
        texts[name][draw.randrange(N_PARAGRAPHS)] = paragraph(draw, draw.randrange(300))
        changed = Document(id_=name, text="\n\n".join(texts[name]))
        start = time.perf_counter()
        index.update(changed, hierarchy=hierarchy, splitter=splitter)
        updates.append(time.perf_counter() - start)
    print(
        f"{method}, {n_chunks:,} chunks: built in {built:.0f} s; an edit takes "
        f"{median(updates):.2f} s",
        flush=True,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
