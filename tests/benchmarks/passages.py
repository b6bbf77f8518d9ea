"""Passages of the evaluation data in reading order, from an index that is built or found."""

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from llama_index.core import Document
from llama_index.core.node_parser import TextSplitter
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from nltk.stem.snowball import SnowballStemmer
from scipy.sparse import csr_array

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy, load_embed_model
from hierindex.record import NodeRecord
from hierindex.split import PlacedSentenceSplitter, split_stretches

PARAGRAPHS = ("squad", "hotpotqa100")  # sets whose passages are paragraphs
CHUNK_WORDS = 110
WORD = re.compile(r"\w+")
STOP = {*"a an and are as at be but by for if in into is it no not of on or such that the".split()}
STOP |= {*"their then there these they this to was will with".split()}
stem = cache(SnowballStemmer("english").stem)


class Paragraphs(TextSplitter):
    def split_text(self, text: str) -> list[str]:
        return text.split("\n\n")


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()]


def words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def plain(text: str) -> str:
    return f" {' '.join(words(text))} "


def trigrams(text: str) -> set:
    found = words(text)
    return {*zip(found, found[1:], found[2:], strict=False)}


def terms(text: str) -> list[str]:
    return [stem(word) for word in words(text) if word not in STOP]


def bm25_weights(texts: list[str]) -> tuple[csr_array, dict[str, int]]:
    """BM25 weights of terms in texts, and the terms' columns."""
    counts = [Counter(terms(text)) for text in texts]
    column = {t: i for i, t in enumerate(dict.fromkeys(t for c in counts for t in c))}
    n_terms = np.array([sum(c.values()) for c in counts])
    rows = np.repeat(np.arange(len(counts)), [len(c) for c in counts])
    columns = np.array([column[t] for c in counts for t in c], dtype=np.int64)
    n = np.array([k for c in counts for k in c.values()], dtype=float)
    df = np.bincount(columns, minlength=len(column))
    idf = np.log(1 + (len(counts) - df + 0.5) / (df + 0.5))
    norm = 1.2 * (0.25 + 0.75 * n_terms / n_terms.mean())
    weights = idf[columns] * n * 2.2 / (n + norm[rows])
    return csr_array((weights, (rows, columns)), shape=(len(counts), len(column))), column


def bm25(weights: tuple[csr_array, dict[str, int]], question: str) -> np.ndarray:
    M, column = weights
    asked = np.zeros(M.shape[1])
    for term in terms(question):
        if term in column:
            asked[column[term]] += 1
    return M @ asked


@dataclass
class Passages:
    """The chunks of an index in reading order."""

    index: HierarchicalIndex

    def __post_init__(self) -> None:
        level = MetadataFilter(key="level", value=0)
        nodes = self.index.store.get_nodes(filters=MetadataFilters(filters=[level]))
        spans = [NodeRecord.from_metadata(node.metadata).citations for node in nodes]
        order = sorted(range(len(nodes)), key=lambda i: (spans[i][0].document, spans[i][0].start))
        self.nodes = [nodes[i] for i in order]
        self.document = np.array([spans[i][0].document for i in order])
        self.start = np.array([spans[i][0].start for i in order])
        self.end = np.array([spans[i][-1].end for i in order])
        self.row = {node.node_id: row for row, node in enumerate(self.nodes)}
        self.text = [node.text for node in self.nodes]
        records = [NodeRecord.from_metadata(node.metadata) for node in self.nodes]
        self.n_tokens = np.array([record.n_tokens for record in records])
        self.X = np.array([node.embedding for node in self.nodes])

    @cached_property
    def weights(self) -> tuple[csr_array, dict[str, int]]:
        return bm25_weights(self.text)

    def bm25(self, question: str) -> np.ndarray:
        return bm25(self.weights, question)

    def fill(self, rows: np.ndarray, budget: int) -> list[int]:
        """What of these fits, best first."""
        kept = []
        for row in rows:
            if self.n_tokens[row] <= budget:
                kept.append(int(row))
                budget -= self.n_tokens[row]
        return kept


def built(folder: Path, name: str, uri: Path) -> Passages:
    model = load_embed_model()
    by_words = PlacedSentenceSplitter(
        chunk_size=CHUNK_WORDS,
        chunk_overlap=0,
        tokenizer=str.split,
        chunking_tokenizer_fn=split_stretches,
    )
    documents = [
        Document(text=d["text"], id_=d["doc_id"]) for d in read(folder / "documents.jsonl")
    ]
    if not HierarchyStore(uri / name).snapshot().exists:
        splitter = Paragraphs() if name in PARAGRAPHS else by_words
        hierarchy = SemanticHierarchy(model)
        HierarchicalIndex.build(documents, uri / name, hierarchy=hierarchy, splitter=splitter)
    return Passages(HierarchicalIndex.open(uri / name, model))
