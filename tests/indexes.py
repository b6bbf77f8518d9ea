"""Small indexes that the fake embedding model builds, and filters on their metadata."""

from pathlib import Path
from typing import Any

from fakes import HashingEmbedding
from llama_index.core.schema import Document
from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    RaptorHierarchy,
    SemanticHierarchy,
)

Hierarchy = SemanticHierarchy | RaptorHierarchy | DocumentHierarchy


def documents_of(texts: dict[str, str]) -> list[Document]:
    """Documents without metadata, from texts by id."""
    return [Document(id_=name, text=text) for name, text in texts.items()]


def built(
    sources: Any,
    uri: Path,
    kind: Any = SemanticHierarchy,
    *,
    model: Any = None,
    chunk_size: int | None = None,
    splitter: Any = None,
    **options: Any,
) -> HierarchicalIndex:
    """Build an index of sources, or of texts by id; `options` are those of the hierarchy."""
    if isinstance(sources, dict):
        sources = documents_of(sources)
    hierarchy = kind(HashingEmbedding() if model is None else model, **options)
    return HierarchicalIndex.build(
        sources, uri, hierarchy=hierarchy, chunk_size=chunk_size, splitter=splitter
    )


def where(
    operator: str = "==", condition: FilterCondition = FilterCondition.AND, **values: Any
) -> MetadataFilters:
    """Filters that compare each key with its value."""
    filters = [MetadataFilter(key=k, value=v, operator=operator) for k, v in values.items()]
    return MetadataFilters(filters=filters, condition=condition)
