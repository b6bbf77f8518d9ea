"""The parts of its sources that an update reads."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Self

from hierindex.core.identity import file_of
from hierindex.errors import SourceError
from hierindex.jobs.changes import Documents
from hierindex.read.files import File, files_of, source_name, source_path


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
                    f"The source {source!r}, which the index was built from, cannot be found; if "
                    "it was moved, build the index again from its new path, otherwise delete its "
                    "documents from the index."
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

    def files(self) -> dict[str, File]:
        """Return the files to read by document id.

        Raises
        ------
        SourceError
            If a source cannot be read, or two files have the same document id.
        """
        for root in self.roots.values():
            if Path(root).is_dir() and not os.access(root, os.R_OK | os.X_OK):
                raise SourceError(f"The folder {str(root)!r} cannot be read.")
        found = files_of(self.roots.values())
        return {d: file for d, file in found.items() if self.has(d, file.source)}


def _is_there(source: str) -> bool:
    try:
        return bool(source_path(source).stat())
    except OSError:
        return False
