"""Checks of an index: links, the contents of rows, and quotes."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arguments import Ints1d
from hierindex.core.identity import hash_text
from hierindex.node import Quote
from hierindex.store.filtering import with_ancestors
from hierindex.store.rows import LOST_CHILD, derived_columns, node_of, quotes_in, schema

if TYPE_CHECKING:
    import pyarrow as pa

MOST_SHOWN = 10  # problems of a check
LINKS = "id level parent_ids child_ids previous_id next_id stale".split()
"""Columns that are in memory for all nodes, without texts and vectors."""
QUOTED = "level", "text", "record"  # columns of the chunks
ABSENT = -1  # the position of an id that no node has
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
        self.add_all([0], lambda _: where, lambda _: what)

    def add_all(
        self,
        wrong: Sequence[int] | NDArray[np.integer],
        where: Callable[[int], str],
        what: Callable[[int], str],
    ) -> None:
        """Add a problem for each index; descriptions are computed only for those that are kept."""
        self.count += len(wrong)
        kept = map(int, wrong[: MOST_SHOWN - len(self.problems)])
        self.problems += [Problem(where(i), what(i)) for i in kept]


class Named(NamedTuple):
    """References from nodes to ids: row `rows[i]` has `ids[i]`, the id of row `named[i]`.

    `named[i]` is `ABSENT` if no row has this id.
    """

    rows: Ints1d
    ids: Any
    named: Ints1d

    def pairs(self) -> tuple[Ints1d, Ints1d]:
        """Return `rows` and `named` without absent ids."""
        there = self.named != ABSENT
        return self.rows[there], self.named[there]


class Links:
    """The nodes of an index, numbered from 0 in the order of its rows, and their links.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Batches with the columns `LINKS`.
    """

    def __init__(self, batches: "Iterable[pa.RecordBatch]") -> None:
        import pyarrow as pa

        columns = pa.schema([schema(1).field(name) for name in LINKS])
        self.table: pa.Table = pa.Table.from_batches(batches, columns).combine_chunks()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def id(self, position: int) -> str:
        """Return a node's id."""
        return str(self.table["id"][position])

    def named(self, column: str) -> Named:
        """Return the ids in a column that has one id or a list of ids per row."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self.table[column].combine_chunks()
        if pa.types.is_list(values.type):
            rows, values = pc.list_parent_indices(values), pc.list_flatten(values)
        else:
            rows = pc.indices_nonzero(pc.not_equal(values, ""))
            values = values.take(rows)
        at = pc.index_in(values, value_set=self.table["id"].combine_chunks())
        numbers = (np.asarray(each, np.int64) for each in (rows, pc.fill_null(at, ABSENT)))
        return Named(next(numbers), values, next(numbers))

    def checks(self) -> list[Check]:
        """Check the ids and links of the nodes.

        If the checks pass, every leaf reaches a root without a cycle: each parent exists and is
        above its children.
        """
        up, down = self.named("parent_ids"), self.named("child_ids")
        neighbours = self.named("previous_id"), self.named("next_id")
        return [
            self._check_ids(),
            self._check_levels(up, down),
            self._check_parents(up, down),
            self._check_neighbours(*neighbours),
        ]

    def incomplete(self) -> Set[str]:
        """Return the ids of the summaries that may contain text of a missing chunk.

        These are summaries that lost a child, and summaries above them.
        """
        import pyarrow.compute as pc

        down = self.named("child_ids")
        of = {self.id(row) for row in down.rows[down.named == ABSENT].tolist()}
        rows = self.table.filter(pc.greater(self.table["level"], 0)).to_pylist()
        of |= {row["id"] for row in rows if row["stale"] == LOST_CHILD or not row["child_ids"]}
        return with_ancestors(of, {row["id"]: row["parent_ids"] for row in rows})

    def _check_ids(self) -> Check:
        """Check that no two rows have the same id."""
        import pyarrow.compute as pc

        found = Check("ids", len(self))
        counts = pc.value_counts(self.table["id"].combine_chunks())
        several = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        for node_id in several.to_pylist():
            found.add(node_id, "several rows have this id")
        return found

    def _check_levels(self, up: Named, down: Named) -> Check:
        """Check that parents are above their children, so that no path upwards is a cycle."""
        level, (above, below) = self.table["level"].to_numpy(), down.pairs()
        keys = np.union1d(self._keys(*up.pairs()), self._keys(below, above))
        found = Check("levels", len(keys))
        found.add_all(
            keys[level[keys % len(self)] <= level[keys // len(self)]] if len(keys) else keys,
            lambda key: self.id(key // len(self)),
            lambda key: f"its parent {self.id(key % len(self))} is not on a higher level",
        )
        return found

    def _check_parents(self, up: Named, down: Named) -> Check:
        """Check that parents and children exist and refer to each other."""
        found, n = Check("parents and children", len(up.rows) + len(down.rows)), len(self)
        self._add_absent(found, up, "its parent")
        self._add_absent(found, down, "its child")
        above, below = down.pairs()
        of_children, of_parents = self._keys(*up.pairs()), self._keys(below, above)
        found.add_all(
            np.setdiff1d(of_children, of_parents),
            lambda key: self.id(key // n),
            lambda key: f"its parent {self.id(key % n)} does not name it",
        )
        found.add_all(
            np.setdiff1d(of_parents, of_children),
            lambda key: self.id(key % n),
            lambda key: f"its child {self.id(key // n)} does not name it",
        )
        return found

    def _check_neighbours(self, before: Named, after: Named) -> Check:
        """Check that the previous and the next node exist and refer to each other."""
        found = Check("previous and next", len(before.rows) + len(after.rows))
        for named, back, noun in ((before, after, "previous"), (after, before, "next")):
            self._add_absent(found, named, f"its {noun} node")
            answer = np.full(len(self), ABSENT)
            answer[back.rows] = back.named
            rows, beside = named.pairs()
            what = f"its {noun} node does not name it"
            found.add_all(rows[answer[beside] != rows], self.id, lambda _, what=what: what)  # type: ignore[misc]
        return found

    def _keys(self, child: Ints1d, parent: Ints1d) -> Ints1d:
        """Return the number of each pair, `child * n_nodes + parent`."""
        return child * len(self) + parent

    def _add_absent(self, found: Check, named: Named, noun: str) -> None:
        found.add_all(
            np.flatnonzero(named.named == ABSENT),
            lambda i: self.id(named.rows[i]),
            lambda i: f"{noun} {named.ids[i]} does not exist",
        )


@dataclass
class Place:
    """A passage of a document that a node quotes.

    `hash` is the hash of the text in the node, if it must equal the document's text. `problem` says
    what is wrong with the position.
    """

    start: int
    end: int
    node: str
    hash: int | None
    problem: str = UNHELD


class Rows:
    """Checks of each row: its columns and vector, and its quotes in its text and in its sources.

    Texts are not kept in memory. The chunks are read a second time to compare the quoted passages.

    Parameters
    ----------
    is_built : bool
        Whether all vectors must be unit vectors; the chunks of a pipeline may have other vectors.
    incomplete : set of str
        Ids of the summaries that may contain text of a deleted chunk; their quotes are not
        compared.
    """

    def __init__(self, *, is_built: bool, incomplete: Set[str]) -> None:
        self._is_built, self._incomplete = is_built, incomplete
        self._readable, self._derived = Check("readable"), Check("derived columns")
        self._vectors, self._quotes = Check("vectors"), Check("quotes")
        self._places = defaultdict[str, list[Place]](list)  # by document

    def checks(
        self, rows: "Iterable[pa.RecordBatch]", chunks: "Iterable[pa.RecordBatch]"
    ) -> list[Check]:
        """Check rows with all columns; then compare quotes with the columns `QUOTED` of chunks."""
        for batch in rows:
            self._check_vectors(batch)
            for row in batch.drop_columns(["vector"]).to_pylist():
                try:
                    self._check_row(row)
                except UNREADABLE as error:
                    line = f"{type(error).__name__}: {error}".splitlines()[0]
                    self._readable.add(row["id"], f"its columns are not those of a node: {line}")
        for places in self._places.values():
            places.sort(key=lambda place: place.start)
        for batch in chunks:
            for row in batch.to_pylist():
                if row["level"] <= 0:
                    self._compare(row["text"], row["record"])
        for document, places in self._places.items():
            for place in places:
                if place.problem:
                    at = f"{document} ({place.start}-{place.end})"
                    self._quotes.add(place.node, f"{place.problem}, {at}")
        return [self._readable, self._derived, self._vectors, self._quotes]

    def _check_row(self, row: dict[str, Any]) -> None:
        self._readable.checked += 1
        node = node_of(row)
        _ = node.embedded_text
        values = {**node.source.get("metadata", {}), **node.metadata}
        derived = derived_columns(node.id, node.text, values, row["documents"])
        if wrong := [name for name, value in derived.items() if row[name] != value]:
            what = f"{', '.join(wrong)} differ from what its other columns give"
            self._derived.add(row["id"], what)
        self._derived.checked += 1
        for quote in quotes_in(row["record"]):
            self._check_quote(quote, row)

    def _check_quote(self, quote: Quote, row: dict[str, Any]) -> None:
        """Check a quote of a node within its text; record the passages that a summary quotes."""
        self._quotes.checked += 1
        which, text = f"its quote of characters {quote.at} to {quote.to}", row["text"]
        lengths = {span.end - span.start for span in quote.sources}
        if not 0 <= quote.at <= quote.to <= len(text):
            self._quotes.add(row["id"], f"{which} is not within its text")
        elif quote.verbatim and not lengths <= {quote.to - quote.at}:
            self._quotes.add(row["id"], f"{which} is not as long as its source")
        elif row["level"] > 0 and row["id"] not in self._incomplete:
            hashed = hash_text(text[quote.at : quote.to]) if quote.verbatim else None
            for span in quote.sources:
                place = Place(span.start, span.end, row["id"], hashed)
                self._places[span.document].append(place)

    def _compare(self, text: str, record: str) -> None:
        """Compare the quoted passages within a chunk with its text."""
        try:
            quotes = quotes_in(record)
        except UNREADABLE:  # which another check reports
            return
        for quote in quotes:
            if quote.source is None:
                continue
            places, begins = self._places.get(quote.source.document, []), quote.source.start
            for i in range(bisect_left(places, begins, key=lambda place: place.start), len(places)):
                place = places[i]
                if place.start >= quote.source.end:
                    break
                if place.end > quote.source.end:
                    continue
                at = quote.at + place.start - begins
                hashed = hash_text(text[at : at + place.end - place.start])
                differs = quote.verbatim and place.hash not in (None, hashed)
                if differs or place.problem == UNHELD:
                    place.problem = OTHER if differs else ""

    def _check_vectors(self, batch: "pa.RecordBatch") -> None:
        column = batch["vector"]
        self._vectors.checked += len(column)
        there = column.is_valid().to_numpy(zero_copy_only=False)
        X = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
        length = np.zeros(len(column))
        length[np.flatnonzero(there)] = np.linalg.norm(X.astype(np.float64), axis=1)
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
