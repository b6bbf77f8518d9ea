"""The plain text of a table of contents."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from hierindex.cli.numbers import counted
from hierindex.cli.output import terminal_width

TITLE = 16  # columns that a title has at least
DRAWN = "├─ ", "└─ ", "│  ", "   "
PLAIN = ("  ",) * 4  # where standard output is no terminal


def listed(contents: dict[str, Any]) -> str:
    """Format a table of contents, a node on each line, below its parent.

    Titles are shortened to the width of a terminal, ids of documents are whole, to be copied.
    """
    width = max(8, contents["id_length"])
    lines = [f"level  {'id'.ljust(width)}  title"]
    for node, branch in _branches(contents["nodes"]):
        start = f"{node['level']:5}  {node['id'][:width]}  {branch}"
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
    """Return the title of a node, or the id of its document if the title is only a file's name."""
    title, document = str(node["title"]), str(node["document"] or "")
    path = PurePath(document)
    return document if title in (path.name, path.stem) else title


def _size(node: Mapping[str, Any], title: str) -> Iterator[str]:
    """Yield which documents a node stands for, unless its title tells, and how many chunks."""
    if node["documents"] > 1:
        yield counted(node["documents"], "document")
    elif node["document"] and node["document"] != title:
        yield node["document"]
    if node["level"]:
        yield counted(node["chunks"], "chunk")


def _branches(
    nodes: Sequence[Mapping[str, Any]], above: str | None = None
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield nodes, each with what is before its title, which shows its parent."""
    other, last, bar, end = PLAIN if terminal_width() is None else DRAWN
    for node in nodes:
        is_last = node is nodes[-1]
        branch = "" if above is None else above + (last if is_last else other)
        yield node, branch
        below = "" if above is None else above + (end if is_last else bar)
        yield from _branches(node["nodes"], below)


def _cut(text: str, taken: int) -> str:
    """Shorten a text to what is left of a line of the terminal, if there is one."""
    if (width := terminal_width()) is None:
        return text
    from rich.cells import cell_len, set_cell_size

    room = max(TITLE, width - taken)
    return text if cell_len(text) <= room else f"{set_cell_size(text, room - 1).rstrip()}…"
