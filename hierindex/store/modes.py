"""LlamaIndex's query modes for one table."""

import math
from typing import TYPE_CHECKING, Any

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from hierindex.errors import InputError
from hierindex.store.search import DEPTH, Scope, diverse, fused, matching, nearest

if TYPE_CHECKING:
    import pyarrow as pa

Mode = VectorStoreQueryMode
MODES = (Mode.DEFAULT, Mode.HYBRID, Mode.TEXT_SEARCH, Mode.MMR)
ALPHA = 0.5
MMR_THRESHOLD = 0.5  # LlamaIndex's
MMR_PREFETCH_FACTOR = 4.0  # LlamaIndex's


async def answer(scope: Scope, query: VectorStoreQuery, **options: Any) -> "pa.Table":
    """Run a query and return its rows, best first, with their `score`.

    Parameters
    ----------
    scope : Scope
    query : VectorStoreQuery
        Validated by `check_query`.
    **options
        `mmr_prefetch_k`, the number of candidates for mmr, or `mmr_prefetch_factor`, that number
        divided by top k.
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
            rows = await fused(
                scope,
                vector_of(query),
                words_of(query),
                dense=top_k if query.hybrid_top_k else max(top_k, DEPTH),
                sparse=query.sparse_top_k or max(top_k, DEPTH),
                alpha=ALPHA if query.alpha is None else query.alpha,
            )
            return rows[: query.hybrid_top_k or top_k]
    return await nearest(scope, vector_of(query), top_k)


def check_query(query: VectorStoreQuery) -> None:
    """Raise InputError if a mode is unsupported or lacks its input, or a number is out of range."""
    if query.mode not in MODES:
        *others, last = (repr(mode.value) for mode in MODES)
        raise InputError(
            f"query mode must be {', '.join(others)} or {last}, got {query.mode.value!r}."
        )
    for name in ("similarity_top_k", "sparse_top_k", "hybrid_top_k"):
        value = getattr(query, name)
        if value is not None and value < 1:
            raise InputError(f"{name} must be at least 1, got {value}.")
    for name in ("alpha", "mmr_threshold"):
        value = getattr(query, name)
        if value is not None and not 0 <= value <= 1:
            raise InputError(f"{name} must be in [0, 1], got {value}.")
    if query.mode != Mode.TEXT_SEARCH:
        vector_of(query)
    if query.mode in (Mode.TEXT_SEARCH, Mode.HYBRID):
        words_of(query)


def vector_of(query: VectorStoreQuery) -> list[float]:
    """Return a query's embedding; raise InputError if it is missing, all zero or not finite."""
    vector = query.query_embedding
    if not vector or not any(vector) or not all(map(math.isfinite, vector)):
        raise InputError("A query needs an embedding of finite numbers, not all zero.")
    return vector


def words_of(query: VectorStoreQuery) -> str:
    """Return a query's text; raise InputError if it is missing."""
    if query.query_str is None:
        raise InputError(f"A query in mode {query.mode.value!r} needs a query_str.")
    return query.query_str
