"""Which documents of its sources an index holds after a build, an update or a deletion."""

import logging
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Self

from llama_index.core.schema import Document

from hierindex.core.identity import document_key, file_of, wholes
from hierindex.errors import InputError, SourceError, nearest
from hierindex.jobs.revision import (
    Documents,
    Origin,
    ReadDocument,
    ReadFiles,
    Remembered,
    Revision,
    check_losses,
    in_order,
)
from hierindex.read.documents import well_formed
from hierindex.read.files import (
    File,
    Skipped,
    check_source,
    files_of,
    is_link,
    nothing_to_index,
    quoted,
    source_name,
    source_path,
)

logger: logging.Logger = logging.getLogger(__name__)

Source = str | Path | Document
KEPT = "; its earlier content is kept"


@dataclass(frozen=True)
class Scope:
    """The parts of sources that an update reads.

    Attributes
    ----------
    parts : Mapping[str, str]
        The source of each part, both as absolute paths; a source is a part of itself.
    roots : Mapping[str, str or Path]
        The path where each source is found; a removed file has none.
    is_named : bool
        Whether parts were named; otherwise they are all remembered sources.
    """

    parts: Mapping[str, str]
    roots: Mapping[str, str | Path]
    is_named: bool

    @classmethod
    def of_all(cls, sources: Sequence[str], held: Documents) -> Self:
        """Return the scope of all sources that an index remembers.

        Raises
        ------
        SourceError
            If a source is missing. A single file may be missing if its folder still exists.
        """
        roots = {source: source_path(source) for source in sources if _is_there(source)}
        for source in {of.read_from for of in held.values()} & {*sources} - roots.keys():
            path = PurePath(source)
            files = {file_of(d) for d, of in held.items() if of.read_from == source}
            if files != {path.name} or not _is_there(str(path.parent)):
                raise SourceError(
                    f"The source {source!r}, which the index was built from, cannot be found; "
                    "name the path to which it was moved, or delete its documents from the index."
                )
        return cls({source: source for source in sources}, roots, is_named=False)

    @classmethod
    def of_named(cls, paths: Sequence[str | Path], sources: Sequence[str]) -> Self:
        """Return the scope of the named paths: new sources, remembered sources or parts of them.

        Raises
        ------
        SourceError
            If a new source contains one that the index remembers.
        """
        parts, roots = dict[str, str](), dict[str, str | Path]()
        for path in paths:
            name = source_name(path)
            parents = map(str, PurePath(name).parents)
            source = next((each for each in (name, *parents) if each in sources), name)
            parts[name] = source
            roots[source] = path if name == source else source_path(source)
        for source in sources:
            if around := roots.keys() & {*map(str, PurePath(source).parents)} - {*sources}:
                raise SourceError(
                    f"{min(around)!r} contains the source {source!r} of the index, whose documents "
                    "would be indexed twice; name other folders, or build the index again."
                )
        return cls(parts, roots, is_named=True)

    def has(self, document: str, source: str) -> bool:
        """Return whether a document is in a part of its source that is read."""
        if self.parts.get(source) == source:
            return True
        path = PurePath(source, file_of(document))
        return any(self.parts.get(str(part)) == source for part in (path, *path.parents))

    def names(self, file: File) -> bool:
        """Return whether the file itself was named, and not only a folder around it."""
        return self.is_named and source_name(file.path) in self.parts

    def files(self, held: Documents) -> tuple[dict[str, File], list[Skipped]]:
        """Return the files to read by document id, and links to documents that are not read again.

        Raises
        ------
        SourceError
            If a source cannot be read, or two files have the same document id.
        """
        for root in self.roots.values() if held else ():
            if Path(root).is_dir() and not os.access(root, os.R_OK | os.X_OK):
                raise SourceError(f"The folder {str(root)!r} cannot be read.")
        found = files_of(self.roots.values())
        files = {d: file for d, file in found.items() if self.has(d, file.source)}
        others = found.keys() & set(map(file_of, held)) - files.keys()
        kept = {os.path.realpath(found[d].path): d for d in others}
        links = list[Skipped]()
        for document in [d for d, file in files.items() if kept and is_link(file.path)]:
            if of := kept.get(os.path.realpath(files[document].path)):
                links.append(Skipped(document, f"is a link to {quoted(of)}, which is read"))
                del files[document]
        return files, links


def _is_there(source: str) -> bool:
    try:
        return bool(source_path(source).stat())
    except OSError:
        return False


def checked(sources: Source | Sequence[Source]) -> Sequence[Source]:
    """Return the sources as a sequence, checked without reading files.

    Raises
    ------
    SourceError
        If one of them does not exist, or two documents have the same id.
    """
    sources = _each(sources)
    given = [source for source in sources if isinstance(source, Document)]
    for source in sources:
        if not isinstance(source, Document):
            check_source(source)
    _check_ids(given)
    return sources


def built(
    sources: Sequence[Source], before: Documents, was: Remembered, read: ReadFiles
) -> Revision:
    """Return the revision that reads all documents of the sources and keeps none."""
    names = Counter(source_name(each) for each in sources if not isinstance(each, Document))
    for name in (name for name, n in names.items() if n > 1):
        raise SourceError(f"The source {name!r} is named twice; its documents have the same ids.")
    first = updated(sources, {}, Remembered(), read)
    return replace(first, before=before, was=was, anew=True)


def updated(
    sources: Source | Sequence[Source] | None, before: Documents, was: Remembered, read: ReadFiles
) -> Revision:
    """Return the revision that reads sources again, or for the first time.

    A document is kept if it is in none of the sources to read, if its content is the same, or if
    its file cannot be read. A LlamaIndex document without text is removed. A new source takes the
    place of a missing one that had most of its documents, with the same content.

    Parameters
    ----------
    sources : str, Path or Document, or a sequence of them, or None
        A file or folder inside a remembered source updates only that part of it. None means all
        remembered sources.
    before : Documents
    was : Remembered
    read : ReadFiles

    Raises
    ------
    SourceError
        If a source cannot be found, nothing remains to index, or a document has the id of a
        document of another source.
    InputError
        If more than half of the documents would be removed without new ones in their place.
    """
    paths, given, blank = _separated(checked(() if sources is None else sources))
    if sources is None:
        scope = Scope.of_all(was.sources, before)
    else:
        scope = Scope.of_named(paths, was.sources)
    files, links = scope.files(before)
    moved = _moved(files, before, was.sources)
    left_out = {moved.get(source, source): keys for source, keys in was.left_out.items()}
    for document, file in files.items():
        if file.source in left_out and not scope.names(file):
            files[document] = file._replace(left_out=frozenset(left_out[file.source]))
    documents, skipped = read(files)
    others = [*map(ReadDocument.of, given)]
    _check_ids([*documents, *others])
    skipped += [*blank, *links]

    now = _origins(documents, files) | _origins(others, {})
    unread = _unread(skipped, files, before)  # none of a source that moved
    moved = {old: new for old, new in moved.items() if _is_same(old, now, before)}
    held = {
        d: of._replace(read_from=moved.get(of.read_from, of.read_from)) for d, of in before.items()
    }
    _check_sources(now, held, scope)
    skipped = [replace(s, reason=s.reason + KEPT) if s.path in unread else s for s in skipped]
    stay = now.keys() | set().union(*unread.values())
    of_scope = held.items() if scope.parts else ()
    gone = {d for d, of in of_scope if d not in stay and scope.has(d, of.read_from)}
    gone |= {b.path for b in blank if b.path in before and not before[b.path].read_from}
    after = {d: of for d, of in held.items() if d not in gone} | now
    if not after or (scope.is_named and not (now or gone or blank)):
        raise nothing_to_index(paths or was.sources, skipped)
    names = list(dict.fromkeys([*(moved.get(each, each) for each in was.sources), *scope.roots]))
    revision = Revision(
        before=before,
        after=in_order(after, names),
        read=[d for d in (*documents, *others) if before.get(d.doc_id) != now[d.doc_id]],
        skipped=skipped,
        was=was,
        remembered=replace(was, sources=names, left_out=_left_out(left_out, now)),
    )
    check_losses(
        "update",
        len(revision.names.removed) - len(revision.names.added),
        before,
        "check that its sources are complete; to remove the documents, use `hierindex delete`, or "
        "build the index again with --replace (in Python replace=True)",
    )
    for old, new in moved.items():
        logger.info("The source %s has moved to %s.", old, new)
    return revision


def without(
    documents: Collection[str], before: Documents, was: Remembered, read: ReadFiles | None = None
) -> Revision:
    """Return the revision that removes some documents, or all, and reads none.

    A mailbox is removed with its e-mails, and an e-mail with its attachments.

    Raises
    ------
    InputError
        If a document is not in the index, or no document would remain.
    """
    source_of = {each: of.read_from for d, of in before.items() for each in wholes(d)}
    for document in documents:
        if document not in source_of:
            raise InputError(
                f"The index holds no document {document!r}{nearest(document, before)}."
            )
    gone = {*documents}
    after = {d: of for d, of in before.items() if gone.isdisjoint(wholes(d))}
    if documents and not after:
        raise InputError("These are all documents of the index; delete its folder instead.")
    left_out = {source: list(keys) for source, keys in was.left_out.items()}
    for document in dict.fromkeys(documents):
        if source := source_of[document]:
            left_out.setdefault(source, []).append(document_key(document))
    return Revision(
        before=before,
        after=in_order(after, was.sources),
        read=[],
        skipped=[],
        was=was,
        remembered=replace(was, left_out=left_out),
        anew=not documents,
    )


def _each(sources: Source | Sequence[Source]) -> Sequence[Source]:
    return [sources] if isinstance(sources, str | bytes | Path | Document) else [*sources]


def _separated(
    sources: Sequence[Source],
) -> tuple[list[str | Path], list[Document], list[Skipped]]:
    """Return the paths, the documents with text, and the documents without text as skipped."""
    paths = [source for source in sources if not isinstance(source, Document)]
    given = [well_formed(source) for source in sources if isinstance(source, Document)]
    blank = [Skipped(d.doc_id, "contains only white space") for d in given if not d.text.strip()]
    return paths, [document for document in given if document.text.strip()], blank


def _origins(documents: Sequence[ReadDocument], files: Mapping[str, File]) -> dict[str, Origin]:
    origins = dict[str, Origin]()
    for document in documents:
        of = files.get(file_of(document.doc_id))
        origins[document.doc_id] = Origin(document.document_hash, of.source if of else "")
    return origins


def _unread(
    skipped: Sequence[Skipped], files: Mapping[str, File], before: Documents
) -> dict[str, set[str]]:
    """Return the stored documents of each file and folder that could not be read."""
    inside: dict[str, set[str]] = {s.path: set() for s in skipped if s.is_unread}
    for document, origin in before.items() if inside else ():
        file = PurePath(file_of(document))
        for path in map(str, (file, *file.parents)):
            if path in inside and files[path].source == origin.read_from:
                inside[path].add(document)
    return {path: documents for path, documents in inside.items() if documents}


def _check_ids(documents: Sequence[Document | ReadDocument]) -> None:
    repeated = [d for d, n in Counter(d.doc_id for d in documents).items() if n > 1]
    if repeated:
        raise SourceError(f"Two documents have the id {repeated[0]!r}; ids must be unique.")


def _moved(files: Mapping[str, File], before: Documents, sources: Sequence[str]) -> dict[str, str]:
    """Return the new path of each missing source of which most files are in one new source."""
    n_held = Counter(of.read_from for of in before.values())
    n_found = Counter(
        (of.read_from, files[file].source)
        for d, of in before.items()
        if (file := file_of(d)) in files and files[file].source not in sources
    )
    return {
        old: new
        for (old, new), n in n_found.items()
        if old in sources and 2 * n > n_held[old] and not _is_there(old)
    }


def _is_same(source: str, now: Documents, before: Documents) -> bool:
    """Return whether most stored documents of a source are read now with the same content."""
    held = {d: of.document_hash for d, of in before.items() if of.read_from == source}
    return 2 * sum(d in now and now[d].document_hash == held[d] for d in held) > len(held)


def _check_sources(now: Documents, before: Documents, scope: Scope) -> None:
    """Raise SourceError if a document has the id of a kept document of another source."""
    for document, (_, source) in now.items():
        held = before.get(document)
        if held and held.read_from != source and not scope.has(document, held.read_from):
            raise SourceError(
                f"The index holds another document {document!r}, from {held.read_from or 'no file'}"
                "; index a common parent folder, rename one, or delete the one in the index."
            )


def _left_out(was: Mapping[str, Sequence[str]], now: Documents) -> dict[str, list[str]]:
    """Return which deleted documents stay deleted: all that are not read again."""
    back = {(of.read_from, document_key(each)) for d, of in now.items() for each in wholes(d)}
    left = {
        source: [key for key in keys if (source, key) not in back] for source, keys in was.items()
    }
    return {source: keys for source, keys in left.items() if keys}
