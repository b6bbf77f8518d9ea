"""Plain-text output of the commands, formatted from the dictionaries that `--json` prints."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import typer

from hierindex.cli.output import terminal_width
from hierindex.core.identity import file_of
from hierindex.node import FURNITURE, place_of
from hierindex.text.display import (
    MOST_NAMED,
    answer_text,
    counted,
    displayed,
    grounding_text,
    marks_of,
    notes_of,
    shortened,
    unknown_of,
)

OUTCOMES = "added", "changed", "removed", "renamed", "unchanged"
MOST_FILES = 40  # in a table
SIZES = "level", "nodes", "tokens"
BELOW = f"\n{'':10}"  # of the sources of a node


def built(report: dict[str, Any]) -> str:
    """Format the report of a build, an update or a deletion, or of a dry run of one."""
    is_dry, usage = report["dry_run"], {**report["usage"]}
    number, seconds = report["generation"], f"{report['seconds']['total']:.1f} s"
    if is_dry:
        usage["completion_tokens (maximum)"] = usage.pop("completion_tokens")
    if not report["statistics"]:
        n = counted(report["unchanged"], "document")
        what = "would change" if is_dry else "has changed"
        lines = [f"Nothing {what}: {n}, generation {number}, {seconds}."]
    else:
        changes = _changes(report)
        head = f"Generation {number}: {changes}, {seconds}."
        lines = [f"Dry run, the index is unchanged: {changes}." if is_dry else head]
        lines += _names(report)
        if report["unchanged"]:
            lines.append("Nodes to rebuild:" if is_dry else "Rebuilt nodes:")
        lines.append(_levels(report["statistics"]))
    if is_dry and report["statistics"]:
        tokens = counted(report["embedded_tokens"], "token")
        lines.append(f"{counted(report['embedded_chunks'], 'chunk')} of {tokens} to embed")
    lines += filter(None, [_usage(usage), grounding_text(report["grounding"])])
    return "\n".join([*lines, *_skipped(report["skipped"]), *_not_read(report["files"])])


def built_from_files(report: dict[str, Any]) -> str:
    """Format the report of a build of files, and a table of the files."""
    return f"{built({**report, 'skipped': [], 'files': []})}\n\n{_files_read(report)}"


def updated(report: dict[str, Any]) -> str:
    """Format the report of an update by `watch` on one line, then requests and skipped files."""
    names = "; ".join(_changed(report["names"])) or "Nothing has changed."
    at, seconds = f"{datetime.now():%H:%M:%S}", f"{report['seconds']['total']:.1f} s"
    usage = [_usage(report["usage"])] if report["usage"]["llm_calls"] else []
    line = f"{at}  Generation {report['generation']}, {seconds}. {names}"
    return "\n".join([line, *usage, *_not_read(report["files"]), *_skipped(report["skipped"])])


def _files_read(report: Mapping[str, Any]) -> str:
    """Return a table of the files of a build; if there are many, only what was not read."""
    read, skipped = report["files"], report["skipped"]
    n_partly = sum(bool(_lacking(each)) for each in read)
    n_read, n_files = (
        len({file_of(each["path"]) for each in of}) for of in (read, [*read, *skipped])
    )
    in_part = f", {counted(n_partly, 'document')} in part" if n_partly else ""
    total = f"{n_read:,} of {counted(n_files, 'file')} read{in_part}."
    if len(read) + len(skipped) > MOST_FILES:
        return "\n".join([total, *_not_read(read), *_skipped(skipped)])
    rows = [
        (each["path"], each["kind"], each["pages"], each["words"], "; ".join(each["left_out"]))
        for each in read
    ]
    rows += [(each["path"], "", None, None, each["reason"]) for each in skipped]
    return f"{_table(('file', 'kind', 'pages', 'words', 'not read'), rows)}\n{total}"


def _not_read(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each file that was read in part, up to ten, and one about all menus."""
    partly = [(each["path"], "; ".join(_lacking(each))) for each in files]
    n_menus = sum(len(_lacking(each)) < len(each["left_out"]) for each in files)
    menus = [f"Not read of {counted(n_menus, 'file')}: words {FURNITURE}."] if n_menus else []
    return [*_first([f"Not read of {path}: {said}." for path, said in partly if said]), *menus]


def _lacking(file: Mapping[str, Any]) -> list[str]:
    """Return what was not read of a file, except menus."""
    return [what for what in file["left_out"] if not what.endswith(FURNITURE)]


def _skipped(skipped: Sequence[Mapping[str, str]]) -> list[str]:
    """Return a line for each file that was skipped, up to ten."""
    return _first([f"Skipped {each['path']}: {each['reason']}." for each in skipped])


def _first(lines: list[str]) -> list[str]:
    """Return the first ten lines, each about a file, and the number of the others."""
    n_more = len(lines) - MOST_NAMED
    more = [f"And {counted(n_more, 'more file')} (see --json)."] if n_more > 0 else []
    return lines[:MOST_NAMED] + more


def _changes(counts: Mapping[str, int]) -> str:
    """Format the numbers of documents by outcome.

    >>> _changes({"added": 1, "changed": 0, "removed": 2, "renamed": 0, "unchanged": 0})
    '1 document added, 2 removed'
    """
    first, *others = [what for what in OUTCOMES if counts[what]] or OUTCOMES[:1]
    rest = (f"{counts[what]:,} {what}" for what in others)
    return ", ".join([f"{counted(counts[first], 'document')} {first}", *rest])


def _names(report: dict[str, Any]) -> list[str]:
    """Return the lines of `_changed`, or none for a first build, in which all documents are new."""
    return _changed(report["names"]) if any(report[what] for what in OUTCOMES[1:]) else []


def _changed(names: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return a line for each outcome, with the names of some of its documents."""
    return [
        f"{outcome.capitalize()}: "
        + shortened([n if isinstance(n, str) else " to ".join(n) for n in those])
        for outcome, those in names.items()
        if those
    ]


def answered(answer: dict[str, Any], *, verbose: bool = False, streamed: bool = False) -> str:
    """Format an answer with its citations.

    If `verbose`, what was searched and found is added. A text that was `streamed` is left out.
    """
    after_stream = ["", *filter(None, [unknown_of(answer)]), *notes_of(answer)]
    parts = after_stream if streamed else [answer_text(answer, _bold)]
    if answer.get("cut_off"):
        parts.append("A higher --llm-completion-tokens allows a longer answer.")
    if (
        answer["refused"]
        and not answer["unknown"]
        and (score := round(answer.get("score") or 0, 2))
    ):
        parts.append(f"The best answer has a score of {score:.2f}; a lower --min-score prints it.")
    return "\n\n".join([*parts, *(_details(answer) if verbose else ())])


def _details(answer: dict[str, Any]) -> Iterator[str]:
    """Yield the reason of a search, the nodes found, usage and times."""
    if "why" in answer:
        yield f"Searched {answer['why']}."
    if answer["sources"]:
        head = "Found; `hierindex show ID` prints a node:"
        yield "\n".join([head, *map(_found, answer["sources"])])
    if answer["usage"]["llm_calls"]:
        yield _usage(answer["usage"])
    yield ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in answer["seconds"].items())


def compared(comparison: dict[str, Any]) -> str:
    """Format the cost of each response mode, then the answers."""
    head = ("mode", "calls", "prompt tokens", "completion tokens", "seconds")
    rows, answers = list[Sequence[Any]](), list[str]()
    for each in comparison["modes"]:
        attempt = {**each, "sources": comparison["sources"]}
        mode, usage = attempt["mode"], attempt.get("usage")
        answers.append(f"{mode}\n{attempt['error'] if usage is None else answered(attempt)}")
        if usage is None:
            rows.append((mode, "failed", None, None, None))
            continue
        counts = (usage[key] for key in ("llm_calls", "prompt_tokens", "completion_tokens"))
        rows.append((mode, *counts, attempt["seconds"]))
    lines = [f"All modes used the same {counted(len(comparison['sources']), 'node')}."]
    if "why" in comparison:
        lines.append(f"Searched {comparison['why']}.")
    return "\n\n".join([*lines, _table(head, rows), *answers])


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
    lines += _not_read(info["read_in_part"])
    if info["stale"]:
        nodes = counted(info["stale"], "node")
        lines.append(
            f"{nodes} lost a parent or a child to a deletion; `hierindex update` mends it."
        )
    return "\n".join(lines)


def _levels(levels: Sequence[Mapping[str, Any]]) -> str:
    """Format a table of levels, from the top down."""
    return _table(SIZES, ([level[size] for size in SIZES] for level in reversed(levels)))


def contents(contents: dict[str, Any]) -> str:
    """Format a table of contents, one node per line, children below their parent."""
    lines = ["level  id            title", *_rows(contents["nodes"])]
    if contents["hidden"]:
        hidden = counted(contents["hidden"], "more node")
        lines.append(f"{hidden} below; pass NODE or --depth to see them.")
    return "\n".join(lines)


def _rows(nodes: Sequence[Mapping[str, Any]], indent: str = "") -> Iterator[str]:
    """Yield a line for each node: its title, its document or their number, and its chunks."""
    for node in nodes:
        n_documents, n_chunks = node["documents"], node["chunks"]
        about = counted(n_documents, "document") if n_documents > 1 else node["document"]
        size = counted(n_chunks, "chunk") if node["level"] else ""
        told = ", ".join(filter(None, [about, size]))
        line = f"{node['level']:5}  {node['id'][:12]}  {indent}{node['title']}"
        yield f"{line}  ({told})" if told else line
        yield from _rows(node["nodes"], f"{indent}  ")


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
            f"sources   {BELOW.join(map(_place, node['citations'])) or 'unknown'}",
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
    """Format a cited passage between the marks ⟦ and ⟧ in its context."""
    whole = "".join(passage[part] for part in ("before", "text", "after"))
    start, marks = len(passage["before"]), marks_of(whole)
    end = start + len(passage["text"])
    before, cited = displayed(whole, 0, start, marks), displayed(whole, start, end, marks)
    return ["", _place(passage), "", f"{before}⟦{cited}⟧{displayed(whole, end, marks=marks)}"]


def outlined(outline: dict[str, Any]) -> str:
    """Format the nodes of an outline and their sources, in reading order."""
    nodes = outline["nodes"]
    parts = [f"{_found(node)}\n{displayed(node['text'])}" for node in nodes]
    total = f"{counted(len(nodes), 'node')}, {counted(outline['tokens'], 'token')}"
    return "\n\n".join([*parts, total])


def _found(node: Mapping[str, Any]) -> str:
    """Format the level, the id, the title and the first sources of a node that was found."""
    level, node_id = node["level"], node["id"][:12]
    return f"level {level}  {node_id}  {node['title']}  {_places(node['citations'])}"


def report(written: dict[str, Any]) -> str:
    """Format the size of an HTML report, and what was left out of it."""
    size = f"{written['bytes'] / 1e6:.1f} MB"
    line = f"Wrote {written['path']}: {counted(written['nodes'], 'node')}, {size}."
    return "\n".join(filter(None, [line, written["left_out"]]))


def exported(report: dict[str, Any]) -> str:
    """Format the report of an export."""
    line = f"{counted(report['nodes'], 'node')} as {report['format']}: {report['path']}"
    if "kept" not in report:
        return line
    files = ", ".join(f"{report[did]:,} {did}" for did in ("written", "removed"))
    kept = [f"Kept because it was edited: {path}" for path in report["kept"]]
    return "\n".join([f"{line} (files: {files})", *kept])


def verified(outcome: dict[str, Any]) -> str:
    """Format the result of a verification: a table of checks, problems, and advice."""
    rows = [(check["name"], check["checked"], check["count"]) for check in outcome["checks"]]
    parts = [_table(("check", "checked", "problems"), rows), *_problems(outcome["checks"])]
    if outcome["ok"]:
        parts.append(f"All checks of {counted(outcome['nodes'], 'node')} hold.")
    return "\n\n".join([*parts, *outcome["repaired"], *outcome["left"]])


def _problems(checks: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the problems of each failed check."""
    for check in checks:
        lines = [": ".join(filter(None, (p["where"], p["what"]))) for p in check["problems"]]
        if more := check["count"] - len(lines):
            lines.append(f"and {more:,} more")
        if lines:
            yield "\n".join([f"{check['name']}:", *(f"  {line}" for line in lines)])


def generations(held: dict[str, Any]) -> str:
    """Format generations as a table, the oldest first."""
    head = ("generation", "published", "documents", "levels", "nodes")
    rows = (
        (
            str(each["generation"]),
            f"{datetime.fromisoformat(each['time']).astimezone():%Y-%m-%d %H:%M}",
            *(each[count] for count in head[2:]),
            _written_by(each),
        )
        for each in held["generations"]
    )
    return _table((*head, "written by"), rows)


def _written_by(generation: dict[str, Any]) -> str:
    """Return the kind of a write, and the numbers of its changes."""
    what, changes = str(generation["what"]), generation["changes"]
    if "generation" in changes:
        return f"{what} to generation {changes['generation']}"
    counts = ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in changes.items() if n)
    return f"{what}: {counts}" if counts else what


def _bold(text: str) -> str:
    """Return a text in bold type, if the terminal supports it."""
    if terminal_width() is None or "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb":
        return text
    return typer.style(text, bold=True)


def _usage(usage: dict[str, int]) -> str:
    """Format the numbers of calls and tokens that are not zero.

    >>> _usage({"llm_calls": 1, "prompt_tokens": 1200, "fallbacks": 0})
    'llm calls: 1, prompt tokens: 1,200'
    """
    return ", ".join(f"{what.replace('_', ' ')}: {n:,}" for what, n in usage.items() if n)


def _places(citations: Sequence[dict[str, Any]]) -> str:
    """Format the first two citations, and the number of the others."""
    rest = f" and {len(citations) - 2} more" if len(citations) > 2 else ""
    return ", ".join(map(_place, citations[:2])) + rest


def _place(citation: dict[str, Any]) -> str:
    """Format a citation: its document, anchor, section, page and characters."""
    return f"{place_of(citation)} ({citation['start']}-{citation['end']})"


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format a table; columns of texts are left-aligned, those of numbers right-aligned."""
    columns = []
    for name, *values in zip(head, *rows, strict=True):
        cells = [name, *map(_number, values)]
        width = max(map(len, cells))
        is_text = any(isinstance(value, str) for value in values)
        columns.append([c.ljust(width) if is_text else c.rjust(width) for c in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _number(value: float | str | None) -> str:
    """Format a number; a text is returned unchanged."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
