"""The part of a report that is read like a paper: overview, answers, outline and sources."""

from bisect import bisect
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any
from urllib.parse import urlencode

from hierindex import __version__
from hierindex.node import place_of
from hierindex.text.display import BETWEEN, facts_of, inert, overview_html, parts_of, percent

Json = Mapping[str, Any]


def paper(title: str, about: Json, overview: Json, answers: Mapping[str, Json]) -> str:
    """Return the readable part of a report as HTML without styles.

    It has the overview, the answers to the questions, an outline of two levels, and numbered
    passages that the text links to.
    """
    notes = Notes()
    written = f"generation {about['generation']}, written by hierindex {__version__}"
    parts = [
        f"<h1>{inert(title)}</h1><p>{inert(facts_of(overview, about['time']))} · {written}</p>",
        '<p><button type="button" id="explore">Explore the tree</button></p>',
        f"<h2>In its own words</h2>{overview_html(overview, notes.of)}",
        *(_answer(question, answer, notes) for question, answer in answers.items()),
        f"<h2>Outline</h2>{_outline(*overview['columns'][:2])}",
        notes.html(),
    ]
    return f'<article id="paper" headingoffset="0">{"".join(parts)}</article>'


class Notes:
    """The footnotes of a report: its passages, by number."""

    def __init__(self) -> None:
        self._links = dict[str, str]()  # by place

    def of(self, passage: Json) -> str:
        """Return the number of a passage, as a link to it; empty if its position is unknown."""
        if "document" not in passage:
            return ""
        title = passage.get("title") or passage["document"]
        of = "" if title == passage["document"] else f"{passage['document']}, "
        at = f"{of}characters {passage['start']:,} to {passage['end']:,}"
        link = urlencode({key: passage[key] for key in ("document", "start", "end")})
        said = f"{place_of(passage, title)}; {at}"
        self._links.setdefault(said, f"#{link}")
        n = [*self._links].index(said) + 1
        return f'<sup><a href="{inert(self._links[said])}">{n}</a></sup>'

    def html(self) -> str:
        """Return the numbered list of passages."""
        links = self._links.items()
        items = [f'<li><a href="{inert(link)}">{inert(said)}</a></li>' for said, link in links]
        return f"<h2>Sources</h2><ol>{''.join(items)}</ol>" if items else ""


def _answer(question: str, answer: Json, notes: Notes) -> str:
    """Return the paragraphs of an answer, with links to its passages in place of their numbers."""
    paragraphs, passages = list[str](), answer["passages"]
    places = [{**each["citation"], "title": each["title"]} for each in passages]
    for text in (text for part in parts_of(answer) for text in part.text.split(BETWEEN)):
        label = f" [{len(passages) - len(places) + 1}]"
        note = notes.of(places.pop(0)) if places and text.endswith(label) else ""
        lines = (text.removesuffix(label) if note else text).splitlines()
        paragraphs.append(f"<p>{inert(chr(10).join(map(str.rstrip, lines)))}{note}</p>")
    return f"<h2>{inert(question)}</h2>{''.join(paragraphs)}"


def _outline(first: Sequence[Json], second: Sequence[Json] = ()) -> str:
    """Return blocks as a list, each with the blocks of the next column inside it."""
    ends = [*accumulate(block["share"] for block in first)]
    inside = defaultdict[int, list[Json]](list)
    for block, end in zip(second, accumulate(each["share"] for each in second), strict=True):
        at = min(bisect(ends, end - block["share"] / 2), len(first) - 1)
        if block["id"] != first[at]["id"]:
            inside[at].append(block)
    return _list([(block, inside[at]) for at, block in enumerate(first)])


def _list(blocks: Sequence[tuple[Json, Sequence[Json]]]) -> str:
    items = [
        f"<li>{inert(block['title'])} ({percent(block['share'])})"
        f"{_list([(each, ()) for each in below]) if below else ''}</li>"
        for block, below in blocks
    ]
    return f"<ul>{''.join(items)}</ul>"
