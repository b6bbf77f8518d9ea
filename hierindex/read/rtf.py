"""Rich Text Format: paragraphs, headings, tables and notes; files that only their content names."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, BinaryIO

from hierindex.node import LEFT_OUT, TITLE, Heading
from hierindex.read.records import as_block, records_of_table
from hierindex.read.text import (
    HEAD,
    MAX_TITLE,
    Reading,
    UnreadableError,
    counted,
    decode,
    read_bytes,
    read_text,
)

TOKEN = re.compile(
    r"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,10})? ?|\\'(?P<byte>[0-9a-fA-F]{2})"
    r"|\\(?P<sign>[^a-zA-Z])|(?P<brace>[{}])|[\r\n]+|(?P<text>[^\\{}\r\n]+|\\)"
)
CONTROL_WORD = re.compile(rb"\\[a-zA-Z]+-?\d*")
SIGNS = {"~": "\xa0", "_": "-", "-": "", "{": "{", "}": "}", "\\": "\\"}
WORDS = {
    "bullet": "•",
    "emdash": "—",
    "emspace": " ",
    "endash": "–",  # noqa: RUF001
    "enspace": " ",
    "ldblquote": "“",
    "line": "\n",
    "lquote": "‘",  # noqa: RUF001
    "nestcell": " ",
    "rdblquote": "”",
    "rquote": "’",  # noqa: RUF001
    "tab": "\t",
}
SUPERSCRIPTS = str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")
NOT_TEXT = {  # groups that are skipped, beside those marked as such
    *("colortbl", "filetbl", "info", "listtable", "revtbl", "rxe", "shprslt", "sp"),
    *("stylesheet", "tc", "xe", "nonesttables", "fldinst", "themedata"),
}
COUNTED = {
    "annotation": "comment",
    "object": "object",
    "pict": "picture",
    **dict.fromkeys(("header", "headerf", "headerl", "headerr"), "page header"),
    **dict.fromkeys(("footer", "footerf", "footerl", "footerr"), "page footer"),
}
HIDDEN = "struck or hidden passage"
CODE_PAGES = {  # of the fonts
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    134: "gb18030",
    136: "big5hkscs",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
}


def read_unnamed(file: BinaryIO) -> Reading:
    """Return the text of a file whose suffix does not say what it is.

    Raises
    ------
    UnreadableError
        If it is markup that is no text.
    """
    begin = file.read(HEAD).lstrip()
    file.seek(0)
    if begin.startswith(b"{\\rtf"):
        return read_rtf(file)
    if begin.startswith(b"%!PS"):
        raise UnreadableError("is PostScript, which is not read; convert it to PDF")
    if sum(map(len, CONTROL_WORD.findall(begin))) > len(begin) / 2:
        raise UnreadableError("is markup of an unknown format")
    return read_text(file)


def read_rtf(file: BinaryIO) -> Reading:
    """Return the text of Rich Text Format, with notes in brackets and a line for a table's row."""
    data = read_bytes(file)
    if not data[:HEAD].lstrip().startswith(b"{\\rtf"):
        return decode(data)
    found = _RtfText(data.decode("latin-1"))
    blocks, headings, start = list[str](), list[Heading](), 0
    for text, level in _blocks(found.lines):
        if level:
            headings.append(Heading(level, " ".join(text.split())[:MAX_TITLE], start))
        blocks.append(text)
        start += len(text) + 2
    about = {key: " ".join(_united(said).split()) for key, said in found.about.items()}
    metadata: dict[str, Any] = {key: said[:MAX_TITLE] for key, said in about.items() if said}
    if found.left_out:
        metadata[LEFT_OUT] = [counted(n, what) for what, n in found.left_out.items()]
    return Reading("\n\n".join(blocks), metadata, headings)


def _united(text: str) -> str:
    """Return a text with pairs of surrogates as characters."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _blocks(lines: list[tuple[list[str], int]]) -> Iterator[tuple[str, int]]:
    """Yield paragraphs with their levels, and tables."""
    for is_table, group in groupby(lines, lambda line: line[1] < 0):
        if not is_table:
            yield from (("".join(cells), level) for cells, level in group)
            continue
        rows = [cells for cells, _ in group]
        if records := records_of_table(rows):
            yield as_block(records), 0
        else:
            yield "\n".join(" | ".join(row) for row in rows), 0


@dataclass(frozen=True)
class _State:
    """What holds within a group."""

    encoding: str
    skipped: bool = False
    group: str = ""  # the destination, if it is not the document
    n_fallback: int = 1  # characters that stand for one of Unicode
    hidden: bool = False
    raised: bool = False
    in_table: bool = False
    level: int = 0  # of a heading


class _RtfText:
    """The lines of a file: the text and level of each paragraph; rows have the level -1."""

    def __init__(self, rtf: str) -> None:
        self.lines: list[tuple[list[str], int]] = []
        self.about = {TITLE: "", "author": ""}
        self.left_out: dict[str, int] = {}
        self._default = "cp1252"
        self._state = _State(self._default)
        self._outer: list[_State] = []
        self._line: list[str] = []
        self._cells: list[str] = []
        self._bytes = bytearray()
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._starts = self._optional = False  # after a brace, and after \*
        self._note = 0  # where a note begins in the line
        self._n_skipped = 0  # characters still to be skipped
        at = 0
        while (match := TOKEN.match(rtf, at)) is not None:
            at = match.end()
            if match["word"] == "bin":
                at += max(0, int(match["number"] or 0))
            self._take(match)
        self._flush()
        self._end_line()
        self._end_row()

    def _take(self, match: re.Match[str]) -> None:
        word, byte, sign, brace, text = match.group("word", "byte", "sign", "brace", "text")
        if byte is not None or text is not None:
            data = bytes.fromhex(byte) if byte else text.encode("latin-1")
            self._bytes += data[self._n_skipped :]
            self._n_skipped = max(0, self._n_skipped - len(data))
            self._starts = False
            return
        if not match[0].isspace():
            self._flush()
        if brace == "{":
            self._outer.append(self._state)
            self._starts, self._optional, self._n_skipped = True, False, 0
        elif brace == "}":
            self._n_skipped = 0
            if self._state.group == "note" and self._outer and self._outer[-1].group != "note":
                note = "".join(self._line[self._note :]).strip()
                self._line[self._note :] = [f" [{note}]"] if note else []
            self._state = self._outer.pop() if self._outer else self._state
        elif sign == "*":
            self._optional = True
        elif sign is not None and sign in "\r\n":
            self._end_line()
        elif sign is not None:
            self._say(SIGNS.get(sign, ""))
        elif word is not None:
            number = int(match["number"]) if match["number"] else None
            if not self._begins(word):
                self._obey(word, number)
            self._starts = self._optional = False

    def _begins(self, word: str) -> bool:
        """Return whether a word begins a group that is not the running text."""
        if not (self._starts or self._optional):
            return False
        if word in COUNTED:
            self._leave_out(COUNTED[word])
            self._change(skipped=True)
        elif word == "footnote":
            self._note = len(self._line)
            self._change(group="note")
        elif word == "fonttbl":
            self._change(group="fonts", skipped=True)
        elif word in self.about and self._state.skipped:
            self._change(group=word)
        elif word in NOT_TEXT or (self._optional and word not in ("shpinst", "shptxt")):
            self._change(skipped=True)
        else:
            return False
        return True

    def _obey(self, word: str, number: int | None) -> None:
        if word in WORDS:
            self._say(WORDS[word])
        elif word == "u" and number is not None:
            self._say(chr(number % 0x10000))
            self._n_skipped = self._state.n_fallback
        elif word in ("par", "sect", "page"):
            self._end_line()
        elif word == "cell":
            self._cells.append(" ".join(_united("".join(self._line)).split()))
            self._line.clear()
        elif word == "row":
            self._end_row()
        elif word == "pard":
            self._change(in_table=False, level=0)
        elif word == "intbl":
            self._change(in_table=True)
        elif word == "outlinelevel" and number is not None:
            self._change(level=number + 1 if 0 <= number < 9 else 0)
        elif word == "plain":
            self._change(hidden=False, raised=False)
        elif word in ("v", "deleted", "strike"):
            self._change(hidden=number != 0)
        elif word in ("super", "nosupersub"):
            self._change(raised=word == "super" and number != 0)
        elif word == "uc" and number is not None:
            self._change(n_fallback=max(0, number))
        elif word == "ansicpg" and number is not None:
            self._default = _known(f"cp{number}")
            self._change(encoding=self._default)
        elif word == "f" and number is not None:
            self._font = number
            self._change(encoding=self._fonts.get(number, self._default))
        elif word == "fcharset" and number in CODE_PAGES:
            self._fonts[self._font] = CODE_PAGES[number]

    def _change(self, **values: Any) -> None:
        self._state = replace(self._state, **values)

    def _flush(self) -> None:
        if self._bytes:
            self._say(self._bytes.decode(self._state.encoding, "replace"))
            self._bytes.clear()

    def _say(self, text: str) -> None:
        state = self._state
        if state.group in self.about:
            self.about[state.group] += text
        elif state.hidden:
            self._leave_out(HIDDEN)
        elif not state.skipped:
            self._line.append(text.translate(SUPERSCRIPTS) if state.raised else text)

    def _leave_out(self, what: str) -> None:
        if not self._state.skipped:
            self.left_out[what] = self.left_out.get(what, 0) + 1

    def _end_line(self) -> None:
        if self._state.skipped:
            return
        if self._state.in_table or self._state.group == "note":
            self._line.append(" ")
            return
        self._end_row()
        if text := _united("".join(self._line)).strip():
            self.lines.append(([text], self._state.level))
        self._line.clear()

    def _end_row(self) -> None:
        if any(self._cells):
            self.lines.append(([*self._cells], -1))
        self._cells.clear()


def _known(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return "cp1252"
