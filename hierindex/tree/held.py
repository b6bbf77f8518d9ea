"""What an index holds of a tree, as its growth reads it."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hierindex.core.arrays import Floats2d
from hierindex.core.revision import NEIGHBOURS
from hierindex.node import Node
from hierindex.store.passing import Passing
from hierindex.store.prefilter import Prefilter, at_cut, by_ids, of_documents
from hierindex.store.rows import to_nodes
from hierindex.store.schema import NODE_COLUMNS
from hierindex.store.search import Scope, nearest
from hierindex.store.snapshot import Snapshot
from hierindex.threads import each

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 32  # searches
PLACE = ("id", "level", "level_max", "parent_ids", "parent_weights", "child_ids", "documents")


class Place(NamedTuple):
    """Where a node stands in the tree: its level, its parents with weights, and its children."""

    level: int
    level_max: int
    parents: Mapping[str, float]
    children: frozenset[str]
    documents: Sequence[str]


class HeldTree:
    """The nodes of a snapshot, read where a growth needs them.

    Parameters
    ----------
    snapshot : Snapshot
        Of an index that exists.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._places: dict[str, Place] = {}

    def places(self, ids: Collection[str]) -> dict[str, Place]:
        """Return the places of nodes by id; those that the index does not hold are left out."""
        if unknown := [i for i in ids if i not in self._places]:
            self._learn(self._select(*PLACE, where=by_ids(unknown)))
        return {i: self._places[i] for i in ids if i in self._places}

    def prefetch_parents(self, ids: Collection[str]) -> None:
        """Read the places of nodes and of their parents at once."""
        self.places({parent for place in self.places(ids).values() for parent in place.parents})

    def of_documents(self, documents: Collection[str]) -> dict[str, Place]:
        """Return the places of the nodes that have text of one document only, one of these."""
        if not documents:
            return {}
        ids = self._learn(self._select(*PLACE, where=of_documents(documents)))
        places = {i: self._places[i] for i in ids}
        return {
            i: place
            for i, place in places.items()
            if len(place.documents) == 1 and place.documents[0] in documents
        }

    def document_levels(self) -> int:
        """Return the number of levels that hold the trees of single documents, if there are any.

        That is the highest level of a node that is a whole document.
        """
        highest = self.highest_level()
        if not self._count(Prefilter(f"level_max = {highest:d} AND array_length(documents) > 1")):
            return highest
        whole = "level = {:d} AND whole_document > ''"
        levels = range(highest, 0, -1)
        return next((i for i in levels if self._count(Prefilter(whole.format(i)))), 0)

    def highest_level(self) -> int:
        """Return the level of the roots."""
        return self._snapshot.highest_level()

    def size(self, level: int) -> int:
        """Return the number of nodes of a cut."""
        return self._count(at_cut(level))

    def highest(self, level: int, without: Collection[str]) -> int:
        """Return the highest own level of the nodes of a cut, without some; 0 if there are none."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = self._select("id", "level", where=at_cut(level))
        others = pc.invert(pc.is_in(rows["id"], value_set=pa.array(sorted(without), pa.string())))
        return pc.max(rows["level"].filter(others)).as_py() or 0

    def above(self, level: int) -> list[str]:
        """Return the ids of the nodes above a level."""
        ids: list[str] = self._select("id", where=Prefilter(f"level > {level:d}"))["id"].to_pylist()
        return ids

    def nodes(self, ids: Collection[str]) -> list[Node]:
        """Return nodes with their vectors."""
        return self._nodes(by_ids(ids)) if ids else []

    def cut(self, level: int) -> list[Node]:
        """Return the nodes of a cut with their vectors."""
        return self._nodes(at_cut(level))

    def near(self, X: Floats2d, level: int, without: Collection[str]) -> list[str]:
        """Return the ids of the nodes of a cut, without some, that are the nearest to any row.

        Parameters
        ----------
        X : (n_rows, n_dims) unit vectors
        level : int
        without : Collection[str]
        """
        others = Passing(where=at_cut(level) & ~by_ids(without) if without else at_cut(level))
        scope = Scope(self._snapshot, others, columns=("id",))
        found = each((partial(nearest, scope, x.tolist(), NEIGHBOURS) for x in X), AT_ONCE)
        return sorted({i for rows in found for i in rows["id"].to_pylist()})

    def _nodes(self, where: Prefilter) -> list[Node]:
        rows = self._select(*NODE_COLUMNS, "vector", where=where).sort_by("id")
        self._learn(rows)
        return to_nodes(rows)

    def _select(self, *columns: str, where: Prefilter) -> "pa.Table":
        return self._snapshot.select(*columns, where=where)

    def _count(self, where: Prefilter) -> int:
        return self._snapshot.count(where)

    def _learn(self, rows: "pa.Table") -> list[str]:
        columns = [rows[name].to_pylist() for name in PLACE]
        for node_id, level, level_max, parents, weights, children, documents in zip(
            *columns, strict=True
        ):
            weighted = dict(zip(parents, weights, strict=True))
            self._places[node_id] = Place(
                level, level_max, weighted, frozenset(children), documents
            )
        return list(columns[0])
