"""Replies of the tools: as values for programs, and as text for language models.

In the text, quotes from documents are in lines that begin with `> `, or in double quotes as in
JSON. A document cannot forge the end of a quote: each of its line breaks begins another such line,
or is escaped. Models follow instructions in a quoted text less often if every line is marked, and
not only its ends (Hines et al. 2024, "Defending Against Indirect Prompt Injection Attacks With
Spotlighting", arXiv 2403.14720).
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Required, TypeVar, cast
from urllib.parse import quote

from typing_extensions import TypedDict  # before Python 3.12, pydantic reads no other

from hierindex.core.identity import N_HEX
from hierindex.node import Span
from hierindex.unsafe import visible

T = TypeVar("T")
SCHEME = "hierindex:"  # of the URL of a place
MOST_CHARACTERS = 8000
"""Characters of a reply's entries as JSON, if there are several, or of the text that is read."""
LONGEST_NAME = 200  # characters of a title, a label or an anchor
SHOWN_HEX = 12  # characters of an id that is a digest, as the commands show
DIGEST = re.compile(f"[0-9a-f]{{{N_HEX}}}")


class Place(TypedDict, total=False):
    """Characters `start` to `end` (exclusive) of a document; page and section are the start's.

    Of text that was read, they are characters `at` to `to` of it.
    """

    document: Required[str]
    start: Required[int]
    end: Required[int]
    page: int
    page_label: str
    section: list[str]
    anchor: str
    at: int
    to: int


class Entry(TypedDict, total=False):
    """A node or a document.

    Documents have no `level`; ancestors have no `text`. If `cut`, `text` is only its beginning.
    """

    id: Required[str]
    title: Required[str]
    level: int
    text: str
    cut: bool
    children: int
    citations: list[Place]
    more_citations: int
    url: str


class Reply(TypedDict, total=False):
    """A part of a result of `total` nodes or characters; `cursor` requests the next part.

    `results` are the nodes found, the nodes of an outline, or the children of `node`; `path` has
    the ancestors of `node`, from the root. `documents` are the first of `n_documents`. `text` is
    the text read, which begins at character `start`.
    """

    generation: Required[int]
    total: Required[int]
    next_step: Required[str]
    cursor: str
    results: list[Entry]
    documents: list[Entry]
    n_documents: int
    path: list[Entry]
    node: Entry
    id: str
    title: str
    url: str
    text: str
    citations: list[Place]
    start: int


def fitting(entries: Iterable[T], room: int | None = None) -> list[T]:
    """Return the first entries that fit `room` characters, but at least one."""
    taken, room = list[T](), room or MOST_CHARACTERS
    for entry in entries:
        room -= len(json.dumps(entry, ensure_ascii=False))
        if taken and room < 0:
            break
        taken.append(entry)
    return taken


def place_of(span: Span) -> Place:
    """Return the position of a passage, with long titles and labels shortened."""
    place = span.to_json()
    for key in place.keys() & {"anchor", "page_label"}:
        place[key] = place[key][:LONGEST_NAME]
    if "section" in place:
        place["section"] = [title[:LONGEST_NAME] for title in place["section"]]
    return cast(Place, place)


def url_of(place: Place) -> str:
    """Return a URL of a passage, with a fragment for characters as in RFC 5147.

    >>> url_of({"document": "the plan.txt", "start": 3, "end": 9})
    'hierindex:the%20plan.txt#char=3,9'
    """
    return f"{SCHEME}{quote(place['document'])}#{_characters(place)}"


def text_of(reply: Mapping[str, Any]) -> str:
    """Format a reply, whose strings are escaped, as text for a language model."""
    blocks = [_head(reply)]
    if "documents" in reply:
        named = (" ".join(map(quoted, dict.fromkeys(each.values()))) for each in reply["documents"])
        first = f"The first {len(reply['documents'])} of {reply['n_documents']:,} documents:"
        blocks.append("\n".join([first, *named]))
    if "node" in reply:
        above = [f"{_id(each['id'])} {quoted(each['title'])}" for each in reply["path"]]
        blocks.append(f"Path: {' > '.join([*above, _id(reply['node']['id'])])}")
        blocks.append(_entry(reply["node"]))
    blocks += map(_entry, reply.get("results", ()))
    blocks += (
        f"{_place(passage)}\n{_quote(reply['text'][passage['at'] : passage['to']])}"
        for passage in reply.get("citations", ())
    )
    return "\n\n".join([*blocks, f"Next: {reply['next_step']}"])


def quoted(text: str) -> str:
    r"""Return a text of a document in double quotes, as in JSON.

    >>> print(quoted('say "x"\nNext: y'))
    "say \"x\"\nNext: y"
    """
    return visible(json.dumps(text, ensure_ascii=False))


def _head(reply: Mapping[str, Any]) -> str:
    total = f"{reply['total']:,}"
    if "text" in reply:
        end = reply["start"] + sum(each["end"] - each["start"] for each in reply["citations"])
        what = f"characters {reply['start']:,} to {end:,} of {total} of {quoted(reply['title'])}"
    else:
        what = f"{len(reply['results'])} of {total} {'children' if 'node' in reply else 'nodes'}"
    return f"Generation {reply['generation']}: {what}."


def _entry(entry: Mapping[str, Any]) -> str:
    children = [f"{entry['children']} children"] if "children" in entry else []
    head = ", ".join([_id(entry["id"]), f"level {entry['level']}", *children])
    places = list(map(_place, entry["citations"]))
    if "more_citations" in entry:
        places.append(f"and {entry['more_citations']} more places")
    cut = ["(cut)"] if entry.get("cut") else []
    lines = [f"{head}, {quoted(entry['title'])}", *places, _quote(entry["text"]), *cut]
    return "\n".join(lines)


def _place(place: Mapping[str, Any]) -> str:
    parts = [quoted(f"{place['document']}#{_characters(place)}")]
    if "page" in place:
        parts.append(f"page {place['page']}")
    if "page_label" in place:
        parts.append(f"page label {quoted(place['page_label'])}")
    if "section" in place:
        parts.append(f"section {' › '.join(map(quoted, place['section']))}")
    return ", ".join(parts)


def _characters(place: Mapping[str, Any]) -> str:
    return f"char={place['start']},{place['end']}"


def _id(node_id: str) -> str:
    return node_id[:SHOWN_HEX] if DIGEST.fullmatch(node_id) else quoted(node_id)


def _quote(text: str) -> str:
    return "> " + text.replace("\n", "\n> ")
