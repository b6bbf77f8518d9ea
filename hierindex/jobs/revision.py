"""A revision of an index: its documents as stored, read and changed, and the state it stores."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from hierindex.errors import InputError
from hierindex.models.record import Usage
from hierindex.node import Node
from hierindex.read.documents import FileContent, content_hash
from hierindex.read.files import File, Skipped
from hierindex.store.filters import CHUNKS, of_documents
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.store.temporary_files import WaitingFile

if TYPE_CHECKING:
    from llama_index.core.schema import Document

CHUNK = 800  # characters, about


class ReadDocument(NamedTuple):
    """A document that was read, without its text.

    Attributes
    ----------
    doc_id : str
    document_hash : str
        See `content_hash`.
    n_chunks : int
        Approximate number of chunks.
    file : FileContent
    load : callable
        Returns the document.
    """

    doc_id: str
    document_hash: str
    n_chunks: int
    file: FileContent
    load: "Callable[[], Document]"

    @classmethod
    def of(cls, document: "Document", load: "Callable[[], Document] | None" = None) -> Self:
        """Describe a document; without `load`, it is kept in memory."""
        load = load or (lambda: document)
        n_chunks, file = 1 + len(document.text) // CHUNK, FileContent.of(document)
        return cls(document.doc_id, content_hash(document), n_chunks, file, load)


InFile = tuple[str, "list[Document | Skipped]"]
"""The documents in a file, with the file's id."""

EachFile = Callable[[Mapping[str, File]], Iterable[InFile]]
"""Reads files by document id."""


ReadFiles = Callable[[Mapping[str, File]], tuple[list[ReadDocument], list[Skipped]]]
"""Reads files by document id; returns the documents and the files that are skipped, in order."""


@contextmanager
def file_reader(table: Table, each_file: EachFile) -> Iterator[ReadFiles]:
    """Yield a function that reads files; the documents are kept in a temporary file of the index.

    Parameters
    ----------
    table : Table
        The index.
    each_file : callable
        Reads files and yields the documents of each with its id.
    """
    with WaitingFile(table.connection) as waiting:

        def described(document: "Document") -> ReadDocument:
            of, number = type(document), waiting.append(document.to_dict())
            return ReadDocument.of(document, lambda: of.from_dict(waiting[number]))

        def read(files: Mapping[str, File]) -> tuple[list[ReadDocument], list[Skipped]]:
            found = {
                file: [each if isinstance(each, Skipped) else described(each) for each in inside]
                for file, inside in each_file(files)
            }
            every = [each for file in files for each in found[file]]
            return (
                [each for each in every if isinstance(each, ReadDocument)],
                [each for each in every if isinstance(each, Skipped)],
            )

        yield read


class Origin(NamedTuple):
    """The content hash of a document and the source that it was read from; "" if unknown."""

    document_hash: str = ""
    read_from: str = ""


Documents = Mapping[str, Origin]
"""The documents of an index by id, in the order of its tree."""


@dataclass(frozen=True)
class Remembered:
    """The state that a build stores in the index for later updates.

    `sources` are absolute paths. `settings` are those of the hierarchy and the splitter, see
    `settings_of`. `left_out` maps each source to the digests of ids of documents that were deleted
    from the index.
    """

    sources: Sequence[str] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)
    left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """Read it from the report of the last build; empty if a pipeline made the index."""
        report = snapshot.report()
        fields = {name: report[name] for name in cls.__dataclass_fields__ if name in report}
        return cls(**fields)


@dataclass(frozen=True)
class ChangedDocuments:
    """Ids of the documents that were added, changed, removed and renamed.

    A document that was removed and added again with the same content under another id counts as
    renamed only; `renamed` has pairs of its old and new id.
    """

    added: Sequence[str] = ()
    changed: Sequence[str] = ()
    removed: Sequence[str] = ()
    renamed: Sequence[tuple[str, str]] = ()

    @classmethod
    def between(cls, before: Documents, after: Documents) -> Self:
        """Compare two states; a document with an unknown hash has changed if it was read again."""
        both = before.keys() & after.keys()
        gone = defaultdict[str, list[str]](list)  # ids by known hash
        for document, origin in before.items():
            if document not in both and origin.document_hash:
                gone[origin.document_hash].append(document)
        new = [document for document in after if document not in both]
        old_id = {d: ids.pop(0) for d in new if (ids := gone.get(after[d].document_hash))}
        known = both | {*old_id.values()}
        return cls(
            added=[document for document in new if document not in old_id],
            changed=[
                document
                for document, origin in after.items()
                if document in both and origin.document_hash != before[document].document_hash
            ],
            removed=[document for document in before if document not in known],
            renamed=[(old, new) for new, old in old_id.items()],
        )


@dataclass(frozen=True)
class Revision:
    """The documents that an index will hold next.

    A build reads all documents and keeps none. An update reads changed documents and keeps the
    others unchanged. A deletion reads none.

    Attributes
    ----------
    before, after : Documents
        The documents that the index holds, and those that it will hold.
    read : Sequence[ReadDocument]
        The documents of `after` that are split again; the others are kept.
    skipped : Sequence[Skipped]
    was, remembered : Remembered
        The state stored in the index before and after, except for the settings.
    anew : bool
        Whether the whole tree is grown again, even if no document changes.
    """

    before: Documents
    after: Documents
    read: Sequence[ReadDocument]
    skipped: Sequence[Skipped]
    was: Remembered
    remembered: Remembered
    anew: bool = False

    @cached_property
    def names(self) -> ChangedDocuments:
        """The documents that differ between `before` and `after`."""
        return ChangedDocuments.between(self.before, self.after)

    @property
    def changes(self) -> dict[str, int]:
        """The number of documents by outcome: those of `names`, and `unchanged`."""
        n_each = {outcome: len(ids) for outcome, ids in vars(self.names).items()}
        n_both = len(self.before.keys() & self.after.keys())
        return {**n_each, "unchanged": n_both - n_each["changed"]}

    @cached_property
    def kept(self) -> set[str]:
        """Ids of the documents that are not read again."""
        return self.after.keys() - {document.doc_id for document in self.read}

    @property
    def is_empty(self) -> bool:
        """Whether the index would stay the same."""
        same = self.before.keys() == self.after.keys() and self.was == self.remembered
        return same and not self.read and not self.anew

    def report(self, settings: Mapping[str, Any], usage: Usage) -> dict[str, Any]:
        """Return the details that are stored with the next generation, see `Snapshot.report`."""
        remembered = replace(self.remembered, settings=settings)
        return {**asdict(remembered), "usage": asdict(usage), "changes": self.changes}


def held_documents(snapshot: Snapshot) -> dict[str, Origin]:
    """Return the documents of an index, see `in_order`; those without a source stay as written.

    The hash of a document is unknown if its chunks disagree, because others deleted or added some.
    """
    rows = snapshot.select("documents", *Origin._fields, where=snapshot.of_each_document)
    origins = dict[str, Origin]()
    columns = (rows[name].to_pylist() for name in ("documents", *Origin._fields)) if rows else ()
    for (document, *_), *known in zip(*columns, strict=True):
        origin = Origin(*known)
        first = origins.setdefault(document, origin)
        if origin != first:
            origins[document] = Origin(read_from=first.read_from or origin.read_from)
    return in_order(origins, Remembered.of(snapshot).sources)


def chunks_per_document(snapshot: Snapshot) -> dict[str, int]:
    """Count the chunks of each document in an index."""
    import pyarrow.compute as pc

    rows = snapshot.select("documents", where=CHUNKS)
    counts = pc.value_counts(pc.list_element(rows["documents"], 0)) if rows else []
    return {count["values"].as_py(): count["counts"].as_py() for count in counts}


def kept_chunks(snapshot: Snapshot, documents: Collection[str]) -> list[Node]:
    """Return the stored chunks of some documents, each document's in reading order."""
    chunks = snapshot.chunks(of_documents(documents)) if documents else []
    return [chunk for chunk in chunks if chunk.documents[0] in documents]


def check_losses(what: str, n_lost: int, before: Documents, instead: str) -> None:
    """Raise InputError if more than half of the documents of an index would be lost.

    `what` is the operation, and `instead` is what the caller can do instead.
    """
    if 2 * n_lost > len(before):
        raise InputError(
            f"The {what} would remove {n_lost} of the {len(before)} documents of the index; "
            f"{instead}."
        )


def in_order(documents: Documents, sources: Sequence[str]) -> dict[str, Origin]:
    """Return documents in the order of their sources and paths, those without a source last."""
    place = {source: i for i, source in enumerate(sources)}

    def key(document: str) -> tuple[int, list[str]]:
        source = documents[document].read_from
        if source not in place:
            return len(place), []
        return place[source], document.split("/")

    return {document: documents[document] for document in sorted(documents, key=key)}
