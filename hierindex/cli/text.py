"""Plain-text output of the commands, formatted from the dictionaries that `--json` prints."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import typer

from hierindex.cli.output import terminal_width, wrapped
from hierindex.core.identity import file_of
from hierindex.node import place_of
from hierindex.text.display import counted, grounding_text
from hierindex.text.markup import displayed, marks_of

CITED = "⟦", "⟧"  # marks around a cited passage
MAX_LISTED = 10  # files that are skipped for one reason
OUTCOMES = "added", "changed", "removed", "renamed", "unchanged"
MOST_NAMED = 10
ID_WIDTH = 12  # characters; enough to tell the ids of a million nodes apart
MOST_FILES = 40  # in a table
USAGE = {
    "llm_calls": "call",
    "prompt_tokens": "prompt token",
    "completion_tokens": "completion token",
    "cached_summaries": "cached summary",
    "fallbacks": "fallback",
}
TITLE = 16  # columns that a title of a table of contents has at least
DRAWN = "├─ ", "└─ ", "│  ", "   "
PLAIN = ("  ",) * 4  # where standard output is no terminal
SIZES = {"level": "level", "nodes": "nodes", "tokens": "tokens"}


def built(report: dict[str, Any]) -> str:
    """Format the report of a build, an update or a deletion."""
    generation, seconds = report["generation"], f"{report['seconds']['total']:.1f} s"
    levels = report["statistics"]
    lines = [f"Generation {generation}: {_changes(report)}, {seconds}.", *_names(report)]
    if levels:
        lines += ["Nodes that were grouped:"] * bool(report["unchanged"])
        lines.append(_levels(levels))
    else:
        n = counted(report["unchanged"], "document")
        what = "No document" if report["moved"] else "Nothing"
        lines = [f"{what} has changed: {n}, generation {generation}, {seconds}."]
    lines += moved(report)
    if any(report["usage"].values()):
        lines.append(usage_of(report["usage"]))
    lines += filter(None, [grounding_text(report["grounding"])])
    return "\n".join([*lines, *skipped_files(report["skipped"])])


def files_read(report: Mapping[str, Any]) -> str:
    """Return a table of the files of a build; if there are many, only of those read in part."""
    read, skipped = report["files"], report["skipped"]
    partly = [each for each in read if each["left_out"]]
    n_read, n_files = (
        len({file_of(each["path"]) for each in of}) for of in (read, [*read, *skipped])
    )
    in_part = f", {counted(len(partly), 'document')} in part" if partly else ""
    total = f"{n_read:,} of {counted(n_files, 'file')} read{in_part}"
    if len(read) + len(skipped) <= MOST_FILES:
        rest = [{"path": each["path"], "left_out": [each["reason"]]} for each in skipped]
        return f"{_files([*read, *rest])}\n{total}."
    n_more = len(partly) - MOST_FILES
    more = [f"{counted(n_more, 'more document')} (see --json)."] if n_more > 0 else []
    listed = [f"{total}:", _files(partly[:MOST_FILES])] if partly else [f"{total}."]
    return "\n".join([*listed, *more, *skipped_files(skipped)])


def _files(files: Sequence[Mapping[str, Any]]) -> str:
    """Format how much of the files was read, and which parts were not."""
    head = "path", "kind", "pages", "words"
    rows = table(("file", *head[1:]), ([each.get(key) for key in head] for each in files))
    left_out = ["; ".join(each["left_out"]) for each in files]
    return with_last_column(rows, "not read", left_out) if any(left_out) else rows


def not_read(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each file that was read in part, up to ten."""
    partly = [each for each in files if each["left_out"]]
    lines = [f"Not read of {each['path']}: {'; '.join(each['left_out'])}." for each in partly]
    n_more = len(lines) - MOST_NAMED
    more = [f"Not read of {counted(n_more, 'more file')} (see --json)."] if n_more > 0 else []
    return lines[:MOST_NAMED] + more


def moved(report: Mapping[str, Any]) -> list[str]:
    """Return a line for each source that was found at a new path."""
    return [f"The source {old} has moved to {new}." for old, new in report["moved"]]


def skipped_files(skipped: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield a line for each file that was skipped, or one line if many have the same reason."""
    paths: dict[str, list[str]] = {}
    for each in skipped:
        paths.setdefault(each["reason"], []).append(each["path"])
    for reason, of in paths.items():
        if len(of) > MAX_LISTED:
            first = ", ".join(of[:3])
            yield f"Skipped {len(of):,} files, each of which {reason}: {first}, ... (see --json)."
        else:
            yield from (f"Skipped {path}: {reason}." for path in of)


def _changes(counts: Mapping[str, int]) -> str:
    """Format the numbers of documents by outcome.

    >>> _changes({"added": 1, "changed": 0, "removed": 2, "renamed": 0, "unchanged": 0})
    '1 document added, 2 removed'
    """
    first, *others = [what for what in OUTCOMES if counts[what]] or OUTCOMES[:1]
    rest = (f"{counts[what]:,} {what}" for what in others)
    return ", ".join([f"{counted(counts[first], 'document')} {first}", *rest])


def _names(report: dict[str, Any]) -> list[str]:
    """Return the lines of `changed`, or none for a first build, in which all documents are new."""
    return changed(report["names"]) if any(report[what] for what in OUTCOMES[1:]) else []


def changed(names: Mapping[str, Sequence[Any]], of: str = "") -> list[str]:
    """Return a line for each outcome, with the names of some of its documents."""
    return [
        f"{outcome.capitalize()}{of}: "
        + some([n if isinstance(n, str) else " to ".join(n) for n in those])
        for outcome, those in names.items()
        if those
    ]


def some(names: Sequence[str]) -> str:
    """Return the first ten names, and the number of the others."""
    rest = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + rest


def estimated(estimate: dict[str, Any]) -> str:
    """Format the estimated cost of a build, an update or a deletion."""
    skipped = skipped_files(estimate["skipped"])
    lines = [f"{_changes(estimate)}.", *_names(estimate), *moved(estimate), *skipped]
    changes = "\n".join(lines)
    if not estimate["statistics"]:
        return f"Nothing would change: {changes}"
    changes = f"Dry run, the index is unchanged: {changes}"
    usage = estimate["usage"]
    levels = [{n: level[key] for key, n in SIZES.items()} for level in estimate["statistics"]]
    rows = [
        ("chunks to embed", estimate["embedded_chunks"]),
        ("tokens of these", estimate["embedded_tokens"]),
        ("calls", usage["llm_calls"]),
        ("prompt tokens", usage["prompt_tokens"]),
        ("completion tokens (maximum)", usage["completion_tokens"]),
        ("cached summaries", usage["cached_summaries"]),
    ]
    shown = [(name, number(n)) for name, n in rows]
    if (price := estimate["price"]) is not None:
        shown.append(("price (maximum)", price_of(price)))
    costs = table(("", "estimate"), shown)
    caption = "Nodes that would be grouped:\n" if estimate["unchanged"] else ""
    return f"{changes}\n\n{caption}{_levels(levels)}\n\n{costs}"


def timed(report: dict[str, Any]) -> str:
    """Format the report of a build with the seconds of each stage and level."""
    spent = {(t["stage"], t["level"]): t["seconds"] for t in report["timings"]}
    levels = [level["level"] for level in report["statistics"]]
    rows = [
        (stage, seconds, *(spent.get((stage, level)) for level in (None, *levels)))
        for stage, seconds in report["seconds"].items()
    ]
    head = "seconds", "all", "once", *map(str, levels)
    return f"{built(report)}\n\n{table(head, rows)}"


def described(info: dict[str, Any]) -> str:
    """Format the description of an index."""
    named = zip(info["roots"][:5], info["titles"], strict=False)
    roots = ", ".join(f"{node_id[:12]} ({title})" for node_id, title in named)
    precision = f" in {info['precision']}" if info["precision"] else ""
    lines = [
        f"{counted(info['documents'], 'document')}, method {info['method']}, "
        f"summaries {info['summarizer']}, generation {info['generation']}",
        f"embedding model {info['embed_model']}{precision}",
        "",
        _levels(info["levels"]),
        "",
        f"roots {roots}" + (" ..." if len(info["roots"]) > 5 else ""),
    ]
    lines += not_read(info["read_in_part"])
    if info["stale"]:
        lines.append(f"{counted(info['stale'], 'node')} lost a parent or a child to a deletion.")
    return "\n".join(lines)


def _levels(levels: Sequence[Mapping[str, int | float | str | None]]) -> str:
    """Format a table of levels, from the top down, with a column for each key."""
    return table(levels[0], (level.values() for level in reversed(levels)))


def contents(contents: dict[str, Any]) -> str:
    """Format a table of contents, one node per line, children below their parent.

    Titles are shortened to the width of the terminal. Document ids are printed in full, so that
    they can be copied.
    """
    lines = [f"level  {'id'.ljust(ID_WIDTH)}  title"]
    for node, branch in _branches(contents["nodes"]):
        start = f"{node['level']:5}  {node['id'][:ID_WIDTH]}  {branch}"
        title = _title(node)
        about = f"  ({size})" if (size := ", ".join(_size(node, title))) else ""
        if title != node["document"]:
            title = _cut(title, len(start + about))
        lines.append(start + title + about)
    if contents["hidden"]:
        hidden = counted(contents["hidden"], "more node")
        lines.append(f"{hidden} below; pass NODE or --depth to see them.")
    return "\n".join(lines)


def _title(node: Mapping[str, Any]) -> str:
    """Return a node's title, or its document's id if the title is only a file name."""
    title, document = str(node["title"]), str(node["document"] or "")
    path = PurePath(document)
    return document if title in (path.name, path.stem) else title


def _size(node: Mapping[str, Any], title: str) -> Iterator[str]:
    """Yield the documents of a node, unless its title names them, and the number of its chunks."""
    if node["documents"] > 1:
        yield counted(node["documents"], "document")
    elif node["document"] and node["document"] != title:
        yield node["document"]
    if node["level"]:
        yield counted(node["chunks"], "chunk")


def _branches(
    nodes: Sequence[Mapping[str, Any]], above: str | None = None
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield nodes, each with the lines to draw before its title to show its parent."""
    other, last, bar, end = PLAIN if terminal_width() is None else DRAWN
    for node in nodes:
        is_last = node is nodes[-1]
        branch = "" if above is None else above + (last if is_last else other)
        yield node, branch
        below = "" if above is None else above + (end if is_last else bar)
        yield from _branches(node["nodes"], below)


def _cut(text: str, taken: int) -> str:
    """Shorten a text to the rest of a line of the terminal, if there is a terminal."""
    if (width := terminal_width()) is None:
        return text
    from rich.cells import cell_len, set_cell_size

    room = max(TITLE, width - taken)
    return text if cell_len(text) <= room else f"{set_cell_size(text, room - 1).rstrip()}…"


def node_shown(node: dict[str, Any]) -> str:
    """Format a node with its parents, children and sources."""
    parents = (
        ", ".join(f"{p['id'][:12]} ({p['weight']:.2f})" for p in node["parents"]) or "none (root)"
    )
    children = ", ".join(child[:12] for child in node["children"]) or "none (chunk)"
    kinds = Counter(block["kind"] for block in node["blocks"])
    blocks = ", ".join(counted(n, kind) for kind, n in kinds.items())
    passages = [line for passage in node.get("passages", ()) for line in _passage(passage)]
    return "\n".join(
        [
            f"{node['id']}, level {node['level']}, {node['kind']}, {node['n_tokens']} tokens",
            f"title     {node['title']}",
            f"parents   {parents}",
            f"children  {children}",
            f"sources   {', '.join(map(place, node['citations'])) or 'unknown'}",
            f"blocks    {blocks}",
            *filter(None, [grounding_text(node["grounding"])]),
            "",
            _with_marks(node),
            *passages,
        ]
    )


def _with_marks(node: dict[str, Any]) -> str:
    """Return a node's text, with marks after sentences that a model rewrote without support."""
    text, end, marks = node["text"], 0, marks_of(node["text"])
    parts = []
    for sentence in node["sentences"]:
        mark = {"verbatim": " [quoted]", "unsupported": " [?]"}.get(sentence["is"], "")
        parts += [displayed(text, end, sentence["to"], marks), mark]
        end = sentence["to"]
    return "".join([*parts, displayed(text, end, marks=marks)])


def _passage(passage: dict[str, Any]) -> list[str]:
    """Format a cited passage between marks in its context, in colour on a terminal."""
    at, to = CITED
    whole = "".join(passage[part] for part in ("before", "text", "after"))
    start, marks = len(passage["before"]), marks_of(whole)
    end = start + len(passage["text"])
    before, cited = displayed(whole, 0, start, marks), displayed(whole, start, end, marks)
    text = wrapped(f"{before}{at}{cited}{to}{displayed(whole, end, marks=marks)}")
    lines = re.escape(at) + "(.*)" + re.escape(to)
    text = re.sub(lines, lambda found: bold(found[0]), text, flags=re.DOTALL)
    return ["", place(passage), "", text]


def outlined(outline: dict[str, Any]) -> str:
    """Format the nodes of an outline and their sources, in reading order."""
    nodes = outline["nodes"]
    parts = [
        f"level {node['level']}  {node['id'][:12]}  {node['title']}  "
        f"{places(node['citations'])}\n{displayed(node['text'])}"
        for node in nodes
    ]
    total = f"{counted(len(nodes), 'node')}, {counted(outline['tokens'], 'token')}"
    return "\n\n".join([*parts, total])


def exported(report: dict[str, Any]) -> str:
    """Format the report of an export."""
    line = f"{counted(report['nodes'], 'node')} as {report['format']}: {report['path']}"
    if "kept" not in report:
        return line
    files = ", ".join(f"{report[did]:,} {did}" for did in ("written", "removed"))
    kept = [f"Kept because it was edited: {path}" for path in report["kept"]]
    return "\n".join([f"{line} (files: {files})", *kept])


def bold(text: str) -> str:
    """Return a text in bold type, if the terminal supports it."""
    if terminal_width() is None or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return text
    return "\n".join(typer.style(line, bold=True) for line in text.split("\n"))


def usage_of(usage: dict[str, int]) -> str:
    """Format the numbers of calls and tokens that are not zero.

    >>> usage_of({"llm_calls": 1, "prompt_tokens": 1200, "fallbacks": 0})
    '1 call, 1,200 prompt tokens'
    """
    return ", ".join(counted(n, USAGE[what]) for what, n in usage.items() if n)


def places(citations: Sequence[dict[str, Any]]) -> str:
    """Format the first two citations, and the number of the others."""
    rest = f" and {len(citations) - 2} more" if len(citations) > 2 else ""
    return ", ".join(map(place, citations[:2])) + rest


def place(citation: dict[str, Any]) -> str:
    """Format a citation: its document, anchor, section, page and characters."""
    return f"{place_of(citation)} ({citation['start']}-{citation['end']})"


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Format a table whose first column is left-aligned and whose others are right-aligned."""
    cells = [[*head], *([number(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join([first.ljust(widths[0]), *map(str.rjust, others, widths[1:])])
        for first, *others in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def with_last_column(rows: str, head: str, texts: Iterable[str]) -> str:
    """Add a last column of texts to the rows of a table, wrapped to the terminal."""
    lines = rows.split("\n")
    margin = max(map(len, lines)) + 2
    return "\n".join(
        wrapped(f"{line.ljust(margin)}{text}", margin)
        for line, text in zip(lines, (head, *texts), strict=True)
    )


def number(value: float | str | None) -> str:
    """Format a number; a text is returned unchanged."""
    match value:
        case None:
            return ""
        case str():
            return value
        case int():
            return f"{value:,}"
    return f"{round(value, 2) + 0.0:.2f}"  # no -0.00


def price_of(price: float) -> str:
    """Format a price; below 1 with four decimals, as a small build costs little."""
    return f"{price:,.2f}" if price >= 1 else f"{price:.4f}"
