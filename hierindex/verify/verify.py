"""Verification of an index, and repairs that need no model."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from shlex import quote
from typing import Any, cast

from hierindex.cache import cache_file, remove
from hierindex.errors import GenerationError
from hierindex.store.connection import TABLE, Connection, DamagedError, damages
from hierindex.store.filtering import incomplete
from hierindex.store.generations import on_newest
from hierindex.store.rows import NAMES, Row
from hierindex.store.search import neglected
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.verify.checks import LINKS, QUOTED, Check, RowChecks, check_links

MENDABLE = {
    "cache": "The damaged cache was removed; the next build computes again what it held.",
    "indices": "The search indices were created again.",
}
"""Checks whose problems can be repaired without a model, and notes on the repair."""


@dataclass(frozen=True)
class Verification:
    """The results of all checks of an index.

    Attributes
    ----------
    generation : int
        The generation that was checked; 0 if it cannot be opened.
    nodes : int
        Number of its nodes.
    stale : int
        Number of nodes that lost a parent or a child to a deletion; this is not an error.
    checks : tuple of Check
    repaired : tuple of str
        Sentences on repairs that were made.
    left : tuple of str
        Sentences with advice on the remaining problems.
    """

    generation: int
    nodes: int
    stale: int
    checks: tuple[Check, ...]
    repaired: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all checks pass."""
        return not self.failed

    @property
    def failed(self) -> list[str]:
        """The names of the failed checks."""
        return [check.name for check in self.checks if not check.ok]

    def to_json(self) -> dict[str, Any]:
        """Return the report as dicts, sequences and numbers."""
        checks = [{**asdict(check), "ok": check.ok} for check in self.checks]
        return {"ok": self.ok, **asdict(self), "checks": checks}


def verify(table: Table, *, repair: bool = False) -> Verification:
    """Check the integrity of an index: files, links, texts, quotes, vectors and search indices.

    All rows of the newest generation are read, and each search index is loaded once. Memory grows
    with ids, links and quotes, not with texts: texts are read in batches, those of chunks twice.

    Parameters
    ----------
    table : Table
    repair : bool
        Whether to delete a damaged cache, to recreate all search indices if one is missing, damaged
        or incomplete, and then to check again.

    Raises
    ------
    IndexNotFoundError
        If there is no index.
    FormatError
        If another version of hierindex wrote it.
    """
    outcome = _verified(table)
    before = [name for name in outcome.failed if name in MENDABLE]
    if repair and before:
        with table.writing("repair"):
            if "cache" in before:
                remove(cache_file(table.uri))
            if "indices" in before and "files" not in outcome.failed:
                table.mend_indices()
        outcome = _verified(table)
        done = [MENDABLE[name] for name in before if name not in outcome.failed]
        outcome = replace(outcome, repaired=tuple(done))
    return replace(outcome, left=tuple(_left(outcome, table, repair=repair)))


def _verified(table: Table) -> Verification:
    files, done = Check("files"), [_check_cache(table.uri)]
    generation = n_nodes = n_stale = 0
    try:
        snapshot = _opened(table)
        generation = snapshot.generation
        with damages():
            stats: Any = snapshot.require().stats()
            files.checked = stats["fragment_stats"]["num_fragments"]
            done.append(_check_indices(snapshot))
            n_nodes = snapshot.n_rows()
            n_stale = sum(bool(row["stale"]) for row in _links(snapshot))
            done += check_links(_links(snapshot))
            partly = incomplete([row for row in _links(snapshot) if row["level"] > 0])
            checks = RowChecks(is_built=snapshot.is_built, incomplete=partly)
            done += checks.checks(snapshot.batches(*NAMES), snapshot.batches(*QUOTED))
    except DamagedError as error:
        files.add(error.file or f"{TABLE}.lance", f"it cannot be read: {error.reason}")
    except GenerationError:
        if generation:  # a later write has removed it
            raise
        files.add(f"{TABLE}.lance", "its newest generation is missing")
    return Verification(generation, n_nodes, n_stale, (*done, files))


@on_newest
def _opened(table: Table) -> Snapshot:
    """Return the newest generation, read from its files and not from what the store has cached."""
    with damages():
        by = table.connection
        snapshot = Table(Connection(by.uri, by.storage_options)).snapshot()
        snapshot.require()
    return snapshot


def _links(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the columns `LINKS` of all nodes; uses no search index, which may be damaged."""
    for batch in snapshot.batches(*LINKS):
        yield from batch.to_pylist()


def _check_cache(uri: str) -> Check:
    """Check the integrity of the cache with SQLite, if there is a cache."""
    found, file = Check("cache"), cache_file(uri)
    if not file.exists():
        return found
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as cache:
            said = [text for (text,) in cache.execute("PRAGMA quick_check")]
    except sqlite3.OperationalError:  # it is locked or cannot be opened: nothing is known
        return found
    except sqlite3.DatabaseError as error:
        said = [str(error)]
    found.checked = 1
    for problem in said:
        if problem != "ok":
            found.add(file.name, problem)
    return found


def _check_indices(snapshot: Snapshot) -> Check:
    """Check that the search indices that pay off exist and can be read."""
    found, table = Check("indices"), cast(Any, snapshot.require())
    for column in neglected(table):
        found.add(column, "the index is missing or lacks rows")
    for index in table.list_indices():
        found.checked += 1
        try:
            with damages():
                table.prewarm_index(index.name)
        except DamagedError as error:
            found.add(error.file or index.name, f"the index cannot be read: {error.reason}")
    return found


def _left(outcome: Verification, table: Table, *, repair: bool) -> Iterator[str]:
    """Yield advice on the remaining problems."""
    uri, file = quote(str(table.uri)), f"{TABLE}.lance"
    mendable = [name for name in outcome.failed if name in MENDABLE and not repair]
    if mendable:
        names = ", ".join(mendable)
        yield f"`hierindex verify --repair --index {uri}` may repair: {names}."
    if others := [name for name in outcome.failed if name not in mendable]:
        yield (
            f"Restore the folder {uri}, or delete {file} in it and build the index again "
            f"(`hierindex build SOURCE... --index {uri}`), to repair: {', '.join(others)}."
        )
    if outcome.stale:
        yield (
            f"{outcome.stale} nodes lost a parent or a child; `hierindex update --index {uri}` "
            "grows the tree again."
        )
