"""A vector store whose methods are written once, async."""

from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar, cast

from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, run on LanceDB's own event loop.

    LanceDB's sync interface does the same. The loop has a thread of its own, so that this
    also works where a loop is running, as in a notebook.
    """
    from lancedb.background_loop import LOOP

    return cast(T, LOOP.run(work))  # type: ignore[no-untyped-call]


class AsyncFirstStore(BasePydanticVectorStore):
    """The sync twins of LlamaIndex's async vector store methods."""

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """See `async_add`."""
        return wait_for(self.async_add(nodes))

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """See `adelete`."""
        wait_for(self.adelete(ref_doc_id))

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """See `adelete_nodes`."""
        wait_for(self.adelete_nodes(node_ids, filters))

    def clear(self) -> None:
        """See `aclear`."""
        wait_for(self.aclear())

    def get_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **kwargs: Any,
    ) -> list[BaseNode]:
        """See `aget_nodes`."""
        return wait_for(self.aget_nodes(node_ids, filters, **kwargs))

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """See `aquery`."""
        return wait_for(self.aquery(query, **kwargs))
