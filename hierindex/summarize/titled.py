"""Answers of a language model that begin with a title."""

import re

from hierindex.core.titles import first_words
from hierindex.summarize.sentences import SURROGATE

MAX_TITLE = 100  # characters
MIN_TEXT = 200  # characters of a line that is text rather than a title

MARKS = "*_#`~\"'“”„‘’«»‹›「」『』《》"  # noqa: RUF001
LABELS = "title|titel|titre|título|titulo|titolo|tytuł|название|заголовок|标题|標題|タイトル|제목"
TITLE = re.compile(
    rf"(?i)[\s{MARKS}]*(?:{LABELS})[ {MARKS}]*[:：]([^\n]*)"  # noqa: RUF001
    r"|\s*#{1,6}[ \t]+([^\n]+)(?=\n\s*\S)"
    r"|\s*\*\*([^*\n]+)\*\*[ \t]*(?=\n\s*\S)"
)
SUMMARY = re.compile(r"(?i)(?:[\s*_#]*summary[ *_]*:[*_]*(?=\s)\s*)+")


def split_title(answer: str) -> tuple[str, str]:
    r"""Return the title on the first line of an answer, empty if it has none, and the rest.

    The line begins with "Title:", in one of some languages, or is a heading or bold in Markdown.
    A title of more than `MAX_TITLE` characters is cut; a line of `MIN_TEXT` or more is text.

    >>> split_title('**Title:** "The ferry"\n\nIt was cancelled.')
    ('The ferry', 'It was cancelled.')
    """
    rest = answer.strip()
    while found := TITLE.match(rest):
        line = next(filter(None, found.groups()), "").strip(f" \t\r.{MARKS}")
        rest = rest[found.end() :].strip()
        rest = rest[m.end() :] if (m := SUMMARY.match(rest)) else rest
        if not any(map(str.isalnum, line)):
            continue
        if len(line) >= MIN_TEXT or (len(line) > MAX_TITLE and not rest):
            return "", f"{line}\n{rest}".strip()
        return first_words(SURROGATE.sub("\ufffd", line), MAX_TITLE), rest
    return "", rest


def with_title(title: str, text: str) -> str:
    """Return an answer that `split_title` splits into this title and text."""
    return f"Title: {title}\n{text}" if title else text


def untitled(answer: str) -> tuple[str, str]:
    """Return an empty title and the whole answer."""
    return "", answer
