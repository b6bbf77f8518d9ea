"""The tools of the MCP server: the arguments of their calls, and their replies."""

import json
import re
from collections.abc import Iterable, Sequence
from math import inf
from typing import Annotated, Any, NamedTuple
from urllib.parse import unquote

from pydantic import Field

from hierindex.errors import InputError, NotFoundError
from hierindex.index import HierarchicalIndex
from hierindex.node import TITLE, Node
from hierindex.retrieve.named import similar_documents
from hierindex.retrieve.retrieval import Retrieval, outlined, path_of
from hierindex.retrieve.sources import COLUMNS, Stretch, stretches_in, stretches_of
from hierindex.serve.endpoint import Endpoint
from hierindex.serve.mcp.replies import (
    LONGEST_NAME,
    MOST_CHARACTERS,
    SCHEME,
    Entry,
    Place,
    Reply,
    fitting,
    place_of,
    url_of,
)
from hierindex.settings import OUTLINE_TOKENS, OneLevel
from hierindex.store.filters import CHUNKS, Filters, known_filters, of_documents
from hierindex.store.snapshot import Snapshot
from hierindex.unsafe import visible

DOCUMENTS = 2000  # characters of the list of documents
PAGE, CHILDREN = 5, 20  # most entries of a part: found, and children
TEXT, BEGINNING = 2000, 300  # characters of a node's text, and of a child's
BETWEEN = "\n\n"  # passages
MOST_PLACES = 3
CURSOR = re.compile("([0-9]{1,15})-([0-9]{1,15})")  # a generation, and a position
PLACE = re.compile("(.+)#char=([0-9]{1,15}),([0-9]{1,15})", re.DOTALL)
MOST_LIKE = 3  # ids of a message
MOST_CHUNKS = 5000  # under a node
MOST_PASSAGES = 50  # of a part

Id = Annotated[str, Field(alias="id", max_length=5000)]
Where = Annotated[
    list[Annotated[str, Field(max_length=1000)]] | None,
    Field(max_length=20, description="Filters KEY=VALUE, also !=, <, <=, >, >=, ~ (contains)."),
]
Cursor = Annotated[
    str | None, Field(max_length=100, description="For what follows a reply: its cursor.")
]


class Search(Endpoint):
    """Find the chunks, or the nodes of another level, that answer a question best."""

    query: Annotated[str, Field(max_length=2000, description="A question, or words.")]
    level: Annotated[
        OneLevel, Field(description="A number from 0, or chunks, sections, documents or top.")
    ] = 0
    where: Where = None
    limit: Annotated[int, Field(ge=1, le=50, description="Most results in all parts.")] = 50
    cursor: Cursor = None

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> Reply:
        """Return the nodes of a level that answer a question best."""
        start = start_of(snapshot, self.cursor)
        retrieval = Retrieval(
            index.table,
            index.encoder(),
            mode="level",
            level=self.level,
            by="context",
            top_k=self.limit,
            token_budget=None,
            filters=known_filters(self.where, snapshot),
        )
        found = retrieval.find(retrieval.embedded(self.query)).found
        shown = [entry(each.node, TEXT) for each in found[start : start + PAGE]]
        for each in shown:
            if each["citations"]:
                each["url"] = url_of(each["citations"][0])
        step = "`read` an id, or a place with other numbers for the text around it."
        if not found:
            step = "Nothing was found; `search` with other words, another level or no filter."
        return _nodes("search", snapshot, start, shown, len(found), step)


class Outline(Endpoint):
    """List the documents, and summarise the index, a node or a document in a budget of tokens."""

    node: Annotated[str | None, Field(max_length=5000, description="Node or document; or all.")] = (
        None
    )
    budget: Annotated[int, Field(ge=1, le=20_000, description="Tokens of all texts together.")] = (
        OUTLINE_TOKENS
    )
    where: Where = None
    cursor: Cursor = None

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> Reply:
        """Return the nodes that summarise best, and for the whole index its documents."""
        start = start_of(snapshot, self.cursor)
        of = None if self.node is None else _node_or_document(snapshot, self.node)
        filters = known_filters(self.where, snapshot)
        given = index.table, index.encoder, self.budget
        chosen = outlined(*given, of=of, filters=filters).found
        shown = (entry(each.node, TEXT) for each in chosen[start:])
        step = "`expand` an id for what is under it, or `read` it for its sources."
        reply = _nodes("outline", snapshot, start, shown, len(chosen), step)
        is_whole = not (self.node or self.cursor)
        if is_whole:
            reply["documents"], reply["n_documents"] = _documents(snapshot, filters)
        return reply


class Expand(Endpoint):
    """Show a node, the path to it, and its children with the beginnings of their texts."""

    node: Id
    cursor: Cursor = None

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> Reply:
        """Return the node, the path to it, and its children."""
        start = start_of(snapshot, self.cursor)
        name = _node_or_document(snapshot, self.node)
        if not (nodes := snapshot.nodes_named(name)):
            raise InputError(f"No node has exactly the chunks of {name!r}; `outline` or `read` it.")
        top = nodes[0]
        below = snapshot.nodes(top.children[start : start + CHILDREN])
        shown = (entry(child, BEGINNING) for child in below)
        step = "`expand` or `read` a child." if below else "Nothing is under it; `read` it."
        reply = _nodes("expand", snapshot, start, shown, len(top.children), step)
        return {**reply, "path": ancestors(snapshot, top), "node": entry(top, TEXT)}


class Read(Endpoint):
    """Read documents verbatim: those under a node, a document, or DOCUMENT#char=START,END."""

    name: Id
    cursor: Cursor = None

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> Reply:
        """Return the text from the cursor on."""
        start = start_of(snapshot, self.cursor)
        what = named(snapshot, self.name)
        held = extents(snapshot, what)
        text, cited = _text_from(start, held)
        total = sum(last - first for _, first, last in held)
        end = start + sum(place["end"] - place["start"] for place in cited)
        stretch, *whole = held[0]
        step = "" if end < total else "That is all of it; `search` or `outline` for more."
        title = what.document
        if what.node:
            title = snapshot.rows([what.node], columns=("id", "title"))[0]["title"]
        return {
            **_part("read", snapshot, end, total, step),
            "id": what.node or self.name,
            "title": title[:LONGEST_NAME],
            "url": url_of(place_of(stretch.span(*whole))),
            "text": text,
            "citations": cited,
            "start": start,
        }


class Fetch(Read):
    """Do the same as `read`, under the name that some clients ask for."""


TOOLS: dict[str, type[Endpoint]] = {
    kind.__name__.lower(): kind for kind in (Search, Outline, Expand, Read, Fetch)
}


def start_of(snapshot: Snapshot, cursor: str | None) -> int:
    """Return the position at which a part begins; InputError if its generation has passed."""
    if cursor is None:
        return 0
    found = CURSOR.fullmatch(cursor)
    if found is None:
        raise InputError("The cursor is invalid; pass it unchanged, or omit it.")
    if int(found[1]) != snapshot.generation:
        raise InputError(
            f"The cursor is of generation {found[1]}, and the index has changed to generation "
            f"{snapshot.generation}; repeat the call without a cursor to begin again."
        )
    return int(found[2])


def _part(tool: str, snapshot: Snapshot, end: int, total: int, step: str) -> Reply:
    """Return what every reply has; the cursor requests the part that begins at `end`."""
    reply: Reply = {"generation": snapshot.generation, "total": total, "next_step": step}
    if end < total:
        reply["cursor"] = f"{snapshot.generation}-{end}"
        more = f'`{tool}` again with cursor "{reply["cursor"]}" for what follows.'
        reply["next_step"] = f"{step} {more}".strip()
    return reply


def _node_or_document(snapshot: Snapshot, text: str) -> str:
    """Return the id that a text resolves to; raise InputError for a passage."""
    name = named(snapshot, text)
    if name.end < inf:
        raise InputError(f"{text!r} is a passage of a document; pass it to `read`.")
    return name.node or name.document


def _nodes(
    tool: str, snapshot: Snapshot, start: int, entries: Iterable[Entry], total: int, step: str
) -> Reply:
    """Return the part of a reply that begins with these entries; as many as fit are returned."""
    results = fitting(entries)
    return {**_part(tool, snapshot, start + len(results), total, step), "results": results}


def _documents(snapshot: Snapshot, filters: Filters | None) -> tuple[list[Entry], int]:
    """Return the first documents that pass filters, by id, and the number of all."""
    where = CHUNKS if filters else snapshot.of_each_document
    rows = snapshot.rows(filters=filters, where=where, columns=("id", "documents", "metadata"))
    titles = {row["documents"][0]: json.loads(row["metadata"]).get(TITLE) for row in rows}
    shown = (
        Entry(id=name, title=str(titles[name] or name)[:LONGEST_NAME]) for name in sorted(titles)
    )
    return fitting(shown, DOCUMENTS), len(titles)


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


def ancestors(snapshot: Snapshot, node: Node) -> list[Entry]:
    """Return the nodes from the root down to a node's strongest parent."""
    rows = snapshot.rows(path_of(node, snapshot)[::-1], columns=("id", "title", "level"))
    return [
        {"id": row["id"], "title": row["title"][:LONGEST_NAME], "level": row["level"]}
        for row in rows
    ]


class Named(NamedTuple):
    """A node by its id, or characters `start` to `end` of a document, by default all."""

    node: str | None = None
    document: str = ""
    start: int = 0
    end: float = inf


def named(snapshot: Snapshot, text: str) -> Named:
    """Resolve an id: a document, `DOCUMENT#char=START,END`, or a prefix of a node id.

    A passage may also be given as a URL of `url_of`.

    Raises
    ------
    InputError
        If nothing or more than one node matches; the message has similar names.
    """
    if _is_document(snapshot, text):
        return Named(document=text)
    if text.startswith(SCHEME):
        text = unquote(text.removeprefix(SCHEME))
    place = PLACE.fullmatch(text)
    if place and _is_document(snapshot, place[1]):
        start, end = int(place[2]), int(place[3])
        if start >= end:
            raise InputError(f"A passage must start before it ends, got {start} to {end}.")
        return Named(None, place[1], start, end)
    ids = snapshot.ids_beginning(text) if text else []
    if text in ids or len(ids) == 1:
        return Named(text if text in ids else ids[0])
    if ids:
        some = ", ".join(map(repr, ids[:MOST_LIKE]))
        raise InputError(f"{len(ids)} nodes have an id that begins with {text!r}, such as {some}.")
    document = place[1] if place else text
    like = ", ".join(map(repr, similar_documents(document, snapshot)))
    there = f"similar are {like}" if like else "outline tells what there is"
    raise NotFoundError(f"No node and no document has the id {document!r}; {there}.")


def _is_document(snapshot: Snapshot, text: str) -> bool:
    return snapshot.count(CHUNKS & of_documents([text])) > 0


def extents(snapshot: Snapshot, what: Named) -> list[tuple[Stretch, int, int]]:
    """Return the stretches of text that a name refers to, each with its first and last character.

    Raises
    ------
    InputError
        If the index does not hold them, or they span too many chunks.
    """
    if what.node:
        by_document = stretches_in(_under(snapshot, what.node))
        found = [stretch for document in sorted(by_document) for stretch in by_document[document]]
    else:
        found = stretches_of(snapshot, what.document)
    parts = (
        (stretch, max(stretch.start, what.start), int(min(stretch.end, what.end)))
        for stretch in found
    )
    held = [(stretch, start, end) for stretch, start, end in parts if start < end]
    if not held:
        raise InputError(
            "The index holds no text of a document there, or its chunks have no known position."
        )
    return held


def _text_from(skipped: int, held: Sequence[tuple[Stretch, int, int]]) -> tuple[str, list[Place]]:
    """Return the text after the first `skipped` characters up to the size of one part.

    With it, the place of each passage, in its document and in the text.
    """
    texts, cited, at, room = list[str](), list[Place](), 0, MOST_CHARACTERS
    for stretch, first, end in held:
        start = first + skipped
        skipped = max(0, start - end)
        if start < end and room and len(cited) < MOST_PASSAGES:
            last = min(end, start + room)
            room -= last - start
            text = visible(stretch.part(start, last), lines=True)
            place = place_of(stretch.span(start, last))
            cited.append({**place, "at": at, "to": at + len(text)})
            texts.append(text)
            at += len(text) + len(BETWEEN)
    return BETWEEN.join(texts), cited


def _under(snapshot: Snapshot, node_id: str) -> list[dict[str, Any]]:
    """Return the rows of the chunks under a node, or of the node itself if it is a chunk."""
    chunks, ids = set[str](), [node_id]
    while ids:
        rows = snapshot.rows(ids, columns=("id", "level", "child_ids"))
        chunks |= {row["id"] for row in rows if not row["level"]}
        ids = [*dict.fromkeys(child for row in rows for child in row["child_ids"])]
        if len(ids) > MOST_CHUNKS:
            raise InputError(
                f"Over {MOST_CHUNKS:,} nodes are under {node_id!r}; `expand` it and read a child."
            )
    return snapshot.rows([*chunks], columns=COLUMNS)
