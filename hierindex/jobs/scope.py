"""The parts of its sources that an update reads."""

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Self

from hierindex.core.identity import file_of, wholes
from hierindex.errors import SourceError
from hierindex.jobs.changes import Documents
from hierindex.read.files import (
    File,
    check_source,
    files_of,
    is_link,
    source_name,
    source_path,
)


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
            If a source is missing. A single file may be missing if its folder still exists and
            other documents remain.
        """
        roots = {source: source_path(source) for source in sources if _is_there(source)}
        missing = _by_source(held, [source for source in sources if source not in roots])
        nothing_remains = sum(map(len, missing.values())) == len(held)
        for source, documents in missing.items():
            path = PurePath(source)
            is_file = {*map(file_of, documents)} == {path.name}
            if nothing_remains or not is_file or not _is_there(str(path.parent)):
                raise _lost(source)
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
        by_name = {source: source for source in sources}
        by_target = {_target(source_path(source)): source for source in sources}
        for path in paths:
            name = source_name(path)
            part, source = (
                _placed(name, by_name) or _placed(_target(path), by_target) or (name, name)
            )
            parts[part] = source
            roots[source] = path if name == source else roots.get(source, source_path(source))
        new = roots.keys() - {*sources}
        for source in sources:
            if around := new & {*map(str, PurePath(source).parents)}:
                raise SourceError(
                    f"{min(around)!r} contains the source {source!r} of the index, whose documents "
                    "would be indexed twice; name other folders, or build the index again."
                )
        return cls(parts, roots, is_named=True)

    def has(self, document: str, source: str) -> bool:
        """Return whether a document is in a part of its source that is read."""
        if self.parts.get(source) == source:
            return True
        inside = [str(PurePath(source, each)) for each in wholes(document)]
        while source in self.roots and len(inside[-1]) > len(source):
            if source in map(self.parts.get, inside):
                return True
            inside = [inside[-1].rpartition(os.sep)[0]]
        return False

    def names(self, file: File) -> bool:
        """Return whether the file itself was named, and not only a folder around it."""
        return self.is_named and source_name(file.path) in self.parts

    def files(self, held: Documents) -> tuple[dict[str, File], dict[str, str]]:
        """Return the files to read, and links to stored documents that are not read again.

        Both are by document id; the value of a link is the id of the document that it points to.

        Raises
        ------
        SourceError
            If a source cannot be read, or two files have the same document id.
        """
        for root in self.roots.values():
            if Path(root).is_dir() and not os.access(root, os.R_OK | os.X_OK):
                raise SourceError(f"The folder {str(root)!r} cannot be read.")
        found = files_of(self.roots.values())
        files = {d: file for d, file in found.items() if self.has(d, file.source)}
        others = found.keys() & set(map(file_of, held)) - files.keys()
        kept = {os.path.realpath(found[d].path): d for d in others}
        targets = {d: kept.get(os.path.realpath(file.path)) for d, file in files.items() if kept}
        links = {d: of for d, of in targets.items() if of and is_link(files[d].path)}
        return {d: file for d, file in files.items() if d not in links}, links


def check_paths(paths: Sequence[str | Path], sources: Sequence[str], held: Documents) -> None:
    """Raise SourceError if a named path does not exist; the message names its stored documents."""
    for path in paths:
        try:
            check_source(path)
        except SourceError:
            with suppress(UnicodeError):  # no such path can be read, or was
                _check_not_held(path, sources, held)
            raise


def _check_not_held(path: str | Path, sources: Sequence[str], held: Documents) -> None:
    """Raise SourceError if the index holds documents of a path that does not exist."""
    name = source_name(path) if str(path) else ""
    if name in sources:
        raise _lost(name) from None
    part, source = _placed(name, {source: source for source in sources}) or (name, name)
    scope = Scope({part: source}, {source: source}, is_named=True)
    if document := next((d for d, of in held.items() if scope.has(d, of.read_from)), None):
        raise SourceError(
            f"{str(path)!r} no longer exists, but the index holds {document!r}; update its source "
            f"{source!r}, or delete the document from the index."
        ) from None


def _lost(source: str) -> SourceError:
    return SourceError(
        f"The source {source!r}, which the index was built from, cannot be found; name the path to "
        "which it was moved, or delete its documents from the index."
    )


def moved_sources(
    paths: Sequence[str | Path], sources: Sequence[str], held: Documents
) -> dict[str, str]:
    """Return the new paths of missing sources, by their old paths.

    A missing source has moved to a named new path if that contains files with the ids of most of
    its documents.
    """
    places, known = dict[str, str](), {source: source for source in sources}
    missing = _by_source(held, [source for source in sources if not _is_there(source)])
    file = {d: file_of(d) for d in held} if missing else {}
    for path in paths if missing else ():
        name = source_name(path)
        if _placed(name, known) is not None:
            continue
        found = files_of([path])
        shared = Counter(held[d].read_from for d in held if file[d] in found)
        for source, n_shared in shared.items():
            if source in missing and 2 * n_shared > len(missing[source]):
                places.setdefault(source, name)
    return places


def _by_source(held: Documents, sources: Collection[str]) -> dict[str, list[str]]:
    """Return the documents of each source that has any."""
    wanted, documents = {*sources}, dict[str, list[str]]()
    for document, origin in held.items() if wanted else ():
        if origin.read_from in wanted:
            documents.setdefault(origin.read_from, []).append(document)
    return documents


def _placed(path: str, sources: Mapping[str, str]) -> tuple[str, str] | None:
    """Return a path as a part of the source around it, and that source, or None."""
    inside = PurePath(path)
    for around in (inside, *inside.parents):
        if source := sources.get(str(around)):
            return str(PurePath(source, inside.relative_to(around))), source
    return None


def _target(path: str | Path) -> str:
    """Return the name of the file or folder that a path leads to."""
    return source_name(os.path.realpath(path))


def _is_there(source: str) -> bool:
    try:
        return bool(source_path(source).stat())
    except OSError:
        return False
