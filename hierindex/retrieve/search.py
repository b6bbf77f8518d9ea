"""One question put to a store: the nodes that are most like it, of some part of the tree."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from hierindex.record import LEVEL, LEVEL_MAX
from hierindex.retrieve.context import Candidate, rank_in_context
from hierindex.store.snapshot import Snapshot

By = Literal["dense", "hybrid", "text", "context"]
BY: tuple[By, ...] = get_args(By)
MODES = {
    "dense": VectorStoreQueryMode.DEFAULT,
    "hybrid": VectorStoreQueryMode.HYBRID,
    "text": VectorStoreQueryMode.TEXT_SEARCH,
}
CANDIDATES = 100  # of each search, whose contexts are compared

Part = MetadataFilter | MetadataFilters
"""Of a tree: what a search stays within."""


@dataclass(frozen=True)
class Search:
    """A question and what it is put to; `by` says what counts: see `HierarchyRetriever`."""

    snapshot: Snapshot
    question: str
    embedding: list[float]
    by: By = "dense"
    filters: MetadataFilters | None = None
    partial_summaries: bool = False

    async def best(
        self, n: int, *within: Part, among: Sequence[str] | None = None
    ) -> list[NodeWithScore]:
        """At most n nodes, best first, that pass the filters and are of these parts.

        With `among`, also of the nodes with these ids.
        """
        parts = [*within, *([] if self.filters is None else [self.filters])]
        filters = MetadataFilters(filters=parts) if parts else None
        if among is not None and not among:
            return []
        if self.by == "context":
            return (await self._in_context(filters, among))[:n]
        return await self._asked(MODES[self.by], n, filters, among)

    async def _in_context(
        self, filters: MetadataFilters | None, among: Sequence[str] | None
    ) -> list[NodeWithScore]:
        """What is found by meaning and by words, each with what stands around it."""
        by_meaning, by_words = await asyncio.gather(
            self._asked(MODES["dense"], CANDIDATES, filters, among),
            self._asked(MODES["text"], CANDIDATES, filters, among),
        )
        dense = {node.node_id: node.get_score() for node in by_meaning}
        lexical = {node.node_id: node.get_score() for node in by_words}
        nodes = {node.node_id: node.node for node in [*by_meaning, *by_words]}
        candidates = [
            Candidate(node, dense.get(node_id), lexical.get(node_id, 0.0))
            for node_id, node in nodes.items()
        ]
        ranked = await rank_in_context(
            self.snapshot,
            candidates,
            self.embedding,
            filters=filters,
            partial_summaries=self.partial_summaries,
        )
        allowed = None if among is None else set(among)
        return [node for node in ranked if allowed is None or node.node_id in allowed]

    async def _asked(
        self,
        mode: VectorStoreQueryMode,
        n: int,
        filters: MetadataFilters | None,
        among: Sequence[str] | None,
    ) -> list[NodeWithScore]:
        result = await self.snapshot.query(
            VectorStoreQuery(
                query_embedding=self.embedding,
                query_str=self.question,
                mode=mode,
                similarity_top_k=n,
                filters=filters,
                node_ids=None if among is None else list(among),
            ),
            partial_summaries=self.partial_summaries,
        )
        pairs = zip(result.nodes or (), result.similarities or (), strict=True)
        return [NodeWithScore(node=node, score=score) for node, score in pairs]

    def by_meaning(self) -> Self:
        """The same with scores that are cosines, comparable between parts of the tree."""
        return replace(self, by="dense")


def cuts(levels: Iterable[int]) -> MetadataFilters:
    """The nodes of the cuts at these levels; one that passed up a level is of that cut, too."""
    return MetadataFilters(filters=list(map(_cut, levels)), condition=FilterCondition.OR)


def _cut(level: int) -> Part:
    down_to = MetadataFilter(key=LEVEL, value=level, operator=FilterOperator.LTE)
    if level == 0:
        return down_to  # every node reaches up to 0
    up_to = MetadataFilter(key=LEVEL_MAX, value=level, operator=FilterOperator.GTE)
    return MetadataFilters(filters=[down_to, up_to])


def of(documents: Sequence[str]) -> MetadataFilter:
    """The nodes that stand on one of these documents."""
    return MetadataFilter(key="documents", value=list(documents), operator=FilterOperator.ANY)
