"""Reading order, table of contents and outline of an index."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hierindex.core.arguments import Ints1d, is_whole, require
from hierindex.core.forest import Icicle
from hierindex.errors import NotFoundError
from hierindex.models.embedder import EmbedModel
from hierindex.retrieve.outline import Tree, outline, whole_tree
from hierindex.retrieve.question import Search
from hierindex.retrieve.retrieval import Question, Retrieval, Retrieved
from hierindex.store.filtering import with_known_keys
from hierindex.store.filters import EVERY_ROW, SUMMARIES, Filters, by_ids
from hierindex.store.generations import on_newest
from hierindex.store.rows import quotes_in
from hierindex.store.snapshot import Snapshot, once
from hierindex.store.table import Table

if TYPE_CHECKING:
    import pyarrow as pa
    from llama_index.core.vector_stores.types import MetadataFilters


MANY = 1000  # nodes; for more, the columns of all are read

FIRST_LOOK = 40  # most nodes if no depth is given


class ReadingOrder(NamedTuple):
    """The nodes of a tree, looked up by their positions in preorder; see `Icicle`."""

    ids: "pa.ChunkedArray"
    """Sorted."""
    icicle: Icicle

    def position(self, node_id: str) -> int:
        """Return the position of a node.

        Raises
        ------
        NotFoundError
            If no node has this id.
        """
        import pyarrow.compute as pc

        row = pc.index(self.ids, node_id).as_py()
        if row < 0:
            raise NotFoundError(f"No node has the id {node_id!r}.")
        return self.icicle.position(row)

    def ids_at(self, positions: Iterable[int]) -> list[str]:
        """Return the ids of the nodes at positions."""
        rows = self.icicle.row[np.array([*positions], dtype=np.int64)]
        ids: list[str] = self.ids.take(rows).to_pylist()
        return ids


@once
def reading_order(snapshot: Snapshot) -> ReadingOrder:
    """Return the reading order of all nodes. Cached: 100 MB for a million nodes.

    Children are in the order of their parent's links, and roots in the order of their documents.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    tree = whole_tree(snapshot)
    links = snapshot.select("id", "child_ids", where=SUMMARIES)
    lists = links["child_ids"].combine_chunks()
    parts = [*links["id"].chunks, lists.flatten(), pa.array(_roots(snapshot, tree), pa.string())]
    rows = _rows(pa.chunked_array(parts, pa.string()), tree.ids)  # in one search
    summary, child, roots = np.split(rows, [len(lists), len(rows) - len(parts[-1])])
    parent = summary[np.array(pc.list_parent_indices(lists), dtype=np.int64)]
    listed = (child >= 0) & (tree.forest.parent[child] == parent)
    place: Ints1d = np.full(len(tree.ids), len(child))  # after all that are linked
    place[child[listed]] = np.flatnonzero(listed)
    place[roots] = np.arange(len(roots))
    return ReadingOrder(tree.ids, Icicle(tree.forest, place))


def entries(
    snapshot: Snapshot, order: ReadingOrder, positions: Sequence[int], n_characters: int = 0
) -> list[dict[str, Any]]:
    """Return the entries of nodes in a table of contents, with the first characters of their texts.

    Returns
    -------
    list[dict]
        `id`, `title`, `level`, `document` (the id if the node is a whole document, or None), the
        numbers of `documents`, `chunks` and `children` under it, and `text`.
    """
    icicle, texts = order.icicle, ("text",) if n_characters else ()
    columns = ("title", "level", "whole_document", "documents", *texts)
    rows = _read(snapshot, order.ids_at(positions), *columns)
    return [
        {
            "id": row["id"],
            "title": row["title"],
            "level": row["level"],
            "document": row["whole_document"] or None,
            "documents": len(row["documents"]),
            "chunks": int(icicle.x1[position] - icicle.x0[position]),
            "children": int(icicle.n_children[position]),
            **{name: row[name][:n_characters] for name in texts},
        }
        for position, row in zip(positions, rows, strict=True)
    ]


def _roots(snapshot: Snapshot, tree: Tree) -> list[str]:
    """Return the roots, sorted by their first documents and the positions in them."""
    ids = tree.ids.filter(tree.forest.parent == -1).to_pylist()
    rows = _read(snapshot, ids, "documents", "record")
    return [row["id"] for row in sorted(rows, key=_place)]


def _read(snapshot: Snapshot, ids: Sequence[str], *columns: str) -> list[dict[str, Any]]:
    """Return columns of nodes, in the order of their ids."""
    where = by_ids(ids) if len(ids) <= MANY else EVERY_ROW
    rows = snapshot.select("id", *columns, where=where)
    found: list[dict[str, Any]] = rows.take(_rows(ids, rows["id"])).to_pylist()
    return found


def _place(row: Mapping[str, Any]) -> tuple[str, int]:
    spans = (span for quote in quotes_in(row["record"]) for span in quote.sources)
    return row["documents"][0], min((span.start for span in spans), default=0)


def _rows(ids: Any, among: "pa.ChunkedArray") -> Ints1d:
    """Return the positions of ids among other ids, -1 for missing ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids, pa.string())
    return np.array(pc.index_in(ids, among).fill_null(-1), dtype=np.int64)


@on_newest
def contents(table: Table, node_id: str | None, depth: int | None) -> dict[str, Any]:
    """Return a table of contents of a tree or subtree; see `HierarchicalIndex.tree`."""
    require(depth is None or is_whole(depth, 0), "depth", "an integer of at least 0", depth)
    snapshot = table.snapshot()
    snapshot.require()
    order = reading_order(snapshot)
    icicle = order.icicle
    first = None if node_id is None else order.position(snapshot.id_beginning(node_id))
    part = icicle.part(first)
    below = icicle.depth[part] - icicle.depth[part][:1]
    if depth is None:
        depth = max(1, int((np.cumsum(np.bincount(below)) <= FIRST_LOOK).sum()) - 1)
    positions = (part.start + np.flatnonzero(below <= depth)).tolist()
    tops, nodes = list[dict[str, Any]](), dict[int, dict[str, Any]]()
    for position, entry in zip(positions, entries(snapshot, order, positions), strict=True):
        del entry["children"]
        nodes[position] = {**entry, "nodes": []}
        parent = nodes.get(int(icicle.parent[position]))
        (tops if parent is None else parent["nodes"]).append(nodes[position])
    return {"nodes": tops, "hidden": len(below) - len(positions)}


@on_newest
def outlined(
    table: Table,
    load: Callable[[], EmbedModel],
    budget: int,
    question: str | None = None,
    of: str | Iterable[str] | None = None,
    filters: "MetadataFilters | Filters | None" = None,
) -> Retrieved:
    """Return the nodes of an outline; see `HierarchicalIndex.outline`.

    `load` returns the embedding model, which only a question needs.
    """
    require(is_whole(budget, 1), "budget", "an integer of at least 1", budget)
    named = None if of is None else [of] if isinstance(of, str) else [*of]
    known = Filters.of(filters)
    if question is not None:
        retrieval = Retrieval(table, load(), filters=known)
        search = retrieval.search(retrieval.embedded(question))
    else:
        snapshot = table.snapshot()
        known = known and with_known_keys(snapshot, known, strict=True)
        search = Search(snapshot, "", [], filters=known)
    found = outline(search, budget, of=named, question=question is not None)
    return Retrieved(Question(question or "", search.embedding), search.snapshot, found)
