"""The plain text of a table of contents."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from shutil import get_terminal_size
from typing import Any

from hierindex.cli.text import counted


def listed(contents: dict[str, Any]) -> str:
    """Format a table of contents, a node on each line, below its parent."""
    width = max(8, contents["id_length"])
    lines = [f"level  {'id'.ljust(width)}  title"]
    for node, branch in _branches(contents["nodes"]):
        start = f"{node['level']:5}  {node['id'][:width]}  {branch}"
        about = f"  ({size})" if (size := ", ".join(_size(node))) else ""
        lines.append(start + _cut(node["title"], len(start + about)) + about)
    if contents["hidden"]:
        hidden = counted(contents["hidden"], "more node")
        lines.append(f"{hidden} below; pass NODE or --depth to see them.")
    return "\n".join(lines)


def _size(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield which documents a node stands for, unless its title tells, and how many chunks."""
    document = node["document"] or ""
    if node["documents"] > 1:
        yield counted(node["documents"], "document")
    elif document and node["title"] not in (document, document.rpartition(".")[0]):
        yield document
    if node["level"]:
        yield counted(node["chunks"], "chunk")


def _branches(
    nodes: Sequence[Mapping[str, Any]], above: str | None = None
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield nodes, each with the lines that connect it to its parent."""
    for node in nodes:
        is_last = node is nodes[-1]
        branch = "" if above is None else above + ("└─ " if is_last else "├─ ")
        yield node, branch
        below = "" if above is None else above + ("   " if is_last else "│  ")
        yield from _branches(node["nodes"], below)


def _cut(title: str, taken: int) -> str:
    """Shorten a title to what is left of a line of the terminal, if there is one."""
    if not sys.stdout.isatty():
        return title
    from rich.cells import cell_len, set_cell_size

    room = max(12, get_terminal_size().columns - taken)
    return title if cell_len(title) <= room else f"{set_cell_size(title, room - 1).rstrip()}…"
