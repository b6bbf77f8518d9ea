"""The reader behind the tools of the MCP server."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, TypeVar, cast

from hierindex.errors import InputError
from hierindex.index import HierarchicalIndex
from hierindex.node import PREFIX, TITLE, Node
from hierindex.retrieve.conditions import known_filters
from hierindex.retrieve.contents import outlined
from hierindex.retrieve.levels import Level
from hierindex.retrieve.retrieval import Retrieval, path_of
from hierindex.retrieve.sources import SourcePassage
from hierindex.serve.mcp.passages import extents, named, passages
from hierindex.serve.mcp.replies import (
    LONGEST_NAME,
    Ancestor,
    Children,
    Entry,
    Nodes,
    Outlined,
    Passage,
    Text,
    fitting,
    place_of,
    url_of,
)
from hierindex.store.filters import Filter, Filters
from hierindex.store.generations import on_newest
from hierindex.store.prefilter import CHUNKS
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.unsafe import visible

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

    from hierindex.store.vector_store import HierarchyStore

DOCUMENTS = 2000  # characters of the list of documents
PAGE, CHILDREN = 5, 20  # most entries of a part: found, and children
TEXT, BEGINNING = 2000, 300  # characters of a node's text, and of a child's
BETWEEN = "\n\n"  # passages
MOST_PLACES = 3
T = TypeVar("T")
CURSOR = re.compile("([0-9]{1,15})-([0-9]{1,15})-([0-9a-f]{8})")


class Next(TypedDict):
    """The advice after a part of a result, and the cursor of the next part, if there is one."""

    next_step: str
    cursor: NotRequired[str]


class Paging:
    """A part of the result of a call; all parts are from one generation.

    Parameters
    ----------
    snapshot : Snapshot
    cursor : str, optional
        Cursor of the part; by default the first part.
    tool : str
    *arguments : object
        The other arguments of the call.

    Attributes
    ----------
    generation : int
    start : int
        Position at which the part begins.

    Raises
    ------
    InputError
        If the cursor is invalid, or is of another generation or call.
    """

    def __init__(
        self, snapshot: Snapshot, cursor: str | None, tool: str, *arguments: object
    ) -> None:
        call = repr((snapshot.state, tool, arguments)).encode()
        self.generation: int = snapshot.generation
        self._tool = tool
        self._call = blake2b(call, digest_size=4).hexdigest()
        self.start: int = self._start(cursor) if cursor else 0

    def rest(self, items: Sequence[T]) -> Sequence[T]:
        """Return the items that are not in earlier parts."""
        return items[self.start :]

    def next(self, end: int, total: int, step: str) -> Next:
        """Return the advice after a part that ends at `end`, and the cursor of the next part."""
        if end >= total:
            return {"next_step": step}
        cursor = f"{self.generation}-{end}-{self._call}"
        more = f'`{self._tool}` again with cursor "{cursor}" for what follows.'
        return {"next_step": f"{step} {more}".strip(), "cursor": cursor}

    def _start(self, cursor: str) -> int:
        parts = CURSOR.fullmatch(cursor)
        if parts is None:
            raise InputError("The cursor is invalid; pass it unchanged, or omit it.")
        if int(parts[1]) != self.generation:
            raise InputError(
                f"The cursor is of generation {parts[1]}, and the index has changed to generation "
                f"{self.generation}; repeat the call without a cursor to begin again."
            )
        if parts[3] != self._call:
            raise InputError(
                "The cursor is of another call; pass it with the arguments of the call that gave "
                "it, or repeat the call without a cursor."
            )
        return int(parts[2])


class Reader:
    """Reads an index, always from its newest generation.

    Methods raise InputError if an argument names nothing or is invalid.

    Parameters
    ----------
    store : HierarchyStore or Table
    embed_model : BaseEmbedding, optional
        By default the model that the newest generation was built with, loaded when it is needed.
    """

    def __init__(
        self, store: "HierarchyStore | Table", embed_model: "BaseEmbedding | None" = None
    ) -> None:
        self._index = HierarchicalIndex(store, embed_model)

    def warm(self) -> None:
        """Load the embedding model, so that the first search does not wait for it."""
        self._newest(lambda snapshot: self._index.encoder().get_query_embedding("warm"))

    def search(
        self,
        query: str,
        level: Level,
        where: Sequence[str] | None,
        limit: int,
        cursor: str | None = None,
    ) -> Nodes:
        """Return the nodes of a level that answer a question best."""
        return self._newest(partial(self._search, query, level, where, limit, cursor))

    def outline(
        self,
        node: str | None,
        budget: int,
        where: Sequence[str] | None,
        cursor: str | None = None,
    ) -> Outlined:
        """Return the nodes that best summarise the index, or part of it, in a token budget."""
        return self._newest(partial(self._outline, node, budget, where, cursor))

    def expand(self, node: str, cursor: str | None = None) -> Children:
        """Return a node, the path to it, and its children with the beginnings of their texts."""
        return self._newest(partial(self._expand, node, cursor))

    def read(self, name: str, cursor: str | None = None) -> Text:
        """Return a part of the text of a node's chunks, of a document, or of a passage."""
        return self._newest(partial(self._read, name, cursor))

    fetch = read

    def _search(
        self,
        query: str,
        level: Level,
        where: Sequence[str] | None,
        limit: int,
        cursor: str | None,
        snapshot: Snapshot,
    ) -> Nodes:
        paging = Paging(snapshot, cursor, "search", query, level, where, limit)
        retrieval = Retrieval(
            self._index.table.at(snapshot),
            self._index.encoder(),
            mode="level",
            level=level,
            by="context",
            top_k=limit,
            token_budget=None,
            filters=known_filters(where, snapshot),
        )
        found = retrieval.find(retrieval.embedded(query)).found
        shown = (entry(each.node, TEXT) for each in paging.rest(found)[:PAGE])
        step = "`read` an id, or a place with other numbers for the text around it."
        if not found:
            step = "Nothing was found; `search` with other words, another level or no filter."
        return _nodes(paging, map(_with_url, shown), len(found), step)

    def _outline(
        self,
        node: str | None,
        budget: int,
        where: Sequence[str] | None,
        cursor: str | None,
        snapshot: Snapshot,
    ) -> Outlined:
        paging = Paging(snapshot, cursor, "outline", node, budget, where)
        of = None if node is None else _node_or_document(snapshot, node)
        filters = known_filters(where, snapshot)
        table, load = self._index.table.at(snapshot), self._index.encoder
        chosen = outlined(table, load, budget, of=of, filters=filters).found
        shown = (entry(each.node, TEXT) for each in paging.rest(chosen))
        step = "`expand` an id for what is under it, or `read` it for its sources."
        reply = _nodes(paging, shown, len(chosen), step)
        return cast(Outlined, reply if node or cursor else _documents(snapshot, filters) | reply)

    def _expand(self, node: str, cursor: str | None, snapshot: Snapshot) -> Children:
        paging = Paging(snapshot, cursor, "expand", node)
        top = _node(snapshot, _node_or_document(snapshot, node))
        children = top.children
        below = snapshot.nodes(paging.rest(children)[:CHILDREN])
        shown = (entry(child, BEGINNING) for child in below)
        step = "`expand` or `read` a child." if children else "Nothing is under it; `read` it."
        reply = _nodes(paging, shown, len(children), step)
        path = ancestors(snapshot, top)
        return {**reply, "path": path, "node": entry(top, TEXT)}

    def _read(self, name: str, cursor: str | None, snapshot: Snapshot) -> Text:
        paging = Paging(snapshot, cursor, "read", name)
        what = named(snapshot, name)
        spans = extents(snapshot, what)
        found = passages(snapshot, spans, paging.start)
        text, cited = _joined(found)
        total = sum(span.end - span.start for span in spans)
        end = paging.start + sum(len(passage.text) for passage in found)
        step = "" if end < total else "That is all of it; `search` or `outline` for more."
        return {
            "generation": snapshot.generation,
            "id": what.node or name,
            "title": title_of(snapshot, what.node) if what.node else what.document,
            "url": url_of(place_of(spans[0])),
            "text": text,
            "citations": cited,
            "start": paging.start,
            "total": total,
            **paging.next(end, total, step),
        }

    def _newest(self, read: Callable[[Snapshot], T]) -> T:
        @on_newest
        def reading() -> T:
            snapshot = self._index.table.snapshot()
            snapshot.require()
            return read(snapshot)

        return reading()


def _node_or_document(snapshot: Snapshot, text: str) -> str:
    """Return the id that a text resolves to; raise InputError for a passage."""
    name = named(snapshot, text)
    if name.end is not None:
        raise InputError(f"{text!r} is a passage of a document; pass it to `read`.")
    return name.node or name.document


def _node(snapshot: Snapshot, name: str) -> Node:
    """Return the node with an id, or the node with exactly the chunks of a document."""
    whole = Filters((Filter(PREFIX + "whole_document", name),))
    nodes = snapshot.nodes([name]) or snapshot.nodes(filters=whole)
    if not nodes:
        raise InputError(f"No node has exactly the chunks of {name!r}; `outline` or `read` it.")
    return nodes[0]


def _nodes(paging: Paging, entries: Iterable[Entry], total: int, step: str) -> Nodes:
    """Return the part of a reply that begins with these entries; as many as fit are returned."""
    results = fitting(entries)
    return {
        "generation": paging.generation,
        "results": results,
        "total": total,
        **paging.next(paging.start + len(results), total, step),
    }


def _documents(snapshot: Snapshot, filters: Filters | None) -> dict[str, Any]:
    """Return the first documents that pass filters, by id, and the number of all."""
    where = CHUNKS if filters else snapshot.of_each_document
    rows = snapshot.rows(filters=filters, where=where, columns=("id", "documents", "metadata"))
    titles = {row["documents"][0]: json.loads(row["metadata"]).get(TITLE) for row in rows}
    shown = (
        {"id": name, "title": str(titles[name] or name)[:LONGEST_NAME]} for name in sorted(titles)
    )
    return {"documents": fitting(shown, DOCUMENTS), "n_documents": len(titles)}


def _with_url(found: Entry) -> Entry:
    return {**found, "url": url_of(found["citations"][0])} if found["citations"] else found


def _joined(found: Sequence[SourcePassage]) -> tuple[str, list[Passage]]:
    """Return the text of passages, and the position of each in it."""
    texts, cited, at = list[str](), list[Passage](), 0
    for passage in found:
        texts.append(visible(passage.text, lines=True))
        to = at + len(texts[-1])
        cited.append(cast(Any, {"at": at, "to": to, **place_of(passage.citation)}))
        at = to + len(BETWEEN)
    return BETWEEN.join(texts), cited


def entry(node: Node, n_characters: int) -> Entry:
    """Return a node with the first characters of its text and its first three citations."""
    text, places = node.text, node.citations
    made: Entry = {
        "id": node.id,
        "title": node.title[:LONGEST_NAME],
        "level": node.level,
        "text": text[:n_characters],
        "citations": [*map(place_of, places[:MOST_PLACES])],
    }
    if len(text) > n_characters:
        made["cut"] = True
    if len(places) > MOST_PLACES:
        made["more_citations"] = len(places) - MOST_PLACES
    if node.children:
        made["children"] = len(node.children)
    return made


def ancestors(snapshot: Snapshot, node: Node) -> list[Ancestor]:
    """Return the nodes from the root down to a node's strongest parent."""
    rows = snapshot.rows(path_of(node, snapshot)[::-1], columns=("id", "title", "level"))
    return [
        {"id": row["id"], "title": row["title"][:LONGEST_NAME], "level": row["level"]}
        for row in rows
    ]


def title_of(snapshot: Snapshot, node_id: str) -> str:
    """Return the title of a node."""
    (row,) = snapshot.rows([node_id], columns=("id", "title"))
    return str(row["title"][:LONGEST_NAME])
