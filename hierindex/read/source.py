"""Source code: its classes and functions as headings."""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import accumulate
from string import ascii_lowercase
from typing import BinaryIO

from hierindex.headings import Heading
from hierindex.read.text import MAX_TITLE, Reading, read_text
from hierindex.record import TITLE

SUFFIXES = (
    ".bash .c .cc .cjs .cpp .cs .cxx .go .h .hh .hpp .java .jl .js .jsx .kt .lua .mjs .php .pl .pm "
    ".r .rb .rs .scala .sh .swift .ts .tsx"
).split()
"""Of languages whose definitions are recognised by their first lines."""

PYTHON = (".py", ".pyi", ".pyw")
MAX_PARSED = 1_000_000  # characters of Python; longer files are data
MAX_HEAD = 500  # characters of a definition before its body
DEEPEST = 3  # level of a heading

MODIFIERS = (
    r"(?:(?:export|default|declare|public|private|protected|internal|static|final|abstract|sealed"
    r"|annotation|companion|partial|open|data|case|async|unsafe|inline|override|local"
    r"|pub(?:\([\w: ]+\))?)\s+)*"
)
TYPE = re.compile(
    MODIFIERS + r"(?P<kind>actor|class|enum(?:\s+class)?|extension|impl(?=[ <])|interface"
    r"|mod|module|namespace|object|protocol|record|struct|trait|type|union)(?:(?<=impl)|\s)\s*"
    r"(?P<name>[^\s{(:;=*&][^{(:;=*&\n]*+)(?![*&]|[^\n{]*;)(?P<parameters>\(?)"
)
FUNCTION = re.compile(
    MODIFIERS + r"(?:def|fn|fun|func|function|sub)\b\s*\*?\s*(?:\([^()\n]*\)\s*)?"
    r"(?P<name>[A-Za-z_$][\w$.:]*[?!]?)"
)
ASSIGNED = re.compile(
    MODIFIERS + r"(?:(?:const|let|var)\s+)?(?P<name>[A-Za-z_$][\w$.]*)\s*(?:=|<-)\s*"
    r"(?:async\s*)?(?:function\b|\([^()\n]*\)\s*=>|\w+\s*=>)"
)
CALLED = re.compile(  # a name, parameters and a body, as in C, Java and JavaScript
    r"(?:[\w$*&:<>,~\[\]]+\s+)*?[*&]*(?P<name>[A-Za-z_~$][\w$:~]*)\s*\([^;{}\"'=]*\)[^;(){}\"'=]*\{"
)
NO_NAMES = {
    *"catch do else elseif elsif for foreach if return switch when while with".split(),
}
NO_START = {  # within a definition
    *"case default done elif else elsif end ensure esac except fi finally rescue".split(),
}
REMARK = re.compile(r"\s*(//|/\*|=[a-z]|\*|#|--|@|\[|template\b|p\w+:$)")  # or an attribute
REMARK_ENDS = {"/*": "*/", **{f"={letter}": "=cut" for letter in ascii_lowercase}}


def read_python(file: BinaryIO) -> Reading:
    """Return the text of a file, its classes and functions, and its docstring's first line."""
    text, metadata, _ = read_text(file)
    try:
        if len(text) > MAX_PARSED:
            raise ValueError(len(text))
        with warnings.catch_warnings(action="ignore"):
            module = ast.parse(text)
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        return Reading(text, metadata, list(source_headings(text)))
    if said := ast.get_docstring(module):
        metadata[TITLE] = said.partition("\n")[0].strip()[:MAX_TITLE]
    return Reading(text, metadata, list(_of_python(module, text)))


def read_source(file: BinaryIO) -> Reading:
    """Return the text of a file, and its classes and functions as headings."""
    text, metadata, _ = read_text(file)
    return Reading(text, metadata, list(source_headings(text)))


def source_headings(text: str) -> Iterator[Heading]:
    r"""Yield the definitions that follow a blank line or a remark.

    Their levels are by indentation. They begin with the remarks above them. Other code after them
    that is not indented has a heading without a title.

    >>> code = "class Store {\n  query(text) {\n  }\n}\n\n// All.\nfunction load() {\n}\n"
    >>> [(heading.level, heading.title, heading.start) for heading in source_headings(code)]
    [(1, 'class Store', 0), (2, 'query', 14), (1, 'load', 37)]
    """
    around: list[tuple[int, bool]] = []  # indentation of each open definition, whether a type
    start, at = -1, 0  # of the remarks above; -1 for none
    may_begin, until = True, ""  # the end of an open remark
    for line in text.split("\n"):
        code = line.strip()
        if until:
            until = "" if until in code else until
        elif not code:
            may_begin, start = True, -1
        elif remark := REMARK.match(line):
            may_begin, start = True, at if start < 0 else start
            end = REMARK_ENDS.get(remark[1], code)
            until = "" if end in code else end
        elif may_begin:
            may_begin, begin = False, at if start < 0 else start
            indent = len(line) - len(line.lstrip())
            title, is_type = _definition(text, at + indent)
            outer = [each for each in around if each[0] < indent]
            if title and len(outer) < DEEPEST and all(is_type for _, is_type in outer):
                yield Heading(1 + len(outer), title, begin)
                around, may_begin = [*outer, (indent, is_type)], is_type
            elif around and not indent and code[0].isalpha() and _word(code) not in NO_START:
                yield Heading(1, "", begin)
                around = []
            start = -1
        at += len(line) + 1


def _definition(text: str, at: int) -> tuple[str, bool]:
    """Return the title of a definition that begins at an offset, and whether it is of a type."""
    head = text[at : at + MAX_HEAD]
    if (match := TYPE.match(head)) is not None:
        kind, words = match["kind"], match["name"].split(" where ")[0].split()
        if len(words) > 1 and words[0].isupper():  # a macro of C++, or parameters of Rust
            words = words[1:]
        if kind == "impl":
            return " ".join([kind, *words]), True
        if len(words) == 1 or not match["parameters"]:  # no function that returns the type
            return f"{kind} {words[0].partition('<')[0]}", True
    for definition in (FUNCTION, ASSIGNED, CALLED):
        match = definition.match(head)
        if match is not None and not {match["name"], _word(head)} & NO_NAMES:
            return match["name"], False
    return "", False


def _word(code: str) -> str:
    return re.split(r"\W", code, maxsplit=1)[0]


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
