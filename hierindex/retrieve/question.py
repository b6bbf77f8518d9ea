"""A question against a snapshot: searches of all or part of the tree."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

import numpy as np
from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from hierindex.core.ranking import DENSE_SHARE
from hierindex.record import LEVEL, LEVEL_MAX
from hierindex.retrieve.context import COLUMNS, rank_in_context
from hierindex.store.filters import DOCUMENTS, PREFIX
from hierindex.store.nodes import node_of
from hierindex.store.schema import NODE_COLUMNS
from hierindex.store.search import united
from hierindex.store.snapshot import Snapshot

By = Literal["dense", "hybrid", "text", "context"]
BY: tuple[By, ...] = get_args(By)
MODES = {
    "dense": VectorStoreQueryMode.DEFAULT,
    "hybrid": VectorStoreQueryMode.HYBRID,
    "text": VectorStoreQueryMode.TEXT_SEARCH,
}
CANDIDATES = 50  # of each search, at least, to be ranked in context; 100 find no more
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
SHARE_OF_A_NAME = 0.2  # of vectors, if the question is a single word or a name: it is looked up
LONGEST_NAME = 5  # words, or characters in a script without blanks

Part = MetadataFilter | MetadataFilters
"""A part of the tree that a search is restricted to."""


@dataclass(frozen=True)
class Search:
    """A question and the snapshot to search; see `HierarchyRetriever` for the options."""

    snapshot: Snapshot
    question: str
    embedding: list[float]
    by: By = "dense"
    filters: MetadataFilters | None = None
    partial_summaries: bool = False

    async def best(
        self,
        n: int,
        *within: Part,
        among: Sequence[str] | None = None,
        highest_of: frozenset[str] | None = None,
    ) -> list[NodeWithScore]:
        """Return at most n nodes, best first, that pass the filters and lie in all these parts.

        `among` restricts the search further, to the nodes with these ids, and `highest_of` to
        the chunks and the summaries with these ids that have no parent among these summaries.
        """
        filters = self.filters_within(*within)
        if among is not None and not among:
            return []
        if self.by == "context":
            return await self._in_context(n, filters, among, highest_of)
        result = await self.snapshot.query(
            self._query(MODES[self.by], n, filters, among),
            partial_summaries=self.partial_summaries,
            highest_of=highest_of,
        )
        pairs = zip(result.nodes or (), result.similarities or (), strict=True)
        return [NodeWithScore(node=node, score=score) for node, score in pairs]

    def filters_within(self, *parts: Part) -> MetadataFilters | None:
        """Combine the filters of the question with parts of the tree."""
        filters = [*parts, *([] if self.filters is None else [self.filters])]
        return MetadataFilters(filters=filters) if filters else None

    async def _in_context(
        self,
        n: int,
        filters: MetadataFilters | None,
        among: Sequence[str] | None,
        highest_of: frozenset[str] | None,
    ) -> list[NodeWithScore]:
        by_meaning, by_words = await asyncio.gather(
            *(
                self.snapshot.found(
                    self._query(MODES[by], max(n, CANDIDATES), filters, among),
                    *COLUMNS,
                    partial_summaries=self.partial_summaries,
                    highest_of=highest_of,
                )
                for by in ("dense", "text")
            )
        )
        lexical = dict(zip(by_words["id"].to_pylist(), by_words["score"].to_pylist(), strict=True))
        rows = united(by_meaning, by_words, columns=COLUMNS)
        question = np.asarray(self.embedding)
        share = SHARE_OF_A_NAME if is_name(self.question) else DENSE_SHARE
        ranked = rank_in_context(rows, question, lexical, share)
        best = dict(ranked[:n])
        found = await self.snapshot.rows(best, columns=NODE_COLUMNS) if best else []
        return [NodeWithScore(node=node_of(row), score=best[row["id"]]) for row in found]

    def _query(
        self,
        mode: VectorStoreQueryMode,
        n: int,
        filters: MetadataFilters | None,
        among: Sequence[str] | None,
    ) -> VectorStoreQuery:
        return VectorStoreQuery(
            query_embedding=self.embedding,
            query_str=self.question,
            mode=mode,
            similarity_top_k=n,
            filters=filters,
            node_ids=None if among is None else list(among),
        )

    def by_meaning(self) -> Self:
        """Return the same search scored by cosine similarity, comparable between parts."""
        return replace(self, by="dense")


def is_name(question: str) -> bool:
    """Return whether a question is a single word, or up to five that all begin with capitals.

    In scripts without blanks between words, up to five characters are a word.

    >>> is_name("chapter-3.md"), is_name("Jack Ruby"), is_name("pump failures")
    (True, True, False)
    """
    words = question.split()
    if UNSPACED.search(question):
        return len(question) <= LONGEST_NAME
    capital = not any(word[0].islower() for word in words)
    return len(words) == 1 or (capital and len(words) in range(2, LONGEST_NAME + 1))


def cuts(levels: Iterable[int]) -> MetadataFilters:
    """Return a filter for the nodes of these levels, including nodes that passed up to them."""
    return MetadataFilters(filters=list(map(_cut, levels)), condition=FilterCondition.OR)


def _cut(level: int) -> Part:
    down_to = MetadataFilter(key=PREFIX + LEVEL, value=level, operator=FilterOperator.LTE)
    if level == 0:
        return down_to  # every node reaches up to 0
    up_to = MetadataFilter(key=PREFIX + LEVEL_MAX, value=level, operator=FilterOperator.GTE)
    return MetadataFilters(filters=[down_to, up_to])


def of_documents(documents: Sequence[str]) -> MetadataFilter:
    """Return a filter for the nodes with a source in one of these documents."""
    return MetadataFilter(key=DOCUMENTS, value=list(documents), operator=FilterOperator.ANY)
