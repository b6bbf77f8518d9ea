"""Invisible characters, and characters that change how their neighbours are displayed."""

import json
import re
from typing import Any

# Control characters, bidirectional marks, line separators, lone surrogates, no characters, and
# what hides text from people but not from language models: tags, and variation selectors and
# marks without width but those that are common in texts.
UNSAFE = re.compile(
    "[\0-\x1f\x7f-\x9f\u061c\u180e\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff"
    "\ufe00-\ufe0d\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]"
)


WITH_LINES = {"text", "answer", "before", "after", "lead", "best"}
"""Keys whose values are texts with line breaks."""


def visible(text: str, *, lines: bool = False) -> str:
    r"""Escape characters that are invisible or change how others are displayed, as JSON does.

    Parameters
    ----------
    text : str
    lines : bool
        Whether to keep line breaks and tabs, and to convert form feeds (the page breaks of a
        PDF) to line breaks.

    Examples
    --------
    >>> print(visible("\x1b[2J name\n"))
    \u001b[2J name\n
    """
    if lines:
        text = text.replace("\r\n", "\n").replace("\f", "\n")
    kept = "\n\t" if lines else ""
    return UNSAFE.sub(lambda m: m[0] if m[0] in kept else json.dumps(m[0])[1:-1], text)


def readable(value: Any, key: str = "") -> Any:
    """Escape every string in a JSON value by `visible`; texts keep their line breaks."""
    match value:
        case str():
            return visible(value, lines=key in WITH_LINES)
        case dict():
            return {key: readable(each, key) for key, each in value.items()}
        case list() | tuple():
            return [readable(each, key) for each in value]
    return value


def beginning(text: str, most: int) -> str:
    r"""Return the beginning of a text on one line, without invisible or control characters.

    >>> beginning("one two\nthree", 9)
    'one two…'
    """
    words = UNSAFE.sub(" ", text[: 4 * most]).split()
    text = " ".join(words) + "…" * (len(text) > 4 * most)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
