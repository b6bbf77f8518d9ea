"""What comes in from outside, checked before LanceDB sees it."""

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from hierindex.errors import InputError

Mode = VectorStoreQueryMode
MODES = (Mode.DEFAULT, Mode.HYBRID, Mode.TEXT_SEARCH, Mode.MMR)

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.expr import Expr


def by_ids(node_ids: Collection[str]) -> "Expr":
    """The filter for these ids."""
    from lancedb.expr import col

    ids = sorted(node_id for node_id in node_ids if is_unicode(node_id))
    return col("id").isin(ids or [""])  # no node has an empty id


def is_unicode(text: str) -> bool:
    """Whether a table can hold a text: half of a surrogate pair is none."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def at_least(level: int) -> "Expr":
    """The filter for nodes of this level and those above."""
    from lancedb.expr import col, lit

    return col("level") >= lit(level)


def is_chunk() -> "Expr":
    """The filter for nodes of level 0."""
    from lancedb.expr import col, lit

    return col("level") == lit(0)


def vector_of(query: VectorStoreQuery) -> list[float]:
    """A query's embedding.

    Raises
    ------
    InputError
        If it is missing, all zero or not finite.
    """
    vector = query.query_embedding
    if not vector or not any(vector) or not all(map(math.isfinite, vector)):
        raise InputError("A query needs an embedding of finite numbers, not all zero.")
    return vector


def words_of(query: VectorStoreQuery) -> str:
    """A query's text.

    Raises
    ------
    InputError
        If there is none.
    """
    if query.query_str is None:
        raise InputError(f"A query in mode {query.mode.value!r} needs a query_str.")
    return query.query_str


def check_mode(query: VectorStoreQuery) -> None:
    """Refuse what is no way of searching this store.

    Raises
    ------
    InputError
        Names the modes there are, or the number that is out of bounds.
    """
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


def check_dimension(schema: "pa.Schema", n_dims: int, whose: str) -> None:
    """Refuse vectors of another dimension than the table's.

    Raises
    ------
    InputError
        Names both.
    """
    held = schema.field("vector").type.list_size
    if n_dims != held:
        raise InputError(
            f"The index holds vectors of {held} dimensions, {whose} {n_dims}; use the embedding "
            "model that it was built with, or another folder."
        )
