"""The trees over a data set, and a question put to them."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode, Document, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.cache.file import cache_file
from hierindex.core.bounds import Caps
from hierindex.core.membership import Floats1d, Ints1d
from hierindex.core.mixture import Mixture
from hierindex.core.rows import Rows
from hierindex.embed.embedder import unit_vectors
from hierindex.embed.model_identity import fingerprint
from hierindex.errors import InputError
from hierindex.evaluate.datasets import Dataset, Question
from hierindex.evaluate.measures import Passage, count_tokens
from hierindex.hierarchy.hierarchy import Hierarchy
from hierindex.hierarchy.transforms import RaptorHierarchy, SemanticHierarchy
from hierindex.index import HierarchicalIndex
from hierindex.progress import Progress
from hierindex.read.split import sentence_splitter
from hierindex.retrieve.question import cuts
from hierindex.store.vector_store import HierarchyStore

OURS = "semantic"


@dataclass(frozen=True)
class EvenRuns:
    """A rule that cuts a document after every `rows` chunks, whatever they say."""

    rows: int = 6  # children of a parent of the default tree, on average

    def breakpoints(self, rows: Rows, caps: Caps) -> Ints1d:
        """Return the gaps to cut."""
        return np.arange(self.rows - 1, len(rows) - 1, self.rows)


AS_PUBLISHED = Mixture(target_size=None, min_weight=0.1)  # groups by BIC, RAPTOR's overlap
HIERARCHIES: dict[str, Callable[..., Hierarchy]] = {
    OURS: SemanticHierarchy,
    "raptor": partial(RaptorHierarchy, mixture=AS_PUBLISHED),
    "raptor-by-document": partial(RaptorHierarchy, mixture=AS_PUBLISHED, scope="document"),
    "contiguous": partial(SemanticHierarchy, rule=EvenRuns()),
}


class Trees:
    """The trees over a data set, on the same chunks and vectors.

    They are built in a folder when they are first used, or found there if the documents, the
    model and the chunk size are the same.
    """

    def __init__(
        self,
        dataset: Dataset,
        folder: Path,
        embed_model: BaseEmbedding,
        chunk_size: int | None,
        progress: Progress,
    ) -> None:
        self.name = dataset.name
        self.texts = {document.doc_id: document.text for document in dataset.documents}
        self.embed_model, self._chunk_size = embed_model, chunk_size
        self._progress, self._built = progress, dict[str, HierarchicalIndex]()
        model = fingerprint(embed_model) or embed_model.model_name
        digest = sha256(json.dumps([self.texts, model, chunk_size]).encode()).hexdigest()
        self._folder = folder / f"{dataset.name}-{digest[:8]}"

    def index(self, tree: str = OURS) -> HierarchicalIndex:
        """Return the index of a tree, one of `HIERARCHIES`."""
        if tree not in self._built:
            folder = self._folder / tree
            if not HierarchyStore(folder).snapshot().exists:
                self._build(tree, folder)
            self._built[tree] = HierarchicalIndex.open(folder, self.embed_model)
        return self._built[tree]

    def _build(self, tree: str, folder: Path) -> None:
        if tree != OURS:  # the vectors of chunks and sentences are the same
            self.index()
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(cache_file(str(self._folder / OURS)), cache_file(str(folder)))

        def shown(stage: str, done: int, total: int, cost: str = "", /) -> None:
            self._progress(f"{self.name}: {tree}, {stage}", done, total, cost)

        HierarchicalIndex.build(
            [Document(text=text, id_=name) for name, text in self.texts.items()],
            folder,
            hierarchy=HIERARCHIES[tree](self.embed_model),
            splitter=sentence_splitter(self.embed_model, self._chunk_size),
            progress=shown,
        )

    @cached_property
    def chunks(self) -> "Chunks":
        """The chunks, which all trees share."""
        return Chunks(self.index().store.get_nodes(filters=MetadataFilters(filters=[cuts([0])])))


class Chunks:
    """Chunks in reading order, with their places and unit vectors."""

    def __init__(self, nodes: Sequence[BaseNode]) -> None:
        passages = {node.node_id: Passage.of(node) for node in nodes}
        self.nodes = sorted(nodes, key=lambda node: passages[node.node_id].spans[0][:3])
        self.passages = [passages[node.node_id] for node in self.nodes]
        self.document = np.array([passage.spans[0].document for passage in self.passages])
        self.X = unit_vectors([node.get_embedding() for node in self.nodes])  # (n_chunks, n_dims)
        self.mean_tokens = fmean(count_tokens(passage.text) for passage in self.passages)
        self.bm25 = Bm25([passage.text for passage in self.passages])


class Bm25:
    """BM25 of texts, by stemmed words without English stop words."""

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


class Asked:
    """A question put to trees, with its scores of the chunks that it may be answered from."""

    def __init__(self, question: Question, trees: Trees) -> None:
        self.question, self.trees, self.chunks = question, trees, trees.chunks
        self.vector = trees.embed_model.get_query_embedding(question.text)
        document, within = self.chunks.document, question.within
        searched = np.full(len(document), True) if within is None else document == within
        self.rows = np.flatnonzero(searched)
        """(n_rows,) chunks that are searched: all, or those of the document that is named."""

    @property
    def bundle(self) -> QueryBundle:
        """The question as LlamaIndex's retrievers take it."""
        return QueryBundle(self.question.text, embedding=self.vector)

    @cached_property
    def dense(self) -> Floats1d:
        """(n_rows,) cosine similarities."""
        vector = np.asarray(self.vector)
        return np.asarray(self.chunks.X[self.rows] @ vector / np.linalg.norm(vector))

    @cached_property
    def lexical(self) -> Floats1d:
        """(n_rows,) BM25 scores."""
        return self.chunks.bm25.scores(self.question.text)[self.rows]

    def nodes(self, order: Sequence[int] | Ints1d) -> list[BaseNode]:
        """Return chunks by their places in `rows`."""
        return [self.chunks.nodes[self.rows[i]] for i in order]


Way = Callable[[Asked, int, int | None], Sequence[BaseNode]]
"""A way to retrieve. It gets a question, a number of nodes that is enough, and the token budget
(None where a ranking is measured), and returns nodes in order; what exceeds the budget is skipped.
"""
