"""The requests of the explorer's page: their parameters, and their answers."""

from bisect import bisect
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from hierindex.errors import InputError, NotFoundError
from hierindex.index import HierarchicalIndex
from hierindex.node import Node as Stored
from hierindex.node import Quote, Span
from hierindex.read.files import file_in
from hierindex.respond.evidence import QuestionWords, words_of
from hierindex.respond.overview import overview_of_all
from hierindex.retrieve.named import title_in, titles_of_documents
from hierindex.retrieve.sources import Chunk, stretches_of
from hierindex.retrieve.tree import chunk_map, entries, reading_order
from hierindex.serve.endpoint import Endpoint, showing
from hierindex.settings import load_settings
from hierindex.store.filters import CHUNKS, known_filters, of_documents
from hierindex.store.rows import describe, quotes_in
from hierindex.store.search import matching
from hierindex.store.snapshot import Snapshot, once, overview
from hierindex.text.display import displayed, marks_of
from hierindex.text.sentences import split_sentences

BEGINNING = 300  # characters of a text
MAX_ENTRIES = 1000  # entries of a list
CANDIDATES = 4  # for each node of a search, to rank by their titles
PART = 20_000  # characters of a document
SHORT = ("id", "title", "level")


@once
def of_index(snapshot: Snapshot) -> dict[str, Any]:
    """Return the description of an index with its name; `roots` and `titles` are the first 1,000.

    Cached.
    """
    shown = overview(snapshot)
    return {
        "name": snapshot.name,
        **shown,
        "time": snapshot.details().get("time"),
        "roots": shown["roots"][:MAX_ENTRIES],
        "titles": shown["titles"][:MAX_ENTRIES],
    }


def file_of(snapshot: Snapshot, document: str) -> Path | None:
    """Return the file that a document, or the mailbox or e-mail around it, was read from.

    None if the index does not know the file, or it no longer exists, or it is outside its source.
    """
    where = CHUNKS & of_documents([document])  # a tenth of the time of `of_each_document`
    rows = snapshot.select("documents", "read_from", where=where).to_pylist()
    known = (row["read_from"] for row in rows if row["documents"] == [document])
    source = next(filter(None, known), "")
    return file_in(source, document) if source else None


def _matching_sentence(node: Stored, asked: QuestionWords) -> dict[str, Any]:
    """Return the sentence that contains most of the words, and its position."""
    sentences = split_sentences(node.text, node.quotes)
    best = max(sentences, key=lambda each: len(asked.words & asked.stems(each.text)), default=None)
    source = best.quote.source if best else None
    return {"text": displayed(best.text) if best else "", "source": source and source.to_json()}


def quotes_json(quotes: Sequence[Quote]) -> list[dict[str, Any]]:
    """Return the quotes of a text as dicts: its parts, with the passages that support them.

    An entry has `at`, `to`, `verbatim` and the fields of the best passage. A rewritten sentence
    that no source supports has no passage. Quotes with unknown positions are left out.
    """
    return [
        {"at": quote.at, "to": quote.to, "verbatim": quote.verbatim, **best}
        for quote in quotes
        if (best := quote.source.to_json() if quote.source else {}) or not quote.verbatim
    ]


class Index(Endpoint):
    """The description and cost of the index."""

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_index`."""
        return of_index(snapshot)


class Nodes(Endpoint):
    """Children of a node, or roots: from a given number on, or around a given one."""

    of: str | None = None
    start: int = Field(default=0, ge=0)
    around: str | None = None
    n: int = Field(default=200, ge=1, le=1000)

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return n children, from number `start` or the n that contain `around`, and the total."""
        order, start = reading_order(snapshot), self.start
        children = order.icicle.children(None if self.of is None else order.position(self.of))
        if self.around is not None:
            position = order.position(self.around)
            place = int(np.searchsorted(children, position))
            if position not in children[place : place + 1]:
                what = "a root" if self.of is None else f"a child of {self.of!r}"
                raise InputError(f"Node {self.around!r} is not {what}.")
            start = place - place % self.n
        nodes = entries(snapshot, order, children[start : start + self.n].tolist(), BEGINNING)
        for node in nodes:
            node["text"] = displayed(node["text"])
        return {"of": self.of, "nodes": nodes, "start": start, "total": len(children)}


class Node(Endpoint):
    """A node with its text, its path and its passages."""

    id: str

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return a node, the path to it, and the passages that its text is based on.

        `chunks` is the number of chunks under it, and `marks` describe how its text is displayed.
        Only the first 1,000 `documents` and `children` are returned.
        """
        order = reading_order(snapshot)
        position = order.position(self.id)
        (node,) = snapshot.nodes([self.id])
        shown = describe(node)
        path = entries(snapshot, order, order.icicle.path(position))
        return {
            **shown,
            "documents": shown["documents"][:MAX_ENTRIES],
            "children": shown["children"][:MAX_ENTRIES],
            "chunks": int(order.icicle.x1[position] - order.icicle.x0[position]),
            "path": [{key: above[key] for key in SHORT} for above in path],
            "quotes": quotes_json(node.quotes),
            "marks": marks_of(node.text),
        }


class Document(Endpoint):
    """A part of a document, chosen by the character `at` or by its number."""

    document: str
    at: int | None = Field(default=None, ge=0)
    part: int = Field(default=0, ge=0)

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return the paragraphs that begin in the same 20,000 characters.

        `parts` is the number of parts, and `length` the number of characters of the document.
        `place` is the page, section and anchor at `at`. `marks` describe how the text is displayed,
        and `is_file` tells whether its file can be opened.

        Raises
        ------
        NotFoundError
            If the index does not hold the character.
        """
        document, at, part = self.document, self.at, self.part
        stretches = stretches_of(snapshot, document)
        every = [list(stretch.paragraphs()) for stretch in stretches]
        paragraphs = [*chain(*every)]
        place = Span(document, 0, 0)
        if at is not None:
            part = max((start for start, _ in paragraphs if start <= at), default=0) // PART
            around = next((each for each in stretches if each.start <= at <= each.end), None)
            if around is None:
                raise NotFoundError(f"The index does not hold character {at} of {document!r}.")
            place = around.span(at, at)
        shown = [[each for each in of if each[0] // PART == part] for of in every]
        marks = [
            mark._replace(start=mark.start + of[0][0], end=mark.end + of[0][0])
            for of in filter(None, shown)
            for mark in marks_of("".join(text for _, text in of))
        ]
        return {
            "document": document,
            "title": titles_of_documents(snapshot, [document]).get(document, ""),
            "is_file": file_of(snapshot, document) is not None,
            "length": stretches[-1].end,
            "parts": 1 + paragraphs[-1][0] // PART,
            "part": part,
            "place": place.to_json(),
            "paragraphs": [{"start": start, "text": text} for start, text in chain(*shown)],
            "marks": marks,
        }


class Notes(Endpoint):
    """The summaries above a document's text, with their quotes from it."""

    document: str

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return the summaries above the chunks, by position and then from the top down.

        Each has `start` and `end`, the characters of the document that its chunks cover, and
        `quotes`, the sentences of its text with a source in the document.
        """
        order, document = reading_order(snapshot), self.document
        columns = ("id", "title", "level", "documents", "next_id", "text", "record")
        found = snapshot.select(*columns, where=of_documents([document])).to_pylist()
        rows = {order.position(row["id"]): row for row in found if document in row["documents"]}
        chunks = {at: Chunk.of(row) for at, row in sorted(rows.items()) if not row["level"]}
        positions, notes = [*chunks], list[dict[str, Any]]()
        for position, row in rows.items():
            part = order.icicle.part(position)
            inside = positions[bisect(positions, part.start) : bisect(positions, part.stop - 1)]
            places = [(of.start, of.start + len(of.text)) for at in inside if (of := chunks[at])]
            quotes = [
                {"text": displayed(row["text"], quote.at, quote.to), **quote.source.to_json()}
                for quote in quotes_in(row["record"])
                if quote.source and quote.source.document == document
            ]
            places += [(quote["start"], quote["end"]) for quote in quotes]
            if row["level"] and places:
                start, end = min(start for start, _ in places), max(end for _, end in places)
                note = {key: row[key] for key in SHORT}
                notes.append({**note, "start": start, "end": end, "quotes": quotes})
        notes.sort(key=lambda note: (note["start"], -note["level"]))
        return {"notes": notes}


class Overview(Endpoint):
    """The overview of the index: its parts by their shares of the text, with quotes."""

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """See `overview_of_all`."""
        return overview_of_all(snapshot)


class Search(Endpoint):
    """Nodes that match words."""

    q: str
    n: int = Field(default=50, ge=1, le=500)

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return n nodes: those with all words in their title, from the top, then matching chunks.

        Each has three more fields. `of` is the title or id of its document (None if it has
        several). `text` is the sentence that contains most of the words. `source` is the position
        of that sentence (None if unknown). `total` is the number of matching nodes, None if not all
        were examined. `words` are the beginnings of words that were searched. Sentences of
        summaries are found in their chunks.
        """
        words, n = self.q, self.n
        scope = snapshot.scope(columns=("id", "title", "level", "documents", "metadata"))
        rows = matching(scope, words, CANDIDATES * n).to_pylist()
        each, asked = words.lower().split(), QuestionWords.of(words)
        titled = [row for row in rows if all(word in row["title"].lower() for word in each)]
        titled.sort(key=lambda row: -row["level"])
        found = titled + [row for row in rows if not row["level"] and row not in titled]
        nodes = snapshot.nodes([row["id"] for row in found[:n]])

        shown = [
            {
                **{key: row[key] for key in SHORT},
                "of": title_in(row) or row["documents"][0] if len(row["documents"]) == 1 else None,
                **_matching_sentence(node, asked),
            }
            for row, node in zip(found, nodes, strict=False)
        ]
        total = len(found) if len(rows) < CANDIDATES * n else None
        searched = {word for word in words_of(words) if asked.stem(word) in asked.words}
        return {"nodes": shown, "total": total, "words": sorted(searched | asked.words)}


class Map(Endpoint):
    """The map of chunks in the plane."""

    level: int = Field(default=1, ge=0)
    n: int = Field(default=2000, ge=1, le=2000)

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """See `chunk_map`."""
        return chunk_map(snapshot, self.level, self.n)


class Ask(Endpoint):
    """A question; missing options have the defaults of `hierindex query`."""

    q: str
    level: list[str] = Field(default=[])
    where: list[str] = Field(default=[])

    def answer_from(self, index: HierarchicalIndex, snapshot: Snapshot) -> dict[str, Any]:
        """Return the JSON of `hierindex query --json`, with passages prepared for display.

        Paths begin at the root. `is_file` of a passage tells whether its file can be opened. The
        passages of an answer by a language model are its citations.
        """
        settings = load_settings(level=self.level)
        answer = index.ask(
            self.q,
            llm=self.llm,
            synthesizer={"min_score": settings.min_score},
            show=showing.get() if self.llm else None,  # quotes come at once
            filters=known_filters(self.where, snapshot),
            **settings.chosen("mode level by token_budget top_k"),
        ).to_json()
        if answer["answer_kind"] == "llm":
            answer["passages"] = [
                {
                    "text": each.get("quote", ""),
                    "lead": "",
                    "best": "",
                    "title": each.get("title", each.get("document", "")),
                    "citation": each,
                }
                for each in answer["citations"]
            ]
        for source in answer["sources"]:
            source["path"].reverse()
        for passage in answer["passages"]:
            text, best = passage["text"], passage["best"]
            at, marks = max(0, text.find(best)), marks_of(text)
            passage["text"] = displayed(text, marks=marks).strip()
            passage["best"] = displayed(text, at, at + len(best), marks).strip()
            document = passage["citation"].get("document")
            passage["is_file"] = document is not None and file_of(snapshot, document) is not None
        return answer


KINDS = list[type[Endpoint]]([Index, Overview, Nodes, Node, Document, Notes, Search, Map, Ask])
ENDPOINTS = {kind.__name__.lower(): kind for kind in KINDS}
