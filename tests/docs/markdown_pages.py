"""The Markdown pages that people read, and what stands in them."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "tests" / "benchmarks").glob("*.md")),
    *sorted(NOTEBOOKS.rglob("*.md")),
]
PARSER = MarkdownIt("commonmark").enable("table")


def name_of(page: Path) -> str:
    """A page's path, for the names of tests."""
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    """A page as Markdown, of a notebook its cells of text."""
    if page.suffix != ".ipynb":
        return page.read_text()
    cells = nbformat.read(page, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@cache
def parsed(page: Path) -> list[Token]:
    """What a page consists of."""
    return PARSER.parse(text_of(page))


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """The blocks of code of a page, each with its language before it.

    Empty lines keep its line numbers.
    """
    fences = (token for token in parsed(page) if token.type == "fence")
    return [
        (token.info, "\n" * (token.map[0] + 1) + token.content)
        for token in fences
        if token.info in languages
    ]


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command line of a block, and what the block shows of its output."""
    for part in re.split(r"(?m)^\$ ", block)[1:]:
        line, _, shown = part.replace("\\\n", "").partition("\n")
        yield line, shown


def command_lines(page: Path) -> Iterator[list[str]]:
    """The words of each command line of a page."""
    for _, block in blocks(page, "console"):
        for line, _ in commands(block):
            yield shlex.split(line, comments=True)


def links(page: Path) -> Iterator[str]:
    """Where the links and pictures of a page lead."""
    for token in inline(page):
        for child in token.children:
            address = child.attrs.get("href") or child.attrs.get("src")
            if address:
                yield str(address)


@cache
def anchors(page: Path) -> set[str]:
    """The anchors that headings get, as GitHub and the site write them."""
    titles = (
        "".join(child.content for child in text.children)
        for heading, text in pairwise(parsed(page))
        if heading.type == "heading_open"
    )
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def inline(page: Path) -> list[Token]:
    """The texts of a page, with the links in them."""
    return [token for token in parsed(page) if token.type == "inline"]
