"""What comes in from outside, checked before LanceDB sees it."""

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from hierindex.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.expr import Expr


def by_ids(node_ids: Collection[str]) -> "Expr":
    """The filter for these ids."""
    from lancedb.expr import col

    return col("id").isin(sorted(node_ids) or [""])  # no node has an empty id


def vector_of(query: VectorStoreQuery) -> list[float]:
    """A query's embedding.

    Raises
    ------
    InputError
        If the mode is not `default`, or the embedding is missing, all zero or not finite.
    """
    if query.mode != VectorStoreQueryMode.DEFAULT:
        raise InputError(f"query mode must be 'default', got {query.mode.value!r}.")
    vector = query.query_embedding
    if not vector or not any(vector) or not all(map(math.isfinite, vector)):
        raise InputError("A query needs an embedding of finite numbers, not all zero.")
    return vector


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
