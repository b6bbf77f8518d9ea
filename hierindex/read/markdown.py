"""Markdown files: their headings, front matter and long tables; Jupyter notebooks as Markdown."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import date
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

from hierindex.node import (
    HEADINGS,
    LEFT_OUT,
    PAGE,
    PAGE_LABEL,
    PAGE_LABELS,
    PAGES,
    SECTION,
    TITLE,
    Heading,
)
from hierindex.read.html import html_lines, html_reading
from hierindex.read.records import as_block, parse_json, read_json, records_of_table
from hierindex.read.text import MAX_TITLE, Reading, read_text, without_embedded
from hierindex.text.blocks import FRONT_MATTER
from hierindex.text_node import RECORD_KEYS

if TYPE_CHECKING:
    from markdown_it.token import Token

RESERVED = {*RECORD_KEYS, HEADINGS, LEFT_OUT, SECTION, PAGE, PAGES, PAGE_LABEL, PAGE_LABELS}
ATTRIBUTES = re.compile(r"\s*\{[#.:-][^{}]*\}\s*$")  # of a heading, such as {#anchor}
PIPE = re.compile(r"(?<!\\)\|")  # between cells
WORDS = {"text", "code_inline"}  # tokens whose content is shown
MAX_OUTPUT = 1000  # characters of each output
OBJECT = re.compile(r"<[\w.]{1,99}[^<>]{,99}? (object|at 0x[\da-f]+)[^<>]{,99}>")  # its name
CODE = (  # between as many backticks as it begins with, in one paragraph
    r"(?<![`\\])(?P<ticks>`+)(?!`)(?:[^\n]|\n(?![ \t]*(?:\n|<!--))){,2000}?"
    r"(?<!`)(?P=ticks)(?!`)"
)
HTML = re.compile(  # code; the starts of comments, tables and elements that are unchanged
    r"^[ \t>]*(?P<fence>`{3,}|~{3,})[^`\n]*\n.*?(?:^[ \t>]*(?P=fence)|\Z)"
    rf"|{CODE}|(?P<comment><!--)|<(?P<tag>pre|script|style|table|textarea)\b",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
COLOURS = re.compile("\x1b\\[[0-9;]*[A-Za-z]")


def read_markdown(file: BinaryIO) -> Reading:
    """Return the text of a file, the entries of its front matter, and its headings.

    The rows of long tables become records with their headers. Comments and embedded pictures are
    left out, and HTML tables become Markdown tables.
    """
    text, metadata, _ = read_text(file)
    text, n_embedded = without_embedded(text)
    entries, end = front_matter(text)
    text, n_comments = _without_html(text, end)
    left_out = {"embedded picture": n_embedded, "comment": n_comments}
    return markdown_reading(text, {**entries, **metadata}, end).leaving_out(left_out)


def _without_html(text: str, start: int) -> tuple[str, int]:
    """Return Markdown with plain tables instead of HTML ones and without comments; their number.

    Code is unchanged.
    """
    if not re.search("-->|</table>", text, re.IGNORECASE):
        return text, 0
    parts, done, at, n_comments = list[str](), 0, start, 0
    unclosed = {""}  # ends that do not follow; searched once each, for linear time
    while found := HTML.search(text, at):
        begin, at, tag = found.start(), found.end(), (found["tag"] or "").lower()
        end = "-->" if found["comment"] else tag and f"</{tag}>"
        if end in unclosed:
            continue
        if not (closed := re.compile(end, re.IGNORECASE).search(text, at)):
            unclosed.add(end)
            continue
        at = closed.end()
        n_comments += not tag
        if tag in ("", "table"):
            parts += text[done:begin], _as_markdown(text[begin:at]) if tag else ""
            done = at
    return "".join([*parts, text[done:]]), n_comments


def _as_markdown(table: str) -> str:
    """Return an HTML table as Markdown or as records."""
    rows = list[str]()
    for line in html_lines(table):
        is_row = " | " in line and not line.startswith("\n")
        rows.append(f"| {line} |" if is_row else line)
        if is_row and not any(row.startswith("|---") for row in rows):
            rows.append("|---" * (1 + line.count(" | ")) + "|")
    return "\n".join(["", *rows, ""])


def markdown_reading(text: str, metadata: dict[str, Any], start: int = 0) -> Reading:
    """Return Markdown with its long tables as records, and its headings after an offset.

    Tables in lists and quotes are unchanged.
    """
    headings, tables = headings_and_tables(text, start)
    parts, done = list[Reading](), 0

    def unchanged(end: int) -> Reading:
        inside = [h._replace(start=h.start - done) for h in headings if done <= h.start < end]
        return Reading(text[done:end], {}, inside)

    for at, end in tables:
        header, _, *rows = map(_cells, text[at:end].rstrip("\n").split("\n"))
        if records := records_of_table([header, *rows], named=any(header)):
            block = f"\n{as_block(records)}\n\n"  # where lines end
            parts += unchanged(at), Reading.block(block)
            done = end
    return Reading.joined([*parts, unchanged(len(text))], between="")._replace(metadata=metadata)


def headings_and_tables(text: str, start: int = 0) -> tuple[list[Heading], list[tuple[int, int]]]:
    r"""Return headings and the bounds of tables after an offset, except those in lists and quotes.

    >>> headings, tables = headings_and_tables("# The *first*\n\n| a |\n|---|\n\nAnother\n---\n")
    >>> [(heading.level, heading.title, heading.start) for heading in headings], tables
    ([(1, 'The first', 0), (2, 'Another', 28)], [(15, 27)])
    """
    from markdown_it import MarkdownIt

    lines = [start, *(match.end() for match in re.compile("\n").finditer(text, start)), len(text)]
    parser, context = MarkdownIt("commonmark"), dict[str, Any]()  # the targets of links
    blocks = MarkdownIt("commonmark").enable("table").disable("inline")
    headings, tables = list[Heading](), list[tuple[int, int]]()
    for opening, inside in pairwise(blocks.parse(text[start:], context)):
        if opening.level or not opening.map:
            continue
        at, end = (lines[i] for i in opening.map)
        if opening.type == "table_open":
            tables.append((at, end))
        elif opening.type == "heading_open":
            source = ATTRIBUTES.sub("", inside.content[: 4 * MAX_TITLE])
            parts = parser.parseInline(source, context)[0].children or ()
            if title := _shown(parts, WORDS) or _shown(parts, {"image"}):  # by its alternative text
                indent = len(text[at : at + 4]) - len(text[at : at + 4].lstrip())
                headings.append(Heading(int(opening.tag[1:]), title, at + indent))
    return headings, tables


def _cells(row: str) -> list[str]:
    r"""Return the cells of a row of a table.

    >>> _cells(r"| a \| b | |c"), _cells(r"a | b |")
    (['a \\| b', '', 'c'], ['a', 'b'])
    """
    *cells, last = map(str.strip, PIPE.split(row.strip().removeprefix("|")))
    return [*cells, last] if last else cells


def front_matter(text: str) -> tuple[dict[str, Any], int]:
    r"""Return the scalars and lists of scalars in a text's front matter, and its end.

    Dates become strings. Keys that hierindex uses itself, such as "page", are omitted.

    >>> front_matter("---\ntitle: The log\ndate: 1901-02-03\n---\nText.")
    ({'title': 'The log', 'date': '1901-02-03'}, 40)
    """
    import tomllib

    import yaml

    match = FRONT_MATTER.match(text)
    if match is None:
        return {}, 0
    try:
        parse = yaml.safe_load if match["fence"] == "---" else tomllib.loads
        entries = parse(match["entries"])
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}, 0
    if not isinstance(entries, dict):
        return {}, 0
    metadata = {}
    for key, value in entries.items():
        values = value if isinstance(value, list) else [value]
        if isinstance(key, str) and key not in RESERVED and all(map(_is_scalar, values)):
            kept = [v.isoformat() if isinstance(v, date) else v for v in values]
            metadata[key] = kept if isinstance(value, list) else kept[0]
    if TITLE in metadata:
        metadata[TITLE] = str(metadata[TITLE])
    return metadata, min(match.end() + 1, len(text))


def _is_scalar(value: Any) -> bool:
    short = not isinstance(value, str) or len(value) <= MAX_TITLE
    return isinstance(value, str | int | float | date) and short


def _shown(parts: "Sequence[Token]", kinds: Collection[str]) -> str:
    """Return the content of parts of these kinds on one line."""
    shown = (part.content if part.type in kinds else " " * ("break" in part.type) for part in parts)
    return " ".join("".join(shown).split())[:MAX_TITLE]


def read_notebook(file: BinaryIO) -> Reading:
    """Return the cells as Markdown; code and the beginnings of its outputs are in fences.

    Outputs in Markdown have no fence. A file that is not a notebook is read as JSON.
    """
    text, metadata, _ = read_text(file)
    left_out = Counter[str]()
    try:
        cells = [*_notebook_cells(parse_json(text), left_out)]
        if not any(map(str.strip, cells)):
            raise ValueError
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        file.seek(0)
        return read_json(file)
    return markdown_reading("\n\n".join(cells), metadata).leaving_out(left_out)


def _notebook_cells(notebook: dict[str, Any], left_out: Counter[str]) -> Iterator[str]:
    about = notebook.get("metadata") or {}
    language = about.get("language_info", {}).get("name", "")
    language = language or about.get("kernelspec", {}).get("language", "")
    cells = notebook.get("cells")
    if cells is None:  # version 3
        cells = [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
    for cell in cells:
        source = _joined(cell.get("source", cell.get("input"))).strip("\n")
        if cell.get("cell_type") == "heading":  # of version 3
            source = f"{'#' * int(cell['level'])} {source}"
        if cell.get("cell_type") != "code":
            yield source
        elif source.strip():
            yield _fenced(source, language)
            for output in cell.get("outputs") or []:
                if said := _said(output.get("data", output), left_out):
                    yield said


def _said(output: dict[str, Any], left_out: Counter[str]) -> str:
    """Return the beginning of an output, preferably as Markdown; nothing for a traceback."""
    if any(kind.startswith("image/") for kind in output):
        left_out["picture"] += 1
        return ""
    if "traceback" in output:
        left_out["traceback"] += 1
        return ""
    if (markdown := _joined(output.get("text/markdown"))).strip():
        return _beginning(markdown, left_out)
    text = COLOURS.sub("", _joined(output.get("text/plain", output.get("text"))))
    html = _joined(output.get("text/html"))
    if html and (not text or OBJECT.fullmatch(text.strip())):
        text = html_reading(html.replace("\r\n", "\n"), {}).text
    elif OBJECT.fullmatch(text.strip()):
        return ""
    text = "\n".join(line.rpartition("\r")[2] for line in text.strip("\n").split("\n"))
    return _fenced(_beginning(text, left_out)) if text else ""


def _beginning(text: str, left_out: Counter[str]) -> str:
    if len(text) <= MAX_OUTPUT:
        return text
    left_out["shortened output"] += 1
    return text[: max(text.rfind("\n", 0, MAX_OUTPUT), 0) or MAX_OUTPUT] + "\n..."


def _joined(lines: Any) -> str:
    """Return a text that may be stored as lines, or be missing."""
    return lines if isinstance(lines, str) else "".join(map(str, lines or []))


def _fenced(code: str, language: str = "") -> str:
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"
