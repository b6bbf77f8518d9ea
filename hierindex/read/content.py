"""Digests of what documents say, by which an index finds changed and renamed ones."""

import json
from pathlib import Path

from llama_index.core.schema import Document

from hierindex.core.identity import digest
from hierindex.record import FILE_NAME, MODIFIED, TITLE

FILE_PATH = "file_path"  # LlamaIndex's
FOLDER = "folder"
SHOWN = {  # fields of a document that determine how its chunks show metadata
    "excluded_embed_metadata_keys",
    "excluded_llm_metadata_keys",
    "metadata_separator",
    "metadata_template",
    "text_template",
}


def named_by(document_id: str) -> dict[str, str]:
    """Return the metadata that the id of a file's document determines."""
    path = Path(document_id)
    return {FILE_NAME: path.name, FILE_PATH: document_id, FOLDER: path.parent.as_posix()}


def content_hash(document: Document) -> str:
    """Return a digest of a document's text and metadata, equal for a file that was renamed.

    It covers what determines the document's chunks, except its id and the day when its file was
    last modified.
    """
    named = named_by(document.doc_id)
    named[TITLE] = named[FILE_NAME]  # of files without a title of their own
    metadata = document.metadata.items()
    covered = {k: v for k, v in metadata if k != MODIFIED and named.get(k) != v}
    shown = document.model_dump(include=SHOWN)
    return digest("document", document.text, json.dumps([covered, shown], default=str))
