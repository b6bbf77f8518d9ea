"""Conversion of nodes to LangChain documents, and the LangChain retriever."""

from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, NodeWithScore

from hierindex.retrieve.retrieved import RetrievedNode
from hierindex.retrieve.retriever import HierarchyRetriever
from hierindex.store.description import describe


def document_of(node: BaseNode, **more: Any) -> Document:
    """Convert a node to a document with additional metadata."""
    values = describe(node)
    keys = ("text", "id", "title", "metadata")
    text, node_id, title, metadata = (values.pop(key) for key in keys)
    own = {**values, "node_title": title}  # `title` is the document's
    return Document(text, id=node_id, metadata={**metadata, **own, **more})


class HierarchyDocumentRetriever(BaseRetriever):
    """A LangChain retriever that wraps a `HierarchyRetriever`."""

    retriever: HierarchyRetriever

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_found(node) for node in self.retriever.retrieve(query)]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [_found(node) for node in await self.retriever.aretrieve(query)]


def _found(found: NodeWithScore) -> Document:
    path = found.path if isinstance(found, RetrievedNode) else []
    return document_of(found.node, score=found.score, path=path)
