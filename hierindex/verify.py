"""Verification of an index, and repairs that need no model.

The files, links, texts, quotes, vectors and search indices of an index are checked.
"""

import math
import shlex
import sqlite3
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hierindex.cache import cache_file, remove
from hierindex.core.identity import hash_text
from hierindex.errors import GenerationError
from hierindex.node import Quote
from hierindex.store.connection import TABLE, Connection, DamagedError, damages
from hierindex.store.filters import with_ancestors
from hierindex.store.generations import on_newest
from hierindex.store.rows import LOST_CHILD, NAMES, Row, node_of, quotes_in
from hierindex.store.search import neglected
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

MENDABLE = {
    "cache": "The damaged cache was removed; the next build computes again what it held.",
    "indices": "The search indices were created again.",
}
"""Checks whose problems can be repaired without a model, and notes on the repair."""
MOST_SHOWN = 10  # problems of a check
LINKS = "id level parent_ids child_ids previous_id next_id stale".split()
"""Columns that are in memory for all nodes, without texts and vectors."""
QUOTED = "level", "text", "record"  # columns of the chunks
OPPOSITE = {
    "parent_ids": ("parent", "child_ids"),
    "child_ids": ("child", "parent_ids"),
    "previous_id": ("previous node", "next_id"),
    "next_id": ("next node", "previous_id"),
}
"""For each column of links, what it names, and the column in which that node names this one."""
TOLERANCE = 1e-3  # of the length of a vector of 32-bit floats
UNHELD, OTHER = "no chunk has the place that it cites", "it quotes another text than is there"
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)  # what JSON of another form raises


@dataclass(frozen=True)
class Problem:
    """A problem and its location: a node's id, or a file's path in the folder of the index."""

    where: str
    what: str


@dataclass
class Check:
    """The outcome of one check.

    `checked` is the number of nodes, links, quotes or files that were checked. `count` is the
    number of problems; `problems` has the first ten.
    """

    name: str
    checked: int = 0
    count: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.count

    def add(self, where: str, what: str) -> None:
        """Add a problem."""
        self.count += 1
        if self.count <= MOST_SHOWN:
            self.problems.append(Problem(where, what))


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
        One sentence for each repair made.
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
        """Return the report as a dict for `json.dumps`."""
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
            done += check_rows(snapshot)
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


def _incomplete(snapshot: Snapshot) -> Set[str]:
    """Return the ids of summaries that have lost a child, and of their ancestors."""
    above = [row for row in _links(snapshot) if row["level"] > 0]
    lost = {row["id"] for row in above if row["stale"] == LOST_CHILD or not row["child_ids"]}
    return with_ancestors(lost, {row["id"]: row["parent_ids"] for row in above})


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
    missing, lagging = neglected(table)
    for column in (*missing, *lagging):
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
    uri, file = shlex.quote(str(table.uri)), f"{TABLE}.lance"
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


def check_links(rows: Iterable[Row]) -> list[Check]:
    """Check that linked nodes exist and refer to each other.

    Parameters
    ----------
    rows : iterable of Row
        The columns `LINKS` of all nodes.
    """
    family, neighbours = Check("parents and children"), Check("previous and next")
    ids = set[str]()
    pairs: dict[str, dict[tuple[str, str], None]] = {column: {} for column in OPPOSITE}
    for row in rows:
        ids.add(row["id"])
        for column, there in pairs.items():
            named = row[column] if isinstance(row[column], list) else [row[column]]
            there.update(((row["id"], other), None) for other in named if other)
    for column, (noun, opposite) in OPPOSITE.items():
        check = neighbours if column in ("previous_id", "next_id") else family
        check.checked += len(pairs[column])
        for node_id, other in pairs[column]:
            if other not in ids:
                check.add(node_id, f"its {noun} {other} does not exist")
            elif (other, node_id) not in pairs[opposite]:
                check.add(node_id, f"its {noun} {other} does not name it")
    return [family, neighbours]


@dataclass
class Place:
    """A passage of a document that a node quotes.

    `hash` is the hash of the quoted text; None for a quote that is not verbatim. `problem` says
    what is wrong with the position.
    """

    document: str
    start: int
    end: int
    node: str
    hash: int | None
    problem: str = UNHELD


def check_rows(snapshot: Snapshot) -> list[Check]:
    """Check each row: its columns and vector, and its quotes in its text and in its sources.

    Texts are not kept in memory. The chunks are read a second time to compare the quoted passages.
    Summaries that may contain text of a deleted chunk are not compared.
    """
    readable, vectors, quotes = Check("readable"), Check("vectors"), Check("quotes")
    is_built, incomplete = snapshot.is_built, _incomplete(snapshot)
    places = defaultdict[str, list[Place]](list)  # by document
    for batch in snapshot.batches(*NAMES):
        others = batch.drop_columns(["vector"]).to_pylist()
        for row, vector in zip(others, batch["vector"], strict=True):
            readable.checked += 1
            vectors.checked += 1
            length = _length(vector.values)
            is_unit = row["level"] > 0 or is_built  # the chunks of a pipeline may have others
            if not math.isfinite(length) or (is_unit and abs(length - 1) > TOLERANCE):
                vectors.add(row["id"], f"its vector has length {length:.4g}")
            try:
                _ = node_of(row).embedded_text
                for quote in quotes_in(row["record"]):
                    quotes.checked += 1
                    if problem := _problem_of(quote, row["text"]):
                        quotes.add(row["id"], problem)
                    elif row["level"] > 0 and row["id"] not in incomplete:
                        for place in _places(quote, row):
                            places[place.document].append(place)
            except UNREADABLE as error:
                line = f"{type(error).__name__}: {error}".splitlines()[0]
                readable.add(row["id"], f"its columns are not those of a node: {line}")
    for each in places.values():
        each.sort(key=lambda place: place.start)
    for batch in snapshot.batches(*QUOTED):
        for row in batch.to_pylist():
            if row["level"] <= 0:
                _compare(places, row["text"], row["record"])
    for place in chain.from_iterable(places.values()):
        if place.problem:
            at = f"{place.document} ({place.start}-{place.end})"
            quotes.add(place.node, f"{place.problem}, {at}")
    return [readable, vectors, quotes]


def _length(vector: "pa.Array | None") -> float:
    return math.nan if vector is None else float(np.linalg.norm(np.asarray(vector, np.float64)))


def _problem_of(quote: Quote, text: str) -> str | None:
    """Return what is wrong with a quote within the text of its node."""
    which = f"its quote of characters {quote.at} to {quote.to}"
    lengths = {span.end - span.start for span in quote.sources}
    if not 0 <= quote.at <= quote.to <= len(text):
        return f"{which} is not within its text"
    if quote.verbatim and not lengths <= {quote.to - quote.at}:
        return f"{which} is not as long as its source"
    return None


def _places(quote: Quote, row: Row) -> Iterator[Place]:
    """Yield the passages that a quote of a summary stands on."""
    hashed = hash_text(row["text"][quote.at : quote.to]) if quote.verbatim else None
    for span in quote.sources:
        yield Place(span.document, span.start, span.end, row["id"], hashed)


def _compare(places: Mapping[str, Sequence[Place]], text: str, record: str) -> None:
    """Compare the quoted passages within a chunk with its text."""
    try:
        quotes = quotes_in(record)
    except UNREADABLE:  # which another check reports
        return
    for quote in quotes:
        if quote.source is None:
            continue
        of, begins = places.get(quote.source.document, ()), quote.source.start
        for i in range(bisect_left(of, begins, key=lambda place: place.start), len(of)):
            place = of[i]
            if place.start >= quote.source.end:
                break
            if place.end > quote.source.end:
                continue
            at = quote.at + place.start - begins
            hashed = hash_text(text[at : at + place.end - place.start])
            if quote.verbatim and place.hash not in (None, hashed):
                place.problem = OTHER
            elif place.problem == UNHELD:
                place.problem = ""
