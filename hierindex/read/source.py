"""Source code: Python's classes and functions are headings, other code is cut at blank lines."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import BinaryIO

from hierindex.node import TITLE, Heading
from hierindex.read.text import MAX_TITLE, Reading, read_text

SUFFIXES = (
    ".bash .c .cc .cjs .cpp .cs .cxx .go .h .hh .hpp .java .jl .js .jsx .kt .lua .mjs .php .pl .pm "
    ".r .rb .rs .scala .sh .swift .ts .tsx"
).split()
PYTHON = (".py", ".pyi", ".pyw")
MAX_PARSED = 1_000_000  # characters of Python; longer files are data
DEEPEST = 3  # level of a heading
BLANK = re.compile(r"\n(?:[^\S\n]*\n)+(?!\Z)")  # lines, as far as the next one


def read_python(file: BinaryIO) -> Reading:
    """Return the text of a file, its classes and functions, and its docstring's first line."""
    text, metadata, _ = read_text(file)
    try:
        if len(text) > MAX_PARSED:
            raise ValueError(len(text))
        with warnings.catch_warnings(action="ignore"):
            module = ast.parse(text)
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        return Reading(text, metadata, _after_blank_lines(text))
    if said := ast.get_docstring(module):
        metadata[TITLE] = said.partition("\n")[0].strip()[:MAX_TITLE]
    return Reading(text, metadata, list(_of_python(module, text)))


def read_source(file: BinaryIO) -> Reading:
    """Return the text of a file, whose sections begin after blank lines."""
    text, metadata, _ = read_text(file)
    return Reading(text, metadata, _after_blank_lines(text))


def _after_blank_lines(text: str) -> list[Heading]:
    return [Heading(1, "", match.end()) for match in BLANK.finditer(text)]


def _of_python(module: ast.Module, text: str) -> Iterator[Heading]:
    """Yield definitions, and other code after them, from the first comment above them."""
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]

    def headings(body: Sequence[ast.stmt], level: int, end: int) -> Iterator[Heading]:
        follows = False  # a definition
        for node in body:
            is_definition = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            if is_definition or (follows and level == 1):
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                comment = lines[first - 1][: node.col_offset] + "#"
                while not lines[end].startswith(comment) and end < first - 1:
                    end += 1
                yield Heading(level, _titled(node), starts[end])
            if isinstance(node, ast.ClassDef) and level < DEEPEST:
                yield from headings(node.body, level + 1, node.lineno)
            follows, end = is_definition, node.end_lineno or node.lineno

    return headings(module.body, 1, 0)


def _titled(node: ast.stmt) -> str:
    match node:
        case ast.ClassDef():
            return f"class {node.name}"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return node.name
    return ""
