"""Printing of results, notes and errors, and handling of Ctrl-C."""

import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from textwrap import fill
from typing import Any, TextIO

import typer

from hierindex.errors import without_password
from hierindex.unsafe import readable, visible

STYLE = re.compile(r"\x1b\[[\d;]*m")  # bold type


def print_result(
    result: dict[str, Any],
    as_json: bool,
    text: Callable[[dict[str, Any]], str],
    *,
    indent: int | None = 2,
) -> None:
    """Print a result as one JSON object, or as `text` formats it.

    `indent` is the indentation of the JSON object; None prints it on one line.
    """
    if as_json:
        is_unicode = "utf" in (getattr(sys.stdout, "encoding", "") or "").lower()
        told = json.dumps(result, ensure_ascii=not is_unicode, indent=indent)
        typer.echo(visible(told, lines=True))
    else:
        typer.echo(wrapped(text(readable(result))))


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the width of the terminal in columns, or None if the stream is not a terminal."""
    stream = stream or sys.stdout
    is_terminal = stream is not None and stream.isatty()  # None if it was closed
    return get_terminal_size().columns if is_terminal else None


def wrapped(text: str, stream: TextIO | None = None) -> str:
    """Wrap the lines of a text to the width of the terminal, if the stream is one.

    Continuation lines are indented like the line itself. The stream is standard output by default.
    """
    width = terminal_width(stream)
    if width is None:
        return text
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if len(STYLE.sub("", line)) > width:
            margin = " " * (len(line) - len(line.lstrip()))
            lines[i] = fill(
                line,
                width,
                subsequent_indent=margin,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return "\n".join(lines)


def print_piece(text: str) -> None:
    """Print a piece of a streamed text at once."""
    typer.echo(visible(text, lines=True), nl=False)


def print_note(sentence: str) -> None:
    """Print a note on one line of standard error, with passwords removed from URLs."""
    line = visible(re.sub(r"[ \t\r\n]+", " ", without_password(sentence)).strip())
    if sys.stderr is not None:  # it is if it was closed from the start
        note = wrapped(f"hierindex: {line}", stream=sys.stderr)
        sys.stderr.write(f"{note}\n")  # `typer.echo` would write across a line of progress


@contextmanager
def until_stopped(sentence: str) -> Iterator[None]:
    """Run the block until Ctrl-C or SIGTERM, then print a sentence."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        print_note(sentence)
    finally:
        signal.signal(signal.SIGTERM, before)
