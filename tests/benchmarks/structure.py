"""Prints what retrieval gains by headings and titles, with 95% intervals over documents.

The documents are meetings with their topics as headings, papers with their sections, long pages
with what their tables of contents list, and articles with their titles, in the sets qmsum, qasper,
nq_long and squad. No question is one of these headings. Each row adds to the rows above it; the
words of documents' titles count from the second on.

    python tests/benchmarks/structure.py DATA [LIMIT]
"""

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import BaseNode, Document
from measures import further, read_labelled, rows_of
from records import replace_all

from hierindex import (
    HierarchicalIndex,
    HierarchyStore,
    SemanticHierarchy,
    load_embed_model,
    sentence_splitter,
)
from hierindex.cache import Cache, open_cache
from hierindex.core.arguments import Ints1d
from hierindex.core.bounds import Caps
from hierindex.core.membership import NO_HEADINGS, Rows
from hierindex.evaluate import evaluate
from hierindex.evaluate.runner import WAYS, Asked, Way
from hierindex.node import HEADINGS, SECTION, TITLE
from hierindex.read.split import split_documents
from hierindex.text_node import chunk_of, to_text_node
from hierindex.tree.hierarchy import SEGMENTS

ADDED = (
    "chunks end at headings",
    "words of sections",
    "embedded titles",
    "parents end at headings",
)
BUDGET = 500  # tokens
NUMBERED = re.compile(r"(\d+(?:\.\d+)*) (.*?)(?= \d+(?:\.\d+)* [A-Z`\"]|$)")


def main(data: Path, limit: int | None = None) -> None:
    """Print a table for each set and way of scoring."""
    model = load_embed_model()
    for name, headings_of in SETS.items():
        rows = rows_of(data / name / "documents.jsonl")
        documents = [with_headings(row, headings_of(row)) for row in rows]
        with tempfile.TemporaryDirectory() as folder:
            with open_cache(folder) as cache:
                trees = {
                    added: grown(documents, Path(folder) / added, model, n, cache)
                    for n, added in enumerate(ADDED)
                }
            for name_of_way, way in WAYS.items():
                ways = {f"{name_of_way}, no structure": way}
                ways |= {added: partial(of_tree, tree, way) for added, tree in trees.items()}
                options = {"budgets": [BUDGET], "limit": limit, "embed_model": model}
                options |= {"measures": further, "index": folder}
                print(evaluate(read_labelled(data / name), ways=ways, **options))
                print(flush=True)


def with_headings(row: Mapping[str, Any], headings: Iterable[tuple[int, str, int]]) -> Document:
    """Return a document as a reader would."""
    metadata = {TITLE: row["title"], HEADINGS: [list(heading) for heading in headings]}
    document = Document(text=row["text"], id_=row["doc_id"], metadata=metadata)
    document.excluded_embed_metadata_keys = document.excluded_llm_metadata_keys = [*metadata]
    return document


def grown(
    documents: Sequence[Document], uri: Path, model: BaseEmbedding, n: int, cache: Cache
) -> HierarchicalIndex:
    """Build a tree of chunks that end at headings, with the first `n` other additions."""
    chunks = [*map(to_text_node, split_documents(documents, sentence_splitter(model)))]
    for chunk in chunks:
        section = chunk.metadata.pop(SECTION, "")
        if n == 1:
            chunk.metadata[TITLE] += f"\n{section}"
        elif n > 1 and section:
            chunk.metadata[SECTION] = section
        if n < 2:
            chunk.excluded_embed_metadata_keys = [*chunk.metadata]
    hierarchy = SemanticHierarchy(model) if n == 3 else SemanticHierarchy(model, rule=ByMeaning())
    store = HierarchyStore(uri)
    grown = hierarchy.grow([[*map(chunk_of, chunks)]], cache)
    replace_all(store, grown.nodes)
    return HierarchicalIndex.open(uri, model)


@dataclass(frozen=True)
class ByMeaning:
    """The default rule as it cuts a document without headings."""

    def breakpoints(self, rows: Rows, caps: Caps) -> Ints1d:
        """Return the gaps to cut."""
        return SEGMENTS.breakpoints(replace(rows, heading=NO_HEADINGS), caps)


def of_tree(
    tree: HierarchicalIndex, way: Way, asked: Asked, top_k: int, budget: int | None
) -> Sequence[BaseNode]:
    """Return what a way returns of another tree."""
    return way(replace(asked, index=tree), top_k, budget)


def topics(row: Mapping[str, Any]) -> Iterator[tuple[int, str, int]]:
    """Yield the topics of a meeting where they begin."""
    turns, found = row["turn_offsets"], dict[int, str]()
    for topic in row["topics"]:
        for first, _ in topic["spans"]:
            found.setdefault(turns[min(first, len(turns) - 1)][0], topic["topic"])
    yield from ((1, title, start) for start, title in sorted(found.items()))


def sections(row: Mapping[str, Any]) -> Iterator[tuple[int, str, int]]:
    """Yield the headings of a paper's sections, such as "Data ::: German"."""
    at = 0
    for section in row["sections"]:
        heading = section["heading"]
        if heading.strip(" :") and (start := row["text"].find(heading, at)) >= 0:
            at = start + len(heading)
            path = heading.split(" ::: ")
            yield len(path), path[-1].strip(), start


def listed(row: Mapping[str, Any]) -> Iterator[tuple[int, str, int]]:
    """Yield the headings that a page's table of contents lists."""
    text = row["text"]
    if not (contents := re.search(r"\nContents( \(hide\))?\n\n((?:\d+(?:\.\d+)* .*\n\n)+)", text)):
        return
    at, entries = contents.end() - 2, re.sub(r"(\d)\. (\d)", r"\1.\2", contents[2])
    for number, title in NUMBERED.findall(" ".join(entries.split())):
        place = re.compile(rf"\n\n{re.escape(title.strip())}(?=\s|$)").search(text, at)
        if place:
            at = place.end()
            yield number.count(".") + 1, title.strip(), place.start() + 2


SETS = {"qmsum": topics, "qasper": sections, "nq_long": listed, "squad": lambda row: ()}
"""Data sets, and what finds the headings of a document."""

if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
