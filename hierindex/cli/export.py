"""Export functions by format."""

from collections.abc import Callable
from pathlib import Path

from hierindex.export.document_summary import persist_document_summary_index
from hierindex.export.parquet import to_parquet
from hierindex.export.tree_json import to_json
from hierindex.index import HierarchicalIndex

WRITERS: dict[str, Callable[[HierarchicalIndex, Path], int]] = {
    "document-summary": persist_document_summary_index,
    "parquet": to_parquet,
    "json": to_json,
}
