"""Jupyter notebooks: their cells as Markdown."""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from hierindex.read.markdown import markdown_reading
from hierindex.read.records import parse_json, read_json
from hierindex.read.text import Reading, read_text

MAX_OUTPUT = 1000  # characters of each output
COLOURS = re.compile("\x1b\\[[0-9;]*[A-Za-z]")


def read_notebook(file: BinaryIO) -> Reading:
    """Return the cells as Markdown, with code and the beginnings of textual outputs in fences.

    A file that is no notebook is read as JSON.
    """
    text, metadata, _ = read_text(file)
    try:
        text = "\n\n".join(_cells(parse_json(text)))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        file.seek(0)
        return read_json(file)
    return markdown_reading(text, metadata)


def _cells(notebook: dict[str, Any]) -> Iterator[str]:
    about = notebook["metadata"]
    language = about.get("language_info", {}).get("name", "")
    language = language or about.get("kernelspec", {}).get("language", "")
    for cell in notebook["cells"]:
        source = _joined(cell["source"]).strip("\n")
        if cell["cell_type"] != "code":
            yield source
        elif source.strip():
            yield _fenced(source, language)
            for output in cell["outputs"]:
                if said := _said(output.get("data", output)):
                    yield _fenced(said)


def _said(output: dict[str, Any]) -> str:
    """Return the beginning of a textual output; nothing of pictures and tracebacks."""
    if any(kind.startswith("image/") for kind in output):
        return ""
    text = COLOURS.sub("", _joined(output.get("text/plain", output.get("text", ""))))
    text = "\n".join(line.rpartition("\r")[2] for line in text.strip("\n").split("\n"))
    if len(text) <= MAX_OUTPUT:
        return text
    return text[: max(text.rfind("\n", 0, MAX_OUTPUT), 0) or MAX_OUTPUT] + "\n..."


def _joined(lines: str | list[str]) -> str:
    return "".join(lines)


def _fenced(code: str, language: str = "") -> str:
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}{language}\n{code}\n{fence}"
