"""Snapshots: a question is answered from one generation of the table."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import wraps
from pathlib import PurePath
from shlex import quote
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from hierindex.core.identity import wholes
from hierindex.errors import (
    GenerationError,
    IndexNotFoundError,
    NotFoundError,
    nearest,
    without_password,
)
from hierindex.models.record import Usage
from hierindex.node import LEFT_OUT, PREFIX, Maker, Node
from hierindex.store.filters import (
    CHUNKS,
    END_CHUNKS,
    EVERY_ROW,
    ROOTS,
    STALE,
    SUMMARIES,
    Filter,
    Filters,
    Prefilter,
    Scope,
    by_ids,
    having,
    passing,
    prefilter,
)
from hierindex.store.generations import ADDED, details_of, is_missing, published
from hierindex.store.rows import NODE_COLUMNS, check_dimension, node_of, to_nodes
from hierindex.text.display import counted, shortened

if TYPE_CHECKING:
    from lancedb.query import LanceQueryBuilder
    from lancedb.table import Table

T = TypeVar("T")
Read = TypeVar("Read", bound="Snapshot")
BATCH = 8192  # rows


def once(read: Callable[[Read], T]) -> Callable[[Read], T]:
    """Cache the result of a function or method for all snapshots of one generation.

    Threads that need it at once wait for the first of them.
    """
    name = read.__name__

    @wraps(read)
    def cached(snapshot: Read) -> T:
        with snapshot.known.setdefault(f"lock of {name}", RLock()):
            if name not in snapshot.known:
                snapshot.known[name] = read(snapshot)
        return cast(T, snapshot.known[name])

    return cached


class Snapshot:
    """A generation of the table, which later writes do not change, and facts about its tree.

    A question reads from one snapshot, so all that it reads is from one tree.

    Parameters
    ----------
    uri : str
        Address of the index, for error messages.
    table : Table, optional
        Opened at this generation; None if nothing is published.
    schema : Schema, optional
        Schema of the table.
    state : (bytes, int)
        The table's random name, and the number of the generation.
    known : dict
        Cache shared by the snapshots of one generation. Its values must be small compared to the
        table: numbers, the parents of summaries, the summaries of sections, the tree's rows, the
        names of documents, the hashes of copied texts, the coordinates of chunks on the map, and
        the reading order.
    """

    def __init__(
        self,
        uri: str,
        table: "Table | None" = None,
        schema: pa.Schema | None = None,
        state: tuple[bytes, int] = (b"", 0),
        known: dict[str, Any] | None = None,
    ) -> None:
        self.uri = uri
        self.state = state
        self.known: dict[str, Any] = {} if known is None else known
        self._table = table
        self._schema = schema

    def __eq__(self, other: object) -> bool:
        """Return whether both are the same generation of the same table."""
        if not isinstance(other, Snapshot):
            return NotImplemented
        return self.state == other.state

    def __hash__(self) -> int:
        return hash(self.state)

    @property
    def generation(self) -> int:
        """The number of the generation: 1 for the first published one, 0 for none."""
        return self.state[1]

    @property
    def exists(self) -> bool:
        """Whether a generation was published."""
        return self._table is not None

    def require(self) -> "Table":
        """Return the table.

        Raises
        ------
        IndexNotFoundError
            If it does not exist.
        """
        if self._table is None:
            raise IndexNotFoundError.at(self.uri)
        return self._table

    def details(self) -> dict[str, Any]:
        """Return the details stored with the generation: `time`, `what`, `changes` and `report`."""
        return {} if self._schema is None else details_of(self._schema)

    def report(self) -> dict[str, Any]:
        """Return the report of the build that wrote the table; empty if a pipeline wrote it."""
        report: dict[str, Any] = self.details().get("report", {})
        return report

    @property
    def name(self) -> str:
        """The last part of the index's URI, without a password."""
        return PurePath(without_password(self.uri)).name

    @property
    def is_built(self) -> bool:
        """Whether all nodes come from a build and its updates, and none was added separately."""
        return bool(self.report().get("settings")) and ADDED not in self.details()

    @property
    def of_each_document(self) -> Prefilter:
        """A condition that some chunks of each document meet: those without a previous or next one.

        These are the first and the last chunk, and those next to a missing one. If chunks were
        added directly, their links are unreliable, so all chunks meet it.
        """
        return END_CHUNKS if self.is_built else CHUNKS

    def check_dimension(self, n_dims: int) -> None:
        """Raise InputError if a question's vector has another dimension than the table."""
        if self._schema is not None:
            check_dimension(self._schema, n_dims, "the question has")

    def batches(self, *columns: str, where: Prefilter | None = None) -> Iterator[pa.RecordBatch]:
        """Yield columns of the rows that meet a condition, in batches of up to 8,192.

        Without a condition, only one batch is in memory: LanceDB reads ahead of a query, up to 2
        GiB, so each batch is a query of its own. With a condition this is not done, because each
        query would start at the first row.

        Raises
        ------
        IndexNotFoundError
            If the table does not exist.
        GenerationError
            If a later write removes the generation before all batches are read.
        """

        def query() -> "LanceQueryBuilder":
            return self.require().search().select(list(columns))

        starts = range(0, self.n_rows(), BATCH)
        parts = (
            (query().offset(start).limit(BATCH) for start in starts)
            if where is None
            else [where.narrow(query())]
        )
        with self.reading():
            for part in parts:
                yield from part.to_batches(BATCH)

    def select(self, *columns: str, where: Prefilter = EVERY_ROW) -> pa.Table:
        """Return columns of the rows that meet a condition; empty if the table does not exist."""
        if self._table is None:
            return pa.table({name: [] for name in columns})
        from lancedb.query import LanceEmptyQueryBuilder

        # what `search()` returns, without its read of the schema
        query: Any = where.narrow(LanceEmptyQueryBuilder(self._table).select(list(columns)))
        with self.reading():
            return query.to_batches(BATCH).read_all()  # ten times as fast as LanceDB's 1,024 rows

    def count(self, where: Prefilter) -> int:
        """Return the number of rows that meet a condition; 0 if the table does not exist.

        Cached, because counting takes a third of the time of a search.
        """
        if self._table is None:
            return 0
        counts: dict[int, int] = self.known.setdefault("counts", {})
        key = hash(where.sql)
        if key not in counts:
            with self.reading():
                counts[key] = self._table.count_rows(where.sql)
        return counts[key]

    def read(self, query: "LanceQueryBuilder") -> pa.Table:
        """Return the rows of a query of this generation.

        Raises
        ------
        GenerationError
            If a later write has removed the generation.
        """
        with self.reading():
            return query.to_arrow()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise GenerationError if reading fails because a later write removed the generation."""
        try:
            yield
        except RuntimeError as error:
            table = self.require()
            if not is_missing(error) or table.version in published(table).values():
                raise
            raise GenerationError(
                f"Generation {self.generation} of the index {self.uri!r} was removed by a later "
                "write; ask the newest one."
            ) from error

    def chunks(self, where: Prefilter = CHUNKS) -> list[Node]:
        """Return the chunks that meet a condition, document by document in reading order."""
        chunks = to_nodes(self.select(*NODE_COLUMNS, "vector", where=CHUNKS & where))
        place: dict[str, int] = {}
        for chunk in chunks:
            place.setdefault(chunk.documents[0], len(place))
        at = {chunk.id: chunk.others.get("start_char_idx", -1) for chunk in chunks}
        return sorted(chunks, key=lambda chunk: (place[chunk.documents[0]], at[chunk.id]))

    @once
    def maker(self) -> Maker:
        """Return the `Maker` of the tree; all fields are empty if no hierarchy made it."""
        first = to_nodes(self.read(self.require().search().select(NODE_COLUMNS).limit(1)))
        return next((node.maker for node in first if node.maker), Maker())

    @once
    def n_rows(self) -> int:
        """Return the number of nodes."""
        return self.require().count_rows()

    @once
    def copied_texts(self) -> frozenset[int]:
        """Return the hashes of texts that several nodes have; reads 8 bytes per node."""
        hashes = np.sort(self.select("text_hash")["text_hash"].to_numpy())
        return frozenset(hashes[1:][hashes[1:] == hashes[:-1]].tolist())

    def has_key(self, key: str) -> bool:
        """Return whether the metadata of any chunk have a key; reads only digests."""
        return self.count(CHUNKS & having(key)) > 0

    @once
    def highest_level(self) -> int:
        """Return the highest level; 0 if the table does not exist."""
        import pyarrow.compute as pc

        levels = self.select("level_max")["level_max"]
        return pc.max(levels).as_py() or 0

    @once
    def n_documents(self) -> int:
        """Return the number of documents."""
        return len(self.document_ids())

    def document_ids(self) -> list[str]:
        """Return the ids of the documents, each once."""
        import pyarrow.compute as pc

        rows = self.select("documents", where=self.of_each_document)["documents"]
        return pc.list_flatten(rows).unique().to_pylist() if len(rows) else []

    @once
    def roots(self) -> list[str]:
        """Return the ids of the nodes without a parent."""
        ids: list[str] = self.select("id", where=ROOTS)["id"].to_pylist()
        return ids

    @once
    def parents_of_summaries(self) -> dict[str, tuple[str, ...]]:
        """Return the parents of each summary, the strongest first; empty for a root.

        Cached: for a million nodes, 200,000 summaries take 0.2 s to read and 50 MB.
        """
        rows = self.select("id", "parent_ids", where=SUMMARIES)
        parents = map(tuple, rows["parent_ids"].to_pylist())
        return dict(zip(rows["id"].to_pylist(), parents, strict=True))

    def scope(
        self,
        filters: Filters | None = None,
        where: Prefilter = EVERY_ROW,
        *,
        partial_summaries: bool = False,
        columns: Sequence[str] = NODE_COLUMNS,
    ) -> Scope:
        """Return the rows that pass filters and meet a condition; the table must exist."""
        return Scope(self, passing(self, filters, where, partial=partial_summaries), columns)

    def nodes(
        self,
        node_ids: Collection[str] | None = None,
        filters: Filters | None = None,
        **options: Any,
    ) -> list[Node]:
        """Return nodes with embeddings, in the order of the ids if these are given; see `rows`."""
        return list(map(node_of, self.rows(node_ids, filters, **options)))

    def rows(
        self,
        node_ids: Collection[str] | None = None,
        filters: Filters | None = None,
        *,
        where: Prefilter = EVERY_ROW,
        partial_summaries: bool = False,
        columns: Sequence[str] = (*NODE_COLUMNS, "vector"),
    ) -> list[dict[str, Any]]:
        """Return columns, `id` among them, of the rows that pass filters and meet a condition."""
        if not self.exists:
            return []
        if node_ids is not None:
            where &= by_ids(node_ids)
        where = passing(self, filters, where, partial=partial_summaries)
        by_id = {row["id"]: row for row in self.select(*columns, where=where).to_pylist()}
        return [by_id[i] for i in (by_id if node_ids is None else node_ids) if i in by_id]

    def ids(self, filters: Filters | None, where: Prefilter, **options: Any) -> list[str]:
        """Return the ids of the nodes that pass filters and meet a condition; see `rows`."""
        found = self.rows(None, filters, where=where, columns=["id"], **options)
        return [row["id"] for row in found]

    def ids_beginning(self, start: str) -> list[str]:
        """Return the ids that begin with a text, sorted."""
        ids = self.select("id")["id"].to_pylist()
        return sorted(node_id for node_id in ids if node_id.startswith(start))

    def id_beginning(self, start: str) -> str:
        """Return the id equal to a text, or the only id that begins with it.

        Raises
        ------
        NotFoundError
            If no id or more than one begins with the text. The message also says that no document
            has this id, and names the most similar one, if any.
        """
        ids = self.ids_beginning(start)
        if start not in ids and len(ids) != 1:
            near = "" if ids else nearest(start, self.document_ids())
            raise NotFoundError(
                f"No document has the id {start!r}{near}. {len(ids) or 'No'} nodes have an id that "
                f"begins with {start!r}; `hierindex tree` and `hierindex query` show ids."
            )
        return start if start in ids else ids[0]

    def nodes_named(self, name: str) -> list[Node]:
        """Return the node with an id, or the node with exactly the chunks of a document, if any."""
        whole = prefilter(Filter(PREFIX + "whole_document", name))
        return self.nodes([name]) or (self.nodes(where=whole) if name else [])

    def node_beginning(self, start: str) -> Node:
        """Return a node by its id, by the only id that begins with a text, or by its document.

        Raises
        ------
        NotFoundError
            If there is none, or several ids begin with the text.
        """
        if found := self.nodes_named(start):
            return found[0]
        rows = self.select("documents", where=self.of_each_document)["documents"].to_pylist()
        if parts := sorted({each for row in rows for each in row if start in wholes(each)}):
            of = f"No node has exactly the text of the document {start!r}"
            if start not in parts:  # a mailbox
                named = shortened([*map(repr, parts)])
                of = f"{start!r} consists of {counted(len(parts), 'document')}: {named}"
            raise NotFoundError(f"{of}; `hierindex outline {quote(start)}` shows its parts.")
        return self.nodes([self.id_beginning(start)])[0]


def overview(snapshot: Snapshot) -> dict[str, Any]:
    """Return the numbers of documents, nodes and tokens, the roots, the models and the usage.

    `titles` are the titles of the roots, in the same order. `precision` is the embedding model's,
    or None if it has no such setting. `read_in_part` lists the files that were not read completely,
    with the omitted parts.

    A node that passed up is counted at each level to which it belongs.
    """
    maker = snapshot.maker()
    roots = snapshot.select("id", "title", where=ROOTS).to_pydict()
    nodes, tokens = Counter[int](), Counter[int]()
    rows = snapshot.select("level", "level_max", "n_tokens")
    alike = rows.group_by(["level", "level_max"]).aggregate(
        [("n_tokens", "count"), ("n_tokens", "sum")]
    )
    for each in alike.to_pylist():
        for level in range(each["level"], each["level_max"] + 1):
            nodes[level] += each["n_tokens_count"]
            tokens[level] += each["n_tokens_sum"]
    return {
        "documents": snapshot.n_documents(),
        "read_in_part": _read_in_part(snapshot),
        "levels": [
            {"level": level, "nodes": nodes[level], "tokens": tokens[level]}
            for level in sorted(nodes)
        ],
        "roots": roots["id"],
        "titles": roots["title"],
        "stale": snapshot.count(STALE),
        "method": maker.method,
        "embed_model": maker.embed_model,
        "precision": json.loads(maker.embed_settings or "{}").get("precision"),
        "summarizer": maker.summarizer,
        "generation": snapshot.generation,
        "usage": snapshot.report().get("usage", asdict(Usage())),
    }


def _read_in_part(snapshot: Snapshot) -> list[dict[str, Any]]:
    rows = snapshot.select("documents", "metadata", where=CHUNKS & having(LEFT_OUT)).to_pylist()
    found = {row["documents"][0]: json.loads(row["metadata"]).get(LEFT_OUT) for row in rows}
    partly = sorted((path, said) for path, said in found.items() if isinstance(said, list))
    return [{"path": path, "left_out": [*map(str, said)]} for path, said in partly]


def generation_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return a generation's number, time and size, the kind of write, and its changes.

    The keys are `generation`; `time`, when it was published; the numbers of `documents`, `levels`
    and `nodes`; `what`, such as "build" or "add"; and `changes`, numbers by kind of change.
    """
    details = snapshot.details()
    return {
        "generation": snapshot.generation,
        "time": details["time"],
        "documents": snapshot.n_documents(),
        "levels": 1 + snapshot.highest_level() if snapshot.n_rows() else 0,
        "nodes": snapshot.n_rows(),
        "what": details["what"],
        "changes": details["changes"],
    }
