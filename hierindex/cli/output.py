"""Printing of results, notes and errors, and handling of Ctrl-C."""

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
"""Keys of a result whose values are file names, or lists of file names."""

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
"""The work that is kept when a command is interrupted, by command."""


def escape_unencodable() -> None:
    """Make standard output escape characters that its encoding lacks, in JSON notation."""

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

    `indent` is the indentation of the JSON object; None prints it on one line.
    """
    if as_json:
        typer.echo(visible(json.dumps(result, ensure_ascii=False, indent=indent), lines=True))
    else:
        typer.echo(wrapped(text(_readable(result))))


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the width of the terminal in columns, or None if the stream is not a terminal."""
    stream = stream or sys.stdout
    is_terminal = stream is not None and stream.isatty()  # None if it was closed
    return get_terminal_size().columns if is_terminal else None


def wrapped(text: str, hang: int | None = None, stream: TextIO | None = None) -> str:
    """Wrap the lines of a text to the width of the terminal, if the stream is one.

    Continuation lines are indented by `hang` columns, by default like the line itself. The stream
    is standard output by default.
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
    """Print a piece of a streamed text at once."""
    typer.echo(visible(text, lines=True), nl=False)


def print_note(sentence: str) -> None:
    """Print a note on one line of standard error, with passwords removed from URLs."""
    line = visible(re.sub(r"[ \t\r\n]+", " ", without_password(sentence)).strip())
    if sys.stderr is not None:  # it is if it was closed from the start
        note = wrapped(f"hierindex: {line}", stream=sys.stderr)
        sys.stderr.write(f"{note}\n")  # `typer.echo` would write across a line of progress


def note_next(sentence: str, *command: str, as_json: bool) -> None:
    """Print a suggestion and its command, unless the output is JSON."""
    if not as_json:
        print_note(f"note: {sentence}: {shlex.join(['hierindex', *command])}")


def note_if_empty(found: Sequence[Any], conditions: Sequence[str] | None) -> None:
    """If nothing was found, print the conditions of `--where` that were applied."""
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
    """A command that prints after Ctrl-C which work is kept."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_note(f"Interrupted; {KEPT.get(str(self.name), 'nothing was changed.')}")
            raise typer.Exit(INTERRUPTED) from None


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
