"""Search at one level of the tree, or at all levels together."""

from typing import Literal

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from hierindex.errors import InputError, LevelError
from hierindex.record import LEVEL, LEVEL_MAX
from hierindex.retrieve.budget import within_budget
from hierindex.store.lance import HierarchyStore

Mode = Literal["collapsed", "level"]
TOP_K = 10
TOKEN_BUDGET = 2000  # RAPTOR's, for collapsed retrieval


class HierarchyRetriever(BaseRetriever):
    """Nodes of a tree that are most similar to a question.

    Parameters
    ----------
    store : HierarchyStore
    embed_model : BaseEmbedding
        The one that the tree was built with.
    mode : {"collapsed", "level"}, optional
        All levels together, or the cut at `level`; by default whichever `level` implies.
    level : int, optional
        0 for chunks, upwards. A node that passed up a level belongs to that cut, too.
    top_k : int
        Nodes at most.
    token_budget : int, optional
        Tokens at most of all nodes together; None for no bound.
    filters : MetadataFilters, optional

    Raises
    ------
    InputError
        If mode and level do not go together, or a number is not positive.
    LevelError
        While retrieving, if the tree has no such level.
    """

    def __init__(
        self,
        store: HierarchyStore,
        embed_model: BaseEmbedding,
        *,
        mode: Mode | None = None,
        level: int | None = None,
        top_k: int = TOP_K,
        token_budget: int | None = TOKEN_BUDGET,
        filters: MetadataFilters | None = None,
    ) -> None:
        super().__init__()
        mode = mode or ("collapsed" if level is None else "level")
        if mode not in ("collapsed", "level"):
            raise InputError(f"mode must be 'collapsed' or 'level', got {mode!r}.")
        if (mode == "level") != (level is not None):
            raise InputError(
                f"mode 'level' needs a level and no other takes one, got {mode!r}, {level}."
            )
        if level is not None and type(level) is not int:
            raise InputError(f"level must be a whole number, got {level!r}.")
        if top_k < 1 or (token_budget is not None and token_budget < 1):
            raise InputError(
                f"top_k and token_budget must be at least 1, got {top_k} and {token_budget}."
            )
        self._store = store
        self._embed_model = embed_model
        self._level = level
        self._top_k = top_k
        self._token_budget = token_budget
        self._filters = filters

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        embedding = query_bundle.embedding or self._embed_model.get_query_embedding(
            query_bundle.query_str
        )
        result = self._store.query(self._query(embedding))
        if not result.ids and self._level is not None:
            check_level(self._level, self._store.columns(LEVEL_MAX)[LEVEL_MAX])
        return self._found(result)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        embedding = query_bundle.embedding or await self._embed_model.aget_query_embedding(
            query_bundle.query_str
        )
        result = await self._store.aquery(self._query(embedding))
        if not result.ids and self._level is not None:
            check_level(self._level, (await self._store.acolumns(LEVEL_MAX))[LEVEL_MAX])
        return self._found(result)

    def _query(self, embedding: list[float]) -> VectorStoreQuery:
        filters: list[MetadataFilter | MetadataFilters] = []
        if self._level is not None:
            filters += [
                MetadataFilter(key=LEVEL, value=self._level, operator=FilterOperator.LTE),
                MetadataFilter(key=LEVEL_MAX, value=self._level, operator=FilterOperator.GTE),
            ]
        if self._filters is not None:
            filters.append(self._filters)
        return VectorStoreQuery(
            query_embedding=embedding,
            similarity_top_k=self._top_k,
            filters=MetadataFilters(filters=filters) if filters else None,
        )

    def _found(self, result: VectorStoreQueryResult) -> list[NodeWithScore]:
        pairs = zip(result.nodes or [], result.similarities or [], strict=True)
        found = [NodeWithScore(node=node, score=score) for node, score in pairs]
        return within_budget(found, self._token_budget)


def check_level(level: int, level_max: list[int]) -> None:
    """Refuse a level that no node reaches.

    Raises
    ------
    LevelError
        Names the levels that there are.
    """
    highest = max(level_max, default=0)
    if not 0 <= level <= highest:
        raise LevelError(f"The index has levels 0 to {highest}, got level {level}.")
