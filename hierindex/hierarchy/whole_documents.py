"""Nodes that hold chunks of one document, and those that summarise it whole."""

from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from hierindex.hierarchy.nodes import Draft
from hierindex.record import FILE_NAME, SECTION, TITLE


class Chunk(NamedTuple):
    """What a chunk says of its document: `section` is the path of its headings, "" for none."""

    document: str
    section: str
    title: Any
    file_name: Any

    @classmethod
    def of(cls, leaf: Draft) -> Self:
        """Return what a leaf says."""
        metadata = leaf.node.metadata
        section = metadata.get(SECTION)
        return cls(
            leaf.record.documents[0],
            section if isinstance(section, str) else "",
            metadata.get(TITLE),
            metadata.get(FILE_NAME),
        )


Chunks = Mapping[str, Chunk]
"""Chunks by id, in order."""


def chunks_of(drafts: Iterable[Draft]) -> dict[str, Chunk]:
    """Return the chunks among nodes."""
    return {draft.id: Chunk.of(draft) for draft in drafts if draft.record.level == 0}


def documents_alone(drafts: Iterable[Draft]) -> set[str]:
    """Return the documents of the nodes that have text of one document only."""
    return {d.record.documents[0] for d in drafts if len(d.record.documents) == 1}


def chunks_of_one_document(
    drafts: Sequence[Draft], documents: Container[str], chunks: Chunks
) -> dict[str, Chunks]:
    """Return the chunks under each node that holds chunks of a single document.

    Parameters
    ----------
    drafts : Sequence[Draft]
        All nodes above the chunks that hold chunks of one of the documents alone, children before
        their parents. Others are ignored.
    documents : Container[str]
    chunks : Chunks
        All chunks of these documents.

    Returns
    -------
    dict[str, Chunks]
        By the node's id, each chunk once, in order. A chunk is under itself.
    """
    under: dict[str, Chunks] = {}
    for draft in drafts:
        if len(draft.record.documents) > 1 or draft.record.documents[0] not in documents:
            continue
        if draft.record.level == 0:
            under[draft.id] = {draft.id: chunks[draft.id]}
            continue
        found: dict[str, Chunk] = {}
        for child in draft.children:
            found |= under[child] if child in under else {child: chunks[child]}
        under[draft.id] = found
    return under


def note_whole_documents(
    drafts: Sequence[Draft], under: Mapping[str, Collection[str]], chunks: Chunks
) -> None:
    """Set `whole_document` on the highest node that holds all chunks of one document only.

    Parameters
    ----------
    drafts : Sequence[Draft]
    under : Mapping
        See `chunks_of_one_document`; other nodes stay as they are.
    chunks : Chunks
    """
    n_chunks = Counter(chunk.document for chunk in chunks.values())
    for draft in drafts:
        if draft.id not in under:
            continue
        document = draft.record.documents[0]
        is_highest = not any(parent in under for parent, _ in draft.record.parents)
        is_whole = is_highest and len(under[draft.id]) == n_chunks[document]
        draft.note(whole_document=document if is_whole else "")
