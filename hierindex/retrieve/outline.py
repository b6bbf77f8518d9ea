"""Outlines: the nodes that summarise an index, or a part of it, best within a token budget."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hierindex.core.arrays import Floats1d, Ints1d
from hierindex.core.cut import Forest, Mask, select_cut, share_and_value
from hierindex.core.identity import wholes
from hierindex.core.ranking import cosines
from hierindex.errors import InputError
from hierindex.node import Found
from hierindex.retrieve.copies import without_copies
from hierindex.retrieve.levels import Cut
from hierindex.retrieve.question import Search, of_documents
from hierindex.retrieve.selection import token_counter
from hierindex.store.filters import Filters
from hierindex.store.prefilter import Prefilter, prefilter
from hierindex.store.snapshot import Snapshot, once

if TYPE_CHECKING:
    import pyarrow as pa

SHORTEST = 100  # nodes by the embedding model's tokens, whose tokens are counted for an LLM
MANY = 1000  # documents; for nodes of more, all rows are read
COLUMNS = ("id", "level", "n_tokens", "parent_ids")


class Tree(NamedTuple):
    """The rows that may be selected, in the order of their ids."""

    ids: "pa.ChunkedArray"
    n_tokens: Ints1d
    """By the embedding model, at least 1."""
    forest: Forest


def outline(
    search: Search,
    budget: int,
    *,
    of: Sequence[str] | None = None,
    at: Cut | None = None,
    most: int | None = None,
    question: bool = True,
) -> list[Found]:
    """Return the nodes that summarise best within a token budget, none an ancestor of another.

    Parameters
    ----------
    search : Search
        Nodes must pass its filters.
    budget : int
        Maximum tokens of all nodes together, counted as for `token_budget`.
    of : sequence of str, optional
        Ids of documents or mailboxes, and ids or unique id prefixes of nodes. Nodes must stand on
        these documents alone, or be one of these nodes or under one. By default, the whole index.
    at : Cut, optional
        Nodes of levels, which alone are selected.
    most : int, optional
        Maximum number of nodes. Each then counts for more than budget / (most + 1) tokens.
    question : bool
        Whether text counts for more the more similar it is to the question.

    Returns
    -------
    list[Found]
        In reading order, documents in the order of their ids. A score is the share of the text
        that the node stands for; of the text that passes the filters, if any of it does.

    Raises
    ------
    InputError
        If no node fits the budget, or there is no document or node of an id.

    Notes
    -----
    In a tree with several parents per node, a node is under the strongest parent that may be
    selected. A summary without text under it is not selected. See `share_and_value` for what a
    node is worth and `select_cut` for the choice. The columns of all rows are read, or those of
    the documents named by `of`, and the vectors if there is a question.
    """
    snapshot = search.snapshot
    if not snapshot.exists:
        return []
    if of is None:
        tree, where = whole_tree(snapshot), Prefilter()
    else:
        documents, node_ids, where = _named(snapshot, of)
        rows = snapshot.select(*COLUMNS, "documents", where=where)
        tree = _tree(rows, documents, node_ids)
    if not tree.forest.is_text.any():
        return []
    cosine = _cosines(search, where, tree.ids) if question else None
    share, value = share_and_value(tree.forest, tree.n_tokens, cosine)
    if search.filters is not None:
        partial = search.partial_summaries
        passing = snapshot.ids(search.filters, where, partial_summaries=partial)
        passes = is_in(tree.ids, passing)
        value[~passes] = 0.0
        text = np.where(tree.forest.is_text & passes, share, 0.0)
        if text.any():
            share = tree.forest.summed(text) / text.sum()
    if at is not None:
        value[~is_in(tree.ids, snapshot.ids(at.filters, where, highest_of=at.highest_of))] = 0
    found = _fitting(snapshot, tree, share, value, budget, most)
    return without_copies(found, search)


@once
def whole_tree(snapshot: Snapshot) -> Tree:
    """Return the tree of all rows. Cached: 60 MB for a million."""
    return _tree(snapshot.select(*COLUMNS))


def _tree(rows: "pa.Table", *of: list[str]) -> Tree:
    """Return the tree of some rows, or of those inside of documents and nodes."""
    rows = rows.sort_by("id").combine_chunks()
    if of:
        rows = rows.filter(_inside(rows, *of)).combine_chunks()
    n_tokens = np.maximum(rows["n_tokens"].to_numpy(), 1).astype(np.int64)
    return Tree(rows["id"], n_tokens, _forest(rows))


def _named(snapshot: Snapshot, of: Sequence[str]) -> tuple[list[str], list[str], Prefilter]:
    """Return which ids are documents', those of nodes, and a condition that their rows meet."""
    rows = snapshot.select("documents", where=snapshot.of_each_document)["documents"]
    inside = {d: {*wholes(d)}.intersection(of) for row in rows.to_pylist() for d in row}
    documents = [document for document, named in inside.items() if named]
    others = {*of}.difference(*inside.values())
    node_ids = [snapshot.id_beginning(each, or_document=True) for each in sorted(others)]
    of_nodes = snapshot.columns("documents", node_ids=node_ids)["documents"]
    every = {*documents, *(document for row in of_nodes for document in row)}
    where = prefilter(Filters((of_documents([*every]),))) if len(every) <= MANY else Prefilter()
    return documents, node_ids, where


def _cosines(search: Search, where: Prefilter, ids: "pa.ChunkedArray") -> Floats1d:
    """Return the similarities to the question of nodes among those that meet a condition."""
    import pyarrow as pa
    import pyarrow.compute as pc

    q = np.array(search.embedding, dtype=np.float32)
    read, similarities = list[pa.Array](), [np.zeros(0)]
    for batch in search.snapshot.batches("id", "vector", where=where):
        X = batch["vector"].flatten().to_numpy().reshape(-1, len(q))
        read.append(batch["id"])
        similarities.append(cosines(X, q))
    row = pc.index_in(ids, pa.chunked_array(read, pa.string())).to_numpy()
    return np.asarray(np.concatenate(similarities)[row])


def _inside(rows: "pa.Table", documents: list[str], node_ids: list[str]) -> Mask:
    """Return which rows stand on these documents alone, or are one of these nodes or under one."""
    import pyarrow.compute as pc

    inside, lists = np.ones(len(rows), dtype=np.bool_), rows["documents"].combine_chunks()
    other = ~is_in(lists.flatten(), documents)
    inside[np.array(pc.list_parent_indices(lists))[other]] = False
    under, (child, parent) = is_in(rows["id"], node_ids), _links(rows)
    for _ in pc.unique(rows["level"]):  # as often as there are levels to go down
        under[child[under[parent]]] = True
    return inside | under


def _links(rows: "pa.Table") -> tuple[Ints1d, Ints1d]:
    """Return each child among some rows and its parent there, a child's strongest parent first."""
    import pyarrow.compute as pc

    lists = rows["parent_ids"].combine_chunks()
    child = np.array(pc.list_parent_indices(lists), dtype=np.int64)
    parent = np.array(pc.index_in(lists.flatten(), rows["id"]).fill_null(-1), dtype=np.int64)
    return child[parent >= 0], parent[parent >= 0]


def is_in(ids: "pa.ChunkedArray", values: Iterable[str]) -> Mask:
    """Return which ids are among some values, (n_ids,)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.array(pc.is_in(ids, pa.array(values, pa.string())), dtype=np.bool_)


def _forest(rows: "pa.Table") -> Forest:
    """Return the tree of the strongest parents among some rows."""
    level, (child, parent) = rows["level"].to_numpy(), _links(rows)
    above = level[parent] > level[child]
    strongest = np.full(len(rows), -1)
    strongest[child[above][::-1]] = parent[above][::-1]  # a child's first parent is written last
    return Forest(strongest, level)


def _fitting(
    snapshot: Snapshot,
    tree: Tree,
    share: Floats1d,
    value: Floats1d,
    budget: int,
    most: int | None,
) -> list[Found]:
    """Return the best cut by the tokens that an LLM reads.

    They are counted for some of the shortest rows, and for those that are chosen, until they fit;
    the others are taken to have as many times the tokens of the embedding model as those have.
    """
    ids, n_tokens, forest = tree
    count, tokens, nodes = token_counter(), n_tokens.copy(), dict[int, Found]()
    admitted = np.flatnonzero(value > 0)
    new = chosen = admitted[np.argsort(n_tokens[admitted], kind="stable")[:SHORTEST]]
    while len(new):
        for row, node in zip(new.tolist(), snapshot.nodes(ids.take(new).to_pylist()), strict=True):
            nodes[row] = Found(node, float(share[row]))
            tokens[row] = max(1, count(nodes[row]))
        known = [*nodes]
        others = np.setdiff1d(admitted, known)
        ratio = tokens[known].sum() / n_tokens[known].sum()
        tokens[others] = np.maximum(n_tokens[others] * ratio, 1)
        room = min(budget, int(tokens.sum()))
        least = 1 if most is None else room // (most + 1) + 1
        chosen = select_cut(forest, np.maximum(tokens, least), value, room)
        new = np.setdiff1d(chosen, known)
    if nodes and not len(chosen):
        shortest = tokens[[*nodes]].min()
        raise InputError(f"No node fits a budget of {budget} tokens; the shortest has {shortest}.")
    return sorted((nodes[row] for row in chosen.tolist()), key=_place)


def _place(found: Found) -> tuple[str, int]:
    first = (found.node.documents[0], -1)
    return min(((span.document, span.start) for span in found.node.citations), default=first)
