"""Export of a tree as one HTML file: to read like a paper, and to explore offline."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from hierindex import __version__
from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError
from hierindex.export.files import new, snapshot_of
from hierindex.index import HierarchicalIndex
from hierindex.node import place_of
from hierindex.respond.overview import overview_of_all
from hierindex.retrieve.named import titles_of_documents
from hierindex.retrieve.tree import ReadingOrder, entries, reading_order
from hierindex.serve.explorer import PAGE
from hierindex.serve.explorer.endpoints import of_index, quotes_json
from hierindex.settings import REPORT_MB
from hierindex.store.generations import on_newest
from hierindex.store.rows import quotes_in
from hierindex.store.snapshot import Snapshot
from hierindex.text.display import (
    BETWEEN,
    facts_of,
    inert,
    marks_of,
    overview_html,
    parts_of,
)

MAX_BYTES = round(REPORT_MB * 1e6)
LEAST = 120  # bytes of a node's title and numbers
BATCH = 500  # rows in memory
COLUMNS = ("id", "kind", "text", "record")

STYLE = re.compile(r'<link rel="stylesheet" href="assets/([^"]+)">')
SCRIPT = re.compile(r'<script type="module" src="assets/([^"]+)"></script>')
IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([^"]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function|class|const) (\w+)", re.MULTILINE)
BODY = '<body data-pane="overview" data-left="overview" data-right="index">\n'
CHARSET = '<meta charset="utf-8">'

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """Result of an export: counts of nodes and bytes, and a sentence that says what was omitted."""

    nodes: int
    bytes: int
    left_out: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dict."""
        return asdict(self)


def to_html(
    index: HierarchicalIndex,
    path: str | Path,
    *,
    ask: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
) -> Report:
    """Write the tree as one HTML file, to read, print, and explore offline.

    The file begins with an overview of the index, followed by the answers to `ask`, each with its
    sources, and an outline.

    Parameters
    ----------
    index : HierarchicalIndex
    path : str or Path
        File to create.
    ask : sequence of str
        Questions to answer in the report.
    max_bytes : int
        Maximum size of the file, 5,000,000 by default. If it would be larger, texts of the lowest
        levels are left out. If the titles alone are too large, the lowest levels are left out.

    Returns
    -------
    Report
        Counts of nodes and bytes, and a sentence that says what was omitted.

    Raises
    ------
    IndexNotFoundError, InputError
        If the index is missing or empty, the highest level does not fit, or the file exists or
        cannot be written.
    """
    require(is_whole(max_bytes, 1), "max_bytes", "an integer of at least 1", max_bytes)
    with new(path) as partial:
        text, n_nodes, left_out = _report(index, ask, max_bytes)
        data = text.encode()
        partial.write_bytes(data)
    return Report(n_nodes, len(data), left_out)


@on_newest
def _report(
    index: HierarchicalIndex, ask: Sequence[str], max_bytes: int
) -> tuple[str, int, str | None]:
    """Return the file, the number of its nodes, and the omitted parts."""
    snapshot = snapshot_of(index)
    order = reading_order(snapshot)
    about, overview = of_index(snapshot), overview_of_all(snapshot)
    titles = titles_of_documents(snapshot)
    held = index.at(snapshot)
    answers = {question: held.ask(question).to_json() for question in ask}
    front = _paper(about, overview, answers, held.tree()["nodes"])
    n = len(order.icicle.row)
    data: dict[str, Any] = {
        "index": about,
        "titles": titles if _size(titles) <= max_bytes // 10 else {},  # else ids are shown
        "overview": overview,
        "left_out": _left_out(max_bytes, nodes=(0, n), texts=(0, n)),
    }
    room = max_bytes - len(inlined(json_in_html({**data, "nodes": []}), front).encode())
    nodes = _listed(snapshot, order, room)
    if not nodes:
        raise InputError(
            f"max_bytes={max_bytes:,} is too small for the page and its highest level."
        )
    n_texts = _add_texts(snapshot, order, nodes, room - _size([*nodes.values()]))
    counts = {"nodes": (len(nodes), n), "texts": (n_texts, len(nodes))}
    left_out = _left_out(max_bytes, **counts)
    data |= {"left_out": left_out, "nodes": [node for _, node in sorted(nodes.items())]}
    return inlined(json_in_html(data), front), len(nodes), left_out


def _left_out(max_bytes: int, **counts: tuple[int, int]) -> str | None:
    """Return a sentence on what there is no room for, given the numbers that fit and of all."""
    parts = [
        f"{what} of the lowest levels ({of - n:,} of {of:,})"
        for what, (n, of) in counts.items()
        if n < of
    ]
    size = f"{max_bytes / 1e6:g} MB"
    return f"Left out, to stay below {size}: {' and '.join(parts)}." if parts else None


def _listed(snapshot: Snapshot, order: ReadingOrder, room: int) -> dict[int, dict[str, Any]]:
    """Return nodes by position, without texts, of as many levels from the top as fit."""
    icicle, listed = order.icicle, dict[int, dict[str, Any]]()
    for level in np.unique(icicle.level)[::-1].tolist():
        positions = np.flatnonzero(icicle.level == level).tolist()
        if len(positions) * LEAST > room:
            break
        nodes = entries(snapshot, order, positions)
        for position, node in zip(positions, nodes, strict=True):
            above = listed.get(int(icicle.parent[position]))
            node |= {"parent": above and above["id"], "text": "", "quotes": [], "marks": []}
        room -= _size(nodes)
        if room < 0:
            break
        listed |= zip(positions, nodes, strict=True)
    return listed


def _add_texts(
    snapshot: Snapshot, order: ReadingOrder, nodes: dict[int, dict[str, Any]], room: int
) -> int:
    """Add the texts of nodes, the highest level first, while they fit; return their number."""
    positions, n_texts = sorted(nodes, key=lambda at: (-nodes[at]["level"], at)), 0
    for start in range(0, len(positions), BATCH):
        some = positions[start : start + BATCH]
        rows = snapshot.rows(order.ids_at(some), columns=COLUMNS)
        for position, row in zip(some, rows, strict=True):
            node = {
                **nodes[position],
                "text": row["text"],
                "quotes": quotes_json(quotes_in(row["record"])),
                "marks": marks_of(row["text"]),
                "kind": row["kind"],
                "grounding": json.loads(row["record"] or "{}").get("grounding"),
            }
            room -= _size(node) - _size(nodes[position])
            if room < 0:
                return n_texts
            nodes[position] = node
            n_texts += 1
    return n_texts


def _size(value: Any) -> int:
    """Return the number of bytes of a value in the file."""
    return len(json_in_html(value).encode())


def _paper(
    about: Json, overview: Json, answers: Mapping[str, Json], outline: Sequence[Json]
) -> str:
    """Return the readable part of a report as HTML without styles.

    It has the overview, the answers to the questions, the table of contents, and numbered passages
    that the text links to.
    """
    notes = _Notes()
    written = f"generation {about['generation']}, written by hierindex {__version__}"
    facts = inert(facts_of(overview, about["time"]))
    parts = [
        f"<h1>{inert(about['name'])}</h1><p>{facts} · {written}</p>",
        '<p><button type="button" id="explore">Explore the tree</button></p>',
        f"<h2>In its own words</h2>{overview_html(overview, notes.of)}",
        *(_answer(question, answer, notes) for question, answer in answers.items()),
        f"<h2>Outline</h2>{_outline(outline)}",
        notes.html(),
    ]
    return f'<article id="paper" headingoffset="0">{"".join(parts)}</article>'


class _Notes:
    """The footnotes of a report: its passages, by number."""

    def __init__(self) -> None:
        self._notes = dict[str, tuple[int, str]]()  # number and link of a place

    def of(self, passage: Json) -> str:
        """Return the number of a passage, as a link to it; empty if its position is unknown."""
        if "document" not in passage:
            return ""
        title = passage.get("title") or passage["document"]
        of = "" if title == passage["document"] else f"{passage['document']}, "
        at = f"{of}characters {passage['start']:,} to {passage['end']:,}"
        link = "#" + urlencode({key: passage[key] for key in ("document", "start", "end")})
        said = f"{place_of(passage, title)}; {at}"
        n, link = self._notes.setdefault(said, (len(self._notes) + 1, link))
        return f'<sup><a href="{inert(link)}">{n}</a></sup>'

    def html(self) -> str:
        """Return the numbered list of passages."""
        notes = self._notes.items()
        items = [f'<li><a href="{inert(link)}">{inert(said)}</a></li>' for said, (_, link) in notes]
        return f"<h2>Sources</h2><ol>{''.join(items)}</ol>" if items else ""


def _answer(question: str, answer: Json, notes: _Notes) -> str:
    """Return the paragraphs of an answer, with links to its passages in place of their numbers."""
    paragraphs, passages = list[str](), answer["passages"]
    places = [{**each["citation"], "title": each["title"]} for each in passages]
    for text in (text for part in parts_of(answer) for text in part.text.split(BETWEEN)):
        label = f" [{len(passages) - len(places) + 1}]"
        note = notes.of(places.pop(0)) if places and text.endswith(label) else ""
        lines = (text.removesuffix(label) if note else text).splitlines()
        paragraphs.append(f"<p>{inert(chr(10).join(map(str.rstrip, lines)))}{note}</p>")
    return f"<h2>{inert(question)}</h2>{''.join(paragraphs)}"


def _outline(nodes: Sequence[Json]) -> str:
    """Return a table of contents as lists."""
    items = [f"<li>{inert(node['title'])}{_outline(node['nodes'])}</li>" for node in nodes]
    return f"<ul>{''.join(items)}</ul>" if items else ""


def json_in_html(value: Any) -> str:
    r"""Return JSON for a script element: it contains no `<`.

    >>> json_in_html("</script>")
    '"\\u003c/script>"'
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def inlined(data: str, front: str = "") -> str:
    """Return the page as one file, with `data` from `json_in_html` in a script element.

    `front` is HTML shown before the page.

    A content security policy allows only the page's own script and styles, by their digests.
    """
    page = _text("index.html")
    styles = {name: _text(name) for name in STYLE.findall(page)}
    (script,) = SCRIPT.findall(page)
    code = modules(script)
    policy = (
        f"default-src 'none'; script-src {_digest(code)}; "
        f"style-src {' '.join(map(_digest, styles.values()))}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    meta = f'{CHARSET}\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
    block = f'<script type="application/json" id="data">{data}</script>'
    page = page.replace(CHARSET, meta).replace(BODY, BODY + front)
    page = STYLE.sub(lambda found: f"<style>{styles[found[1]]}</style>", page)
    return SCRIPT.sub(lambda _: f'{block}\n<script type="module">{code}</script>', page)


def modules(main: str) -> str:
    """Bundle a JavaScript module with its imports; each becomes a function of its exports."""
    parts = dict[str, str]()

    def add(name: str) -> None:
        if name in parts:
            return
        text = _text(name)
        for _, imported in IMPORT.findall(text):
            add(imported)
        exported = ", ".join(EXPORT.findall(text))
        text = IMPORT.sub(r'const {\1} = modules["\2"];\n', text)
        text = EXPORT.sub(lambda found: found[0].removeprefix("export "), text)
        parts[name] = f'modules["{name}"] = (() => {{\n{text}\nreturn {{ {exported} }};\n}})();\n'

    add(main)
    return "const modules = {};\n" + "".join(parts.values())


def _text(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """Return the digest of a text for a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
