"""Checks of an index: of its links, of what each row holds, and of its quotes."""

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arrays import Ints1d
from hierindex.core.identity import hash_text
from hierindex.node import Quote
from hierindex.store.prefilter import row_digests
from hierindex.store.rows import LOST_CHILD, matched_words, node_of, quotes_in, schema

if TYPE_CHECKING:
    import pyarrow as pa

MOST_SHOWN = 10  # problems of a check


class Problem(NamedTuple):
    """What is wrong, and where: a node's id, or a file's path in the folder of the index."""

    where: str
    what: str


@dataclass
class Check:
    """The outcome of one check.

    `checked` counts the nodes, links, quotes or files that were looked at and `count` the
    problems, of which `problems` holds the first ten.
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
        if len(self.problems) < MOST_SHOWN:
            self.problems.append(Problem(where, what))

    def add_all(
        self, wrong: NDArray[np.integer], where: Callable[[int], str], what: Callable[[int], str]
    ) -> None:
        """Add a problem for each of these positions, which are described only if they are kept."""
        room = MOST_SHOWN - len(self.problems)
        self.count += len(wrong)
        self.problems += [Problem(where(i), what(i)) for i in wrong[:room].tolist()]


Mask = NDArray[np.bool_]
COLUMNS = "id level documents parent_ids child_ids previous_id next_id stale".split()
"""Columns that are held in memory for all nodes; texts and vectors are not among them."""

ABSENT = -1  # the position of an id that no node has


@dataclass(frozen=True)
class Named:
    """Ids that nodes list: `rows[i]` lists `ids[i]`, the id of node `named[i]` or `ABSENT`."""

    rows: Ints1d
    ids: Any
    named: Ints1d

    @property
    def absent(self) -> Ints1d:
        """The indices of the ids that no node has."""
        return np.flatnonzero(self.named == ABSENT)

    @property
    def pairs(self) -> tuple[Ints1d, Ints1d]:
        """`rows` and `named` of the ids that a node has."""
        there = self.named != ABSENT
        return self.rows[there], self.named[there]


class Links:
    """The nodes of an index, numbered from 0 in the order of its rows, and the links between them.

    Parameters
    ----------
    batches : iterable of RecordBatch
        With the columns `COLUMNS`.
    """

    def __init__(self, batches: "Iterable[pa.RecordBatch]") -> None:
        import pyarrow as pa

        columns = pa.schema([schema(1).field(name) for name in COLUMNS])
        self.table = pa.concat_tables(
            [columns.empty_table(), *(pa.Table.from_batches([batch]) for batch in batches)]
        )
        self.ids = self.table["id"].combine_chunks()

    def __len__(self) -> int:
        return len(self.ids)

    def id(self, position: int) -> str:
        """Return a node's id."""
        node_id: str = self.ids[position].as_py()
        return node_id

    def numbers(self, column: str) -> NDArray[Any]:
        """Return a column of numbers, (n_nodes,)."""
        return np.asarray(self.table[column].to_numpy())

    def is_any(self, column: str, *values: str) -> Mask:
        """Return which nodes have one of these values in a column, (n_nodes,)."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = pc.is_in(self.table[column], value_set=pa.array(values, pa.string()))
        return np.asarray(found.to_numpy())

    def positions(self, values: Any) -> Ints1d:
        """Return the positions of the nodes with these ids; `ABSENT` where there is none."""
        import pyarrow.compute as pc

        found = pc.fill_null(pc.index_in(values, value_set=self.ids), ABSENT)
        return np.asarray(found.to_numpy()).astype(np.int64)

    def named(self, column: str) -> Named:
        """Return what a column with lists of ids names, in order."""
        rows, values = self.flat(column)
        return Named(rows, values, self.positions(values))

    def beside(self, column: str) -> Named:
        """Return what `previous_id` or `next_id` names."""
        rows = np.flatnonzero(~self.is_any(column, ""))
        values = self.table[column].take(rows)
        return Named(rows, values, self.positions(values))

    @cached_property
    def edges(self) -> tuple[Ints1d, Ints1d]:
        """The distinct pairs of a child and its parent that at least one of the two names."""
        child, parent = self.named("parent_ids").pairs
        above, below = self.named("child_ids").pairs
        keys = np.union1d(self.key(child, parent), self.key(below, above))
        return keys // len(self), keys % len(self)

    def key(self, child: Ints1d, parent: Ints1d) -> Ints1d:
        """Return the number of each pair, `child * n_nodes + parent`."""
        return child * len(self) + parent

    def flat(self, column: str) -> tuple[Ints1d, Any]:
        """Return the row of each item of a column of lists, and the items."""
        import pyarrow.compute as pc

        lists = self.table[column].combine_chunks()
        rows = np.asarray(pc.list_parent_indices(lists)).astype(np.int64)
        return rows, pc.list_flatten(lists)

    @cached_property
    def incomplete(self) -> Mask:
        """Which nodes may hold text of a deleted chunk: they or a node below lost a child."""
        child, parent = self.edges
        listed = self.named("child_ids")
        found = self.is_any("stale", LOST_CHILD)
        found |= (self.numbers("level") > 0) & ~np.isin(np.arange(len(self)), listed.rows)
        found[listed.rows[listed.absent]] = True
        while True:
            above = found.copy()
            above[parent[found[child]]] = True
            if (above == found).all():
                return found
            found = above


def check_links(links: Links) -> Iterator[Check]:
    """Check what the ids and links of the nodes say.

    Every leaf then reaches a root without a cycle: each parent exists, and is above its children.
    """
    yield check_ids(links)
    yield check_levels(links)
    yield check_parents(links)
    yield check_neighbours(links)


def check_ids(links: Links) -> Check:
    """No two rows have one id."""
    import pyarrow.compute as pc

    found = Check("ids")
    found.checked = len(links)
    counts = pc.value_counts(links.ids)
    several = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    for node_id in several.to_pylist():
        found.add(node_id, "several rows have this id")
    return found


def check_levels(links: Links) -> Check:
    """A parent's level is above its children's, so that no path upwards is a cycle."""
    found = Check("levels")
    child, parent = links.edges
    level = links.numbers("level")
    found.checked = len(child)
    found.add_all(
        np.flatnonzero(level[parent] <= level[child]),
        lambda i: links.id(int(child[i])),
        lambda i: f"its parent {links.id(int(parent[i]))} is not on a higher level",
    )
    return found


def check_parents(links: Links) -> Check:
    """Parents and children exist and name each other."""
    found, n = Check("parents and children"), len(links)
    up, down = links.named("parent_ids"), links.named("child_ids")
    found.checked = len(up.rows) + len(down.rows)
    _add_absent(found, links, up, "its parent")
    _add_absent(found, links, down, "its child")
    above, below = down.pairs
    of_children, of_parents = links.key(*up.pairs), links.key(below, above)
    found.add_all(
        np.setdiff1d(of_children, of_parents),
        lambda key: links.id(key // n),
        lambda key: f"its parent {links.id(key % n)} does not name it",
    )
    found.add_all(
        np.setdiff1d(of_parents, of_children),
        lambda key: links.id(key % n),
        lambda key: f"its child {links.id(key // n)} does not name it",
    )
    return found


def _add_absent(found: Check, links: Links, named: Named, noun: str) -> None:
    found.add_all(
        named.absent,
        lambda i: links.id(int(named.rows[i])),
        lambda i: f"{noun} {named.ids[i].as_py()} does not exist",
    )


def check_neighbours(links: Links) -> Check:
    """The previous and the next node exist and name each other."""
    found = Check("previous and next")
    before, after = links.beside("previous_id"), links.beside("next_id")
    found.checked = len(before.rows) + len(after.rows)
    for named, back, noun in ((before, after, "previous"), (after, before, "next")):
        _add_absent(found, links, named, f"its {noun} node")
        answer = np.full(len(links), ABSENT)
        answer[back.rows] = back.named
        rows, beside = named.pairs
        found.add_all(
            rows[answer[beside] != rows],
            links.id,
            lambda i, noun=noun: f"its {noun} node does not name it",  # type: ignore[misc]
        )
    return found


QUOTED = "level", "text", "record"  # columns of the chunks
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError)  # what JSON of another form raises


class Places:
    """Places of documents that are quoted, with a hash of each quoted text."""

    def __init__(self) -> None:
        # Node, document, start, end, hash and whether it is verbatim.
        self._columns = [array("q") for _ in range(6)]

    def add(self, *values: int) -> None:
        """Add a place."""
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def sort(self, n_documents: int) -> None:
        """Order the places by document and start, after which texts can be compared."""
        columns = [np.frombuffer(column, np.int64) for column in self._columns]
        order = np.lexsort((columns[2], columns[1]))
        self.node, self.document, self.start, self.end, self.hash, self.verbatim = (
            column[order] for column in columns
        )
        self.held = np.zeros(len(order), dtype=np.bool_)
        """Whether a chunk has the place."""
        self.differs = np.zeros(len(order), dtype=np.bool_)
        """Whether a chunk has another text there."""
        self._first = np.searchsorted(self.document, np.arange(n_documents + 1))

    def compare(self, document: int, text: str, quote: Quote) -> None:
        """Compare the places within a chunk's quote of its document with the chunk's text."""
        assert quote.source is not None
        begins, ends = quote.source.start, quote.source.end
        first, last = self._first[document], self._first[document + 1]
        low, high = first + np.searchsorted(self.start[first:last], [begins, ends])
        for i in (low + np.flatnonzero(self.end[low:high] <= ends)).tolist():
            self.held[i] = True
            at = quote.at + self.start[i] - begins
            part = text[at : at + self.end[i] - self.start[i]]
            if quote.verbatim and self.verbatim[i] and hash_text(part) != self.hash[i]:
                self.differs[i] = True


class Quotes:
    """The quotes of all nodes. Texts are not kept: the chunks are read a second time.

    Parameters
    ----------
    links : Links
        Of the same rows.
    """

    def __init__(self, links: Links) -> None:
        self._found = Check("quotes")
        self._links = links
        self._documents = links.flat("documents")[1].unique().to_pylist()
        self._number = {d: i for i, d in enumerate(self._documents)}
        self._places = Places()

    def add(self, node: int, level: int, text: str, quotes: Sequence[Quote]) -> None:
        """Check the quotes of a node within its text, and note the places that a summary quotes.

        Those of a summary that may hold text of a deleted chunk are not noted.
        """
        is_noted = level > 0 and not self._links.incomplete[node]
        for quote in quotes:
            self._found.checked += 1
            which = f"its quote of characters {quote.at} to {quote.to}"
            lengths = {span.end - span.start for span in quote.sources}
            if not 0 <= quote.at <= quote.to <= len(text):
                self._found.add(self._links.id(node), f"{which} is not within its text")
            elif quote.verbatim and not lengths <= {quote.to - quote.at}:
                self._found.add(self._links.id(node), f"{which} is not as long as its source")
            elif is_noted:
                hashed = hash_text(text[quote.at : quote.to])
                for span in quote.sources:
                    document = self._number.get(span.document, -1)
                    self._places.add(node, document, span.start, span.end, hashed, quote.verbatim)

    def check(self, batches: "Iterable[pa.RecordBatch]") -> Check:
        """Compare the noted places with the chunks, given batches with the columns `QUOTED`."""
        import pyarrow.compute as pc

        places = self._places
        places.sort(len(self._number))
        for batch in batches:
            for row in batch.filter(pc.less_equal(batch["level"], 0)).to_pylist():
                for quote in _readable(row["record"]):
                    if quote.source is not None and quote.source.document in self._number:
                        places.compare(self._number[quote.source.document], row["text"], quote)
        self._add(~places.held, "no chunk has the place that it cites, {}")
        self._add(places.differs, "it quotes another text than is at {}")
        return self._found

    def _add(self, wrong: Mask, what: str) -> None:
        names, places = self._documents, self._places

        def place(i: int) -> str:
            known = places.document[i] >= 0
            document = names[int(places.document[i])] if known else "a document that is not there"
            return f"{document} ({places.start[i]}-{places.end[i]})"

        self._found.add_all(
            np.flatnonzero(wrong),
            lambda i: self._links.id(int(places.node[i])),
            lambda i: what.format(place(i)),
        )


def _readable(record: str) -> Sequence[Quote]:
    """Return the quotes of a record; none if it cannot be read, which another check reports."""
    try:
        return quotes_in(record)
    except UNREADABLE:
        return ()


TOLERANCE = 1e-3  # of the length of a vector of 32-bit floats


def wrong_columns(row: dict[str, Any]) -> dict[str, Any]:
    """Return the derived columns of a row that should have another value, with that value.

    They are `text_hash`, `words` and `digests`, which follow from the node's own columns.
    """
    source = json.loads(row["source"])["metadata"] if row["source"] else {}
    values = {**source, **json.loads(row["metadata"])}
    derived = {
        "text_hash": hash_text(row["text"]),
        "words": matched_words(values, row["text"]),
        "digests": row_digests(row["id"], values, row["documents"]),
    }
    return {name: value for name, value in derived.items() if row[name] != value}


class Rows:
    """Checks of each row for itself; the places that quotes name are noted in `quotes`.

    Parameters
    ----------
    links : Links
        Of the same rows.
    is_built : bool
        Whether all vectors are unit vectors; those of chunks may be a pipeline's own.
    """

    def __init__(self, links: Links, *, is_built: bool) -> None:
        self.quotes = Quotes(links)
        self._links = links
        self._is_built = is_built
        self._readable, self._derived = Check("readable"), Check("derived columns")
        self._vectors = Check("vectors")

    def check(self, batches: "Iterable[pa.RecordBatch]") -> Sequence[Check]:
        """Check rows with all columns of the table, in the order of `links`."""
        nodes = count()
        for batch in batches:
            self._check_vectors(batch)
            for row in batch.drop_columns(["vector"]).to_pylist():
                try:
                    self._check_row(next(nodes), row)
                except UNREADABLE as error:
                    line = f"{type(error).__name__}: {error}".splitlines()[0]
                    self._readable.add(row["id"], f"its columns are not those of a node: {line}")
        return self._readable, self._derived, self._vectors

    def _check_row(self, node: int, row: dict[str, Any]) -> None:
        self._readable.checked += 1
        _ = node_of(row).embedded_text
        if wrong := wrong_columns(row):
            what = f"{', '.join(wrong)} differ from what its other columns give"
            self._derived.add(row["id"], what)
        self._derived.checked += 1
        if row["record"]:
            self.quotes.add(node, row["level"], row["text"], quotes_in(row["record"]))

    def _check_vectors(self, batch: "pa.RecordBatch") -> None:
        column = batch["vector"]
        self._vectors.checked += len(column)
        there = column.is_valid().to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(there)
        X = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
        length = np.zeros(len(column))
        length[rows] = np.linalg.norm(X.astype(np.float64), axis=1)
        must_be_unit = there & ((batch["level"].to_numpy() > 0) | self._is_built)
        wrong = {
            "it has no vector": ~there,
            "its vector is not finite": ~np.isfinite(length),
            "its vector's length is not 1": must_be_unit & (np.abs(length - 1) > TOLERANCE),
        }
        for what, marked in wrong.items():
            self._vectors.add_all(
                np.flatnonzero(marked),
                lambda i: str(batch["id"][i]),
                lambda _, what=what: what,  # type: ignore[misc]
            )
