"""Ways to retrieve side by side: controls without a tree, LlamaIndex's, other trees and ours.

Prints the tables of `hierindex evaluate`, with more ways and measures than it has, on the same
chunks of one data set after the other. A new way is one line in `ways_over`, a new measure stands
in `measures.py`. With `--part`, only questions of some documents are asked: a document is held out
if the SHA-256 of its id, as a number, is a multiple of three, so that constants can be chosen on
the others.

Usage: python tests/benchmarks/ways.py DATA... [--ways WAY,...] [--part tuning|held-out]
           [--budgets N,...] [--limit N] [--index DIR]
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from itertools import groupby, pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from llama_index.core import DocumentSummaryIndex, StorageContext
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.retrievers import AutoMergingRetriever
from llama_index.core.schema import (
    BaseNode,
    Document,
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import MetadataFilters
from measures import further, read_labelled
from rows import AS_PUBLISHED

from hierindex import (
    HierarchicalIndex,
    HierarchyStore,
    RaptorHierarchy,
    load_embed_model,
)
from hierindex.cache import cache_file
from hierindex.core.arguments import Floats1d, Ints1d
from hierindex.errors import InputError
from hierindex.evaluate import Dataset, evaluate, retrieved
from hierindex.evaluate.measures import Passage, count_tokens
from hierindex.evaluate.runner import WAYS, Asked, Way
from hierindex.export import to_document_summary_index
from hierindex.models.embedder import unit_vectors
from hierindex.retrieve.retrieval import TOKEN_BUDGET

N_DOCUMENTS = 3  # summaries that the document-summary index finds
MERGED, MERGED_LEVELS = 4, 2  # as LlamaIndex's HierarchicalNodeParser by its default sizes


class Chunks:
    """The chunks of an index in reading order, with their places and unit vectors."""

    def __init__(self, index: HierarchicalIndex) -> None:
        nodes = index.store.get_nodes(filters=MetadataFilters.from_dict({"hierindex_level": 0}))
        passages = {node.node_id: Passage.of(node) for node in nodes}
        self.nodes = sorted(nodes, key=lambda node: passages[node.node_id].spans[0][:3])
        self.passages = [passages[node.node_id] for node in self.nodes]
        self.document = np.array([passage.spans[0].document for passage in self.passages])
        self.X = unit_vectors([node.get_embedding() for node in self.nodes])  # (n_chunks, n_dims)
        self.mean_tokens = fmean(count_tokens(passage.text) for passage in self.passages)

    @cached_property
    def bm25(self) -> "Bm25":
        """BM25 of the chunks."""
        return Bm25([passage.text for passage in self.passages])


class Bm25:
    """BM25 of texts, by stemmed words without English stop words; `bench` has the library."""

    def __init__(self, texts: list[str]) -> None:
        import bm25s

        bm25s.logger.setLevel("WARNING")
        self._n_texts, self._index = len(texts), bm25s.BM25()
        if not any(words := self._words(texts)):
            raise InputError("The documents have no words other than stop words.")
        self._index.index(words, show_progress=False)

    def scores(self, question: str) -> Floats1d:
        """Return the score of each text."""
        words = self._words([question])[0]
        scores = self._index.get_scores(words) if words else np.zeros(self._n_texts)
        return np.asarray(scores, dtype=np.float64)

    def _words(self, texts: list[str]) -> Any:
        import bm25s
        import Stemmer

        stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(texts, stemmer=stemmer, return_ids=False, show_progress=False)


chunks_of = lru_cache(maxsize=1)(Chunks)


class Searched:
    """The chunks that a question may be answered from, with their scores."""

    def __init__(self, asked: Asked) -> None:
        self.asked, self.chunks = asked, chunks_of(asked.index)
        document, within = self.chunks.document, asked.question.within
        searched = np.full(len(document), True) if within is None else document == within
        self.rows = np.flatnonzero(searched)
        """(n_rows,) all chunks, or those of the document that is named."""

    @cached_property
    def dense(self) -> Floats1d:
        """(n_rows,) cosine similarities."""
        vector = np.asarray(self.asked.bundle.embedding)
        return np.asarray(self.chunks.X[self.rows] @ vector / np.linalg.norm(vector))

    @cached_property
    def lexical(self) -> Floats1d:
        """(n_rows,) BM25 scores."""
        return self.chunks.bm25.scores(self.asked.question.text)[self.rows]

    def nodes(self, order: Sequence[int] | Ints1d) -> list[BaseNode]:
        """Return chunks by their places in `rows`."""
        return [self.chunks.nodes[self.rows[i]] for i in order]


def by(scores: Callable[[Searched], Floats1d]) -> Way:
    """Return the way that takes the chunks with the highest scores."""

    def way(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
        searched = Searched(asked)
        return searched.nodes(np.argsort(-scores(searched), kind="stable")[:top_k])

    return way


def evenly_spaced(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
    """Return as many chunks as fit the budget, at equal distances."""
    searched = Searched(asked)
    n = len(searched.rows)
    most = top_k if budget is None else int(budget / searched.chunks.mean_tokens)
    n_kept = min(n, max(1, most))
    return searched.nodes(((np.arange(n_kept) + 0.5) * n / n_kept).astype(np.int64))


def document_summary(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
    """Return the documents that LlamaIndex's `DocumentSummaryIndex` finds, chunk by chunk."""
    within, summaries = asked.question.within, _summaries_of(asked.index)
    n = N_DOCUMENTS if within is None else asked.index.info()["documents"]
    found = summaries.as_retriever(similarity_top_k=n).retrieve(asked.bundle)
    return [each.node for each in found if within in (None, each.node.ref_doc_id)]


def outlined(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
    """Return the outline of the document that is named, or of all, whatever the question."""
    try:
        outline = asked.index.outline(budget or TOKEN_BUDGET, of=asked.question.within)
    except InputError:  # no node fits
        return []
    return [each.node for each in outline]


HIERARCHIES: dict[str, Callable[..., RaptorHierarchy]] = {
    "raptor": partial(RaptorHierarchy, mixture=AS_PUBLISHED),
    "raptor-by-document": partial(RaptorHierarchy, mixture=AS_PUBLISHED, scope="document"),
}


class Trees:
    """Other trees over the documents of a data set, on the chunks and vectors of its index.

    They are built beside the index when they are first used, or found there.
    """

    def __init__(
        self, dataset: Dataset, hierarchies: dict[str, Callable[..., RaptorHierarchy]]
    ) -> None:
        self.texts = dataset.texts
        self._hierarchies, self.opened = hierarchies, dict[str, HierarchicalIndex]()

    def index(self, tree: str, beside: HierarchicalIndex) -> HierarchicalIndex:
        """Return the index of a tree by its name."""
        if tree not in self.opened:
            folder = Path(f"{beside.store.uri}-{tree}")
            if not HierarchyStore(folder).snapshot().exists:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(cache_file(beside.store.uri), cache_file(str(folder)))
                HierarchicalIndex.build(
                    [Document(text=text, id_=name) for name, text in self.texts.items()],
                    folder,
                    hierarchy=self._hierarchies[tree](beside.embed_model),
                )
            self.opened[tree] = HierarchicalIndex.open(folder, beside.embed_model)
        return self.opened[tree]

    def way(self, tree: str, **options: Any) -> Way:
        """Return the way of a retriever of a tree, with these options."""
        of_tree = retrieved(**options)

        def way(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
            return of_tree(replace(asked, index=self.index(tree, asked.index)), top_k, budget)

        return way


def raptor(trees: Trees) -> Way:
    """Return nodes of a RAPTOR tree, collapsed: of the document that is named, or of all."""
    of_all, by_document = (
        trees.way(tree, mode="collapsed") for tree in ("raptor", "raptor-by-document")
    )

    def way(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
        way = of_all if asked.question.within is None else by_document
        return way(asked, top_k, budget)

    return way


def auto_merging(trees: Trees) -> Way:
    """Return what LlamaIndex's `AutoMergingRetriever` makes of the chunks of dense retrieval."""
    storage_of = lru_cache(maxsize=1)(partial(_mergeable, trees.texts))

    def way(asked: Asked, top_k: int, budget: int | None) -> Sequence[BaseNode]:
        searched, storage = Searched(asked), storage_of(asked.index)
        order = np.argsort(-searched.dense, kind="stable")[:top_k]
        leaves = storage.docstore.get_nodes([node.node_id for node in searched.nodes(order)])
        given = _Given(leaves, searched.dense[order])
        return [found.node for found in AutoMergingRetriever(given, storage).retrieve(asked.bundle)]

    return way


def ways_over(dataset: Dataset) -> dict[str, Way]:
    """Return all ways by name."""
    trees = Trees(dataset, HIERARCHIES)
    return {
        "spaced": evenly_spaced,
        "bm25": by(lambda searched: searched.lexical),
        "auto-merging": auto_merging(trees),
        "document-summary": document_summary,
        "raptor": raptor(trees),
        **WAYS,
        "context": retrieved(level=0, by="context"),
        "level-1": retrieved(mode="level", level=1),
        "document": retrieved(mode="document"),
        "outline": outlined,
    }


def part_of(dataset: Dataset, part: str) -> Dataset:
    """Return a data set with the questions of a part."""
    held_out = {
        question.group: int(sha256(question.group.encode()).hexdigest(), 16) % 3 == 0
        for question in dataset.questions
    }
    asked = [q for q in dataset.questions if held_out[q.group] == (part == "held-out")]
    return replace(dataset, questions=asked)


class _Given(BaseRetriever):
    """A retriever that returns what it is given."""

    def __init__(self, nodes: Sequence[BaseNode], scores: Floats1d) -> None:
        super().__init__()
        pairs = zip(nodes, scores.tolist(), strict=True)
        self._found = [NodeWithScore(node=node, score=score) for node, score in pairs]

    def _retrieve(self, query_bundle):
        return self._found


@lru_cache(maxsize=1)
def _summaries_of(index: HierarchicalIndex) -> DocumentSummaryIndex:
    return to_document_summary_index(index)


def _mergeable(texts: dict[str, str], index: HierarchicalIndex) -> StorageContext:
    """Return chunks, and parents of four neighbours each, on two levels, whose text is theirs."""
    storage = StorageContext.from_defaults()
    by_document = groupby(chunks_of(index).passages, key=lambda p: p.spans[0].document)
    for document, passages in by_document:
        source, row = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document)}, list[TextNode]()
        places = [(passage.id, *passage.spans[0][1:3]) for passage in passages]
        for level in range(1 + MERGED_LEVELS):
            children, row = row, []
            for node_id, start, end in places:
                text = texts[document][start:end]
                place = {"start_char_idx": start, "end_char_idx": end}
                row.append(TextNode(id_=node_id, text=text, relationships={**source}, **place))
            _link(row, children)
            storage.docstore.add_documents(children)
            runs = (places[at : at + MERGED] for at in range(0, len(places), MERGED))
            places = [(f"{document}-{level}-{i}", r[0][1], r[-1][2]) for i, r in enumerate(runs)]
        storage.docstore.add_documents(row)
    return storage


def _link(row: Sequence[TextNode], children: Sequence[TextNode]) -> None:
    at = {node.node_id: RelatedNodeInfo(node_id=node.node_id) for node in (*row, *children)}
    for one, other in pairwise(row):
        one.relationships[NodeRelationship.NEXT] = at[other.node_id]
        other.relationships[NodeRelationship.PREVIOUS] = at[one.node_id]
    for i, node in enumerate(row if children else ()):
        below = children[MERGED * i : MERGED * (i + 1)]
        node.relationships[NodeRelationship.CHILD] = [at[child.node_id] for child in below]
        for child in below:
            child.relationships[NodeRelationship.PARENT] = at[node.node_id]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--ways", type=lambda names: names.split(","))
    parser.add_argument("--part", choices=["tuning", "held-out"])
    parser.add_argument("--budgets", type=lambda n: [*map(int, n.split(","))], default=[500, 2000])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--index", help="folder where indices are kept")
    args = parser.parse_args()
    model = load_embed_model()
    with tempfile.TemporaryDirectory() if args.index is None else nullcontext(args.index) as folder:
        for path in args.data:
            dataset = read_labelled(path)
            if args.part:
                dataset = part_of(dataset, args.part)
            ways = ways_over(dataset)
            report = evaluate(
                dataset,
                ways={name: ways[name] for name in args.ways or ways},
                budgets=args.budgets,
                limit=args.limit,
                index=folder,
                embed_model=model,
                measures=further,
            )
            print(f"{report}\n", flush=True)


if __name__ == "__main__":
    main()
