"""Outlines: the nodes that tell most of an index, or of a part of it, in so many tokens."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.core.cut import Forest, Mask, select_cut, select_margin, told
from hierindex.core.membership import Floats1d, Ints1d
from hierindex.core.ranking import cosines
from hierindex.errors import InputError
from hierindex.record import NodeRecord
from hierindex.retrieve.question import Search, of_documents
from hierindex.retrieve.selection import SHORTEST, token_counter
from hierindex.store.prefilter import CHUNKS, Prefilter, prefilter
from hierindex.store.rows import documents_of
from hierindex.store.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

COUNTED = 256  # rows at the margin of a cut, whose tokens are counted
MANY = 1000  # documents; for nodes of more, all rows are read
COLUMNS = ("id", "level", "n_tokens", "parent_ids", "documents")


async def outline(
    search: Search, budget: int, *, of: Sequence[str] | None = None, question: bool = True
) -> list[NodeWithScore]:
    """Return the nodes that tell most in so many tokens, none of them above another.

    Parameters
    ----------
    search : Search
        Nodes must pass its filters.
    budget : int
        Maximum tokens of all nodes together, counted as for `token_budget`.
    of : sequence of str, optional
        Ids of documents, and ids or unique id prefixes of nodes. Nodes must stand on these
        documents alone, or be one of these nodes or under one. By default, the whole index.
    question : bool
        Whether text counts for more the more similar it is to the question.

    Returns
    -------
    list[NodeWithScore]
        In reading order, documents in the order of their ids. A score is the share of the text
        that the node tells of.

    Raises
    ------
    InputError
        If no node fits the budget, or there is no document or node of an id.

    Notes
    -----
    In a tree with several parents per node, a node is under its strongest parent only. See
    `told` for what a node tells and `select_cut` for the choice. The columns of all rows are
    read, or those of the documents named by `of`, and the vectors if there is a question.
    """
    snapshot = search.snapshot
    if not snapshot.exists:
        return []
    where = Prefilter()
    if of is not None:
        documents, node_ids, where = await _named(snapshot, of)
    rows = (await snapshot.select(*COLUMNS, where=where)).sort_by("id").combine_chunks()
    if of is not None:
        rows = rows.filter(_inside(rows, documents, node_ids)).combine_chunks()
    if not len(rows):
        return []
    forest, n_tokens = _forest(rows), np.maximum(rows["n_tokens"].to_numpy(), 1).astype(np.int64)
    cosine = await _cosines(search, where, rows["id"]) if question else None
    share, value = told(forest, n_tokens, cosine)
    if search.filters is not None:
        partial = search.partial_summaries
        passing = await snapshot.ids(search.filters, where, partial_summaries=partial)
        value[~_is_in(rows["id"], passing)] = 0.0
    return await _fitting(snapshot, rows["id"], forest, n_tokens, share, value, budget)


async def _named(snapshot: Snapshot, of: Sequence[str]) -> tuple[list[str], list[str], Prefilter]:
    """Return which ids are documents', those of nodes, and a condition that their rows meet."""
    held = (await snapshot.select("documents", where=_in(of) & CHUNKS))["documents"]
    known = {document for row in held.to_pylist() for document in row}
    documents = [each for each in of if each in known]
    others = [each for each in of if each not in known]
    node_ids = [await snapshot.id_beginning(each, or_document=True) for each in others]
    of_nodes = (await snapshot.columns("documents", node_ids=node_ids))["documents"]
    every = {*documents, *(document for row in of_nodes for document in row)}
    return documents, node_ids, _in(every) if len(every) <= MANY else Prefilter()


def _in(documents: Iterable[str]) -> Prefilter:
    return prefilter(MetadataFilters(filters=[of_documents([*documents])]))


async def _cosines(search: Search, where: Prefilter, ids: "pa.ChunkedArray") -> Floats1d:
    """Return the similarities to the question of nodes among those that meet a condition."""
    import pyarrow as pa
    import pyarrow.compute as pc

    q = np.array(search.embedding, dtype=np.float32)
    read, similarities = list[pa.Array](), [np.zeros(0)]
    async for batch in search.snapshot.batches("id", "vector", where=where):
        X = batch["vector"].flatten().to_numpy().reshape(-1, len(q))
        read.append(batch["id"])
        similarities.append(cosines(X, q))
    row = pc.index_in(ids, pa.chunked_array(read, pa.string())).to_numpy()
    return np.asarray(np.concatenate(similarities)[row])


def _inside(rows: "pa.Table", documents: list[str], node_ids: list[str]) -> Mask:
    """Return which rows stand on these documents alone, or are one of these nodes or under one."""
    import pyarrow.compute as pc

    inside, lists = np.ones(len(rows), dtype=np.bool_), rows["documents"].combine_chunks()
    other = ~_is_in(lists.flatten(), documents)
    inside[np.array(pc.list_parent_indices(lists))[other]] = False
    named = _is_in(rows["id"], node_ids)
    return inside | named | _forest(rows).under(named)


def _is_in(ids: "pa.ChunkedArray", values: Iterable[str]) -> Mask:
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.array(pc.is_in(ids, pa.array(values, pa.string())), dtype=np.bool_)


def _forest(rows: "pa.Table") -> Forest:
    """Return the tree of the strongest parents among some rows."""
    import pyarrow.compute as pc

    lists, level = rows["parent_ids"].combine_chunks(), rows["level"].to_numpy()
    n_parents = pc.list_value_length(lists).to_numpy()
    strongest = lists.flatten().take((np.cumsum(n_parents) - n_parents)[n_parents > 0])
    parent = np.full(len(rows), -1)
    parent[n_parents > 0] = pc.index_in(strongest, rows["id"]).fill_null(-1).to_numpy()
    parent[level[parent] <= level] = -1
    return Forest(parent, level)


async def _fitting(
    snapshot: Snapshot,
    ids: "pa.ChunkedArray",
    forest: Forest,
    n_tokens: Ints1d,
    share: Floats1d,
    value: Floats1d,
    budget: int,
) -> list[NodeWithScore]:
    """Return the best cut by the tokens that an LLM reads.

    They are counted for the rows that may be chosen; the others are taken to have as many times
    the tokens of the embedding model as those have.
    """
    count, tokens, nodes = token_counter(), n_tokens.copy(), dict[int, NodeWithScore]()
    admitted = np.flatnonzero(value > 0)
    shortest = admitted[np.argsort(n_tokens[admitted], kind="stable")[:SHORTEST]]

    async def counted(rows: Ints1d) -> None:
        new = np.setdiff1d(rows, np.array([*nodes], dtype=np.int64))
        found = await snapshot.nodes(ids.take(new).to_pylist())
        for row, node in zip(new.tolist(), found, strict=True):
            nodes[row] = NodeWithScore(node=node, score=float(share[row]))
        known = [*nodes]
        tokens[known] = [max(1, count(node)) for node in nodes.values()]
        others = np.setdiff1d(admitted, known)
        ratio = tokens[known].sum() / max(1, n_tokens[known].sum())
        tokens[others] = np.maximum(n_tokens[others] * ratio, 1)

    def cut() -> Ints1d:
        known = np.zeros(len(value))
        known[[*nodes]] = value[[*nodes]]
        return select_cut(forest, tokens, known, budget)

    for _ in range(2):  # the second time by what was counted first
        margin = select_margin(forest, tokens, value, budget, COUNTED)
        await counted(margin if len(margin) else shortest)
    chosen = cut()
    if not len(chosen) and len(shortest):
        await counted(shortest)
        least, chosen = tokens[[*nodes]].min(), cut()
        if not len(chosen):
            raise InputError(f"No node fits budget={budget}; the shortest has {least} tokens.")
    return sorted((nodes[row] for row in chosen.tolist()), key=_place)


def _place(found: NodeWithScore) -> tuple[str, int]:
    record = NodeRecord.from_metadata(found.metadata)
    first = (documents_of(found.node, record)[0], -1)
    return min(((span.document, span.start) for span in record.citations), default=first)
