"""Printing of results and errors, and what Ctrl-C leaves."""

import codecs
import json
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from shutil import get_terminal_size
from textwrap import fill
from typing import Any, TextIO

import typer
from typer.core import TyperCommand

from hierindex.errors import without_password
from hierindex.read.files import quoted
from hierindex.unsafe import visible

WITH_LINES = {"text", "answer", "before", "after", "lead", "best"}
"""Keys of a result whose values keep their line breaks."""
OF_NAMES = {"path", "document", "added", "changed", "removed", "renamed", "moved"}
"""Keys of a result whose values are names of files, or lists of them."""

STYLE = re.compile(r"\x1b\[[\d;]*m")  # bold type

INTERRUPTED = 130  # exit status after Ctrl-C
WHOLE = "nothing unfinished was published"
KEPT = {
    "build": f"{WHOLE}, and the next build reuses what was read, embedded and written.",
    "update": f"{WHOLE}, and the next update reuses what was read, embedded and written.",
    "delete": f"{WHOLE}; `hierindex tree` shows which documents the index holds.",
    "rollback": f"{WHOLE}; `hierindex generations` lists them.",
    "verify": f"{WHOLE}; the next `hierindex verify` checks all of it again.",
    "evaluate": "finished indices are reused if --index is given.",
    "demo": f"{WHOLE}, and the next demo reuses what was read and embedded.",
    "export": "no unfinished file is left.",
    "report": "no unfinished file is left.",
}
"""What is left of the work of a command that changes something."""


def escape_unencodable() -> None:
    """Have standard output escape, in JSON notation too, what its encoding does not contain."""

    def escape(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        return json.dumps(error.object[error.start : error.end])[1:-1], error.end

    codecs.register_error("json", escape)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="json")


def print_result(
    result: dict[str, Any],
    as_json: bool,
    text: Callable[[dict[str, Any]], str],
    *,
    indent: int | None = 2,
) -> None:
    """Print a result as one JSON object, or as `text` formats it.

    `indent` is that of the JSON object, which is one line if it is None.
    """
    if as_json:
        typer.echo(visible(json.dumps(result, ensure_ascii=False, indent=indent), lines=True))
    else:
        typer.echo(wrapped(text(_readable(result))))


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the columns of the terminal that standard output, or a stream, is; None if none."""
    stream = stream or sys.stdout
    is_terminal = stream is not None and stream.isatty()  # None if it was closed
    return get_terminal_size().columns if is_terminal else None


def wrapped(text: str, hang: int | None = None, stream: TextIO | None = None) -> str:
    """Wrap the lines of a text to the width of the terminal that a stream is, if it is one.

    Further lines are indented by `hang` columns, by default as the line is. The stream is standard
    output by default.
    """
    width = terminal_width(stream)
    if width is None:
        return text
    return "\n".join(
        line if len(STYLE.sub("", line)) <= width else _filled(line, width, hang)
        for line in text.split("\n")
    )


def _filled(line: str, width: int, hang: int | None) -> str:
    margin = " " * (len(line) - len(line.lstrip()) if hang is None else hang)
    return fill(
        line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
    )


def print_piece(text: str) -> None:
    """Print a piece of a text as soon as it is known."""
    typer.echo(visible(text, lines=True), nl=False)


def print_note(sentence: str) -> None:
    """Print a sentence on one line of standard error, without passwords of URLs."""
    line = visible(re.sub(r"[ \t\r\n]+", " ", without_password(sentence)).strip())
    if sys.stderr is not None:  # it is if it was closed from the start
        note = wrapped(f"hierindex: {line}", stream=sys.stderr)
        sys.stderr.write(f"{note}\n")  # `typer.echo` would write across a line of progress


def note_next(sentence: str, *command: str, as_json: bool) -> None:
    """Print what to do next and the command for it, unless a program reads the result."""
    if not as_json:
        print_note(f"note: {sentence}: {shlex.join(['hierindex', *command])}")


def note_if_empty(found: Sequence[Any], conditions: Sequence[str] | None) -> None:
    """Print the conditions of `--where` if nothing was found under them."""
    if conditions and not found:
        flags = " ".join(f"--where {condition!r}" for condition in conditions)
        print_note(f"note: Nothing was found with {flags}; leave out a condition.")


def _readable(value: Any, key: str = "") -> Any:
    """Escape every string in a result."""
    match value:
        case str():
            if key in OF_NAMES:
                return quoted(value)
            return visible(value, lines=key in WITH_LINES)
        case dict():
            return {key: _readable(each, key) for key, each in value.items()}
        case list() | tuple():
            return [_readable(each, key) for each in value]
    return value


class Command(TyperCommand):
    """A command that says after Ctrl-C what is kept."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_note(f"Interrupted; {KEPT.get(str(self.name), 'nothing was changed.')}")
            raise typer.Exit(INTERRUPTED) from None


@contextmanager
def until_stopped(sentence: str) -> Iterator[None]:
    """End the block with Ctrl-C and SIGTERM, and print a sentence then."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        print_note(sentence)
    finally:
        signal.signal(signal.SIGTERM, before)
