"""Checks of the files of an index: those of the table, its indices and the cache."""

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from hierindex.cache.file import cache_file
from hierindex.store.damage import DamagedError, damages
from hierindex.store.indices import neglected
from hierindex.verify.report import Findings

if TYPE_CHECKING:
    from lancedb.table import AsyncTable

ENDS = {".lance": b"LANC", ".idx": b"LANC", ".manifest": b"LANC", ".arrow": b"ARROW1"}
"""The last bytes of a whole file, by its suffix."""
NEWEST = "_versions/latest_version_hint.json"  # names the newest version
NUMBERED_DOWN = 2**64 - 1  # a manifest's name is this number minus its version


def check_files(folder: Path) -> Findings:
    """The files of a table are whole, as far as their ends tell, and its newest version is there.

    Files that no version names are left out: a writer that fails leaves some, which the next
    writer removes.

    Parameters
    ----------
    folder : Path
        Of the table; may not exist.
    """
    found = Findings("files")
    versions = b"".join(path.read_bytes() for path in sorted(folder.glob("_versions/*.manifest")))
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if not _is_named(path.relative_to(folder), versions):
            continue
        found.checked += 1
        if not _is_whole(path):
            found.add(_named(path, folder), "the file is truncated or overwritten")
    if newest := _missing_version(folder):
        found.add(_named(newest, folder), "the file is missing")
    return found


def _is_named(file: Path, versions: bytes) -> bool:
    """Return whether manifests name a file of rows or of an index; True for all others."""
    match file.parts:
        case "data", name:
            return name.encode() in versions
        case "_indices", index, _:
            with suppress(ValueError):
                return UUID(index).bytes in versions
    return True


def _named(path: Path, folder: Path) -> str:
    return path.relative_to(folder.parent).as_posix()


def _is_whole(path: Path) -> bool:
    if path.suffix == ".json":
        try:
            json.loads(path.read_bytes())
        except ValueError:
            return False
    end = ENDS.get(path.suffix, b"")
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(end)))
        return file.read() == end or not end


def _missing_version(folder: Path) -> Path | None:
    """Return the manifest of the newest version if it is missing."""
    try:
        newest = int(json.loads((folder / NEWEST).read_bytes())["version"])
    except (OSError, ValueError, TypeError, KeyError):  # LanceDB does without it
        return None
    versions = folder / "_versions"
    names = [f"{NUMBERED_DOWN - newest:020}.manifest", f"{newest}.manifest"]
    return None if any((versions / name).exists() for name in names) else versions / names[0]


def check_cache(uri: str) -> Findings:
    """SQLite finds the cache whole, if there is one."""
    found, file = Findings("cache"), cache_file(uri)
    if not file.exists():
        return found
    found.checked = 1
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as cache:
            said = [text for (text,) in cache.execute("PRAGMA quick_check")]
    except sqlite3.OperationalError:  # it is locked or cannot be opened: nothing is known
        found.checked = 0
        return found
    except sqlite3.DatabaseError as error:
        said = [str(error)]
    for problem in said:
        if problem != "ok":
            found.add(file.name, problem)
    return found


async def check_indices(table: "AsyncTable") -> tuple[Findings, list[str]]:
    """Return whether the indices that pay off exist and can be read, and the names of damaged ones.

    Each index is loaded once.
    """
    found, damaged = Findings("indices"), list[str]()
    for column in await neglected(table):
        found.add(column, "the index is missing or lacks rows")
    for index in await table.list_indices():
        found.checked += 1
        try:
            with damages():
                await table.prewarm_index(index.name)
        except DamagedError as error:
            damaged.append(index.name)
            found.add(error.file or index.name, f"the index cannot be read: {error.reason}")
    return found, damaged
