"""LlamaIndex's query modes on one table."""

from typing import TYPE_CHECKING, Any

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from hierindex.store.checks import vector_of, words_of
from hierindex.store.search import DEPTH, Scope, diverse, fused, matching, nearest, reranked

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.rerankers import Reranker

Mode = VectorStoreQueryMode
ALPHA = 0.5
MMR_THRESHOLD = 0.5  # LlamaIndex's
MMR_PREFETCH_FACTOR = 4.0  # LlamaIndex's


async def answer(
    scope: Scope, query: VectorStoreQuery, reranker: "Reranker | None", **options: Any
) -> "pa.Table":
    """The rows that a query asks for, best first, with their `score`.

    Parameters
    ----------
    scope : Scope
    query : VectorStoreQuery
        One that `check_query` lets pass.
    reranker : Reranker, optional
        Of the mode hybrid.
    **options
        `mmr_prefetch_k`, or `mmr_prefetch_factor` of top k: how many rows mmr chooses from.
    """
    top_k = query.similarity_top_k
    match query.mode:
        case Mode.TEXT_SEARCH:
            return await matching(scope, words_of(query), query.sparse_top_k or top_k)
        case Mode.MMR:
            factor = options.get("mmr_prefetch_factor") or MMR_PREFETCH_FACTOR
            candidates = options.get("mmr_prefetch_k") or int(top_k * factor)
            threshold = MMR_THRESHOLD if query.mmr_threshold is None else query.mmr_threshold
            return await diverse(
                scope,
                vector_of(query),
                top_k,
                candidates=max(candidates, top_k),
                threshold=threshold,
            )
        case Mode.HYBRID:
            return await _hybrid(scope, query, reranker)
    return await nearest(scope, vector_of(query), top_k)


async def _hybrid(scope: Scope, query: VectorStoreQuery, reranker: "Reranker | None") -> "pa.Table":
    top_k = query.similarity_top_k
    n_rows = query.hybrid_top_k or top_k
    vector, words = vector_of(query), words_of(query)
    if reranker is not None:
        deep = max(n_rows, top_k, query.sparse_top_k or 0)
        return (await reranked(scope, vector, words, deep, reranker)).slice(0, n_rows)
    rows = await fused(
        scope,
        vector,
        words,
        dense=top_k if query.hybrid_top_k else max(top_k, DEPTH),
        sparse=query.sparse_top_k or max(top_k, DEPTH),
        alpha=ALPHA if query.alpha is None else query.alpha,
    )
    return rows.slice(0, n_rows)


def check_query(query: VectorStoreQuery) -> None:
    """Refuse a query without what its mode needs, before any table is opened.

    Raises
    ------
    InputError
        See `vector_of` and `words_of`.
    """
    if query.mode != Mode.TEXT_SEARCH:
        vector_of(query)
    if query.mode in (Mode.TEXT_SEARCH, Mode.HYBRID):
        words_of(query)
