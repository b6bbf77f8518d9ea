"""What a command prints: all of it passes here, so that no document acts on a terminal."""

import json
import re
from collections.abc import Callable
from typing import Any

import typer

from hierindex.errors import without_password

WITH_LINES = {"text", "answer"}
"""Keys of a result whose values may have several lines; every other value is one."""
# Control characters, marks of direction, separators of lines, and halves of surrogate pairs.
ACTING = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str, *, lines: bool = False) -> str:
    r"""A text whose characters that would act on a terminal are written as JSON writes them.

    Parameters
    ----------
    text : str
        Of a document, a file's name, a model: of anybody.
    lines : bool
        Whether line breaks and tabs stay. Form feeds, between the pages of a PDF, are then
        line breaks, too.

    Examples
    --------
    >>> print(visible("\x1b[2J is no [bold] name\n"))
    \u001b[2J is no [bold] name\n
    """
    if lines:
        text = text.replace("\r\n", "\n").replace("\f", "\n")
    kept = "\n\t" if lines else ""
    return ACTING.sub(lambda m: m[0] if m[0] in kept else json.dumps(m[0])[1:-1], text)


def print_result(
    result: dict[str, Any], as_json: bool, text: Callable[[dict[str, Any]], str]
) -> None:
    """Print a result as one JSON object, or as the text that is made of it."""
    if as_json:
        typer.echo(visible(json.dumps(result, ensure_ascii=False, indent=2), lines=True))
    else:
        typer.echo(text(_readable(result)))


def print_note(sentence: str) -> None:
    """Print a sentence on standard error, as one line."""
    line = visible(re.sub(r"[ \t\r\n]+", " ", without_password(sentence)).strip())
    typer.echo(f"hierindex: {line}", err=True)


def _readable(value: Any, key: str = "") -> Any:
    """A result with every text in it visible."""
    match value:
        case str():
            return visible(value, lines=key in WITH_LINES)
        case dict():
            return {key: _readable(each, key) for key, each in value.items()}
        case list() | tuple():
            return [_readable(each, key) for each in value]
    return value
