"""Rich Text Format: paragraphs, headings, tables and notes."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

from hierindex.node import TITLE
from hierindex.read.marks import RunKind, joined_runs
from hierindex.read.office import stated
from hierindex.read.records import as_block, records_of_table
from hierindex.read.text import HEAD, Reading, codec_of, decode, read_bytes

TOKEN = re.compile(
    r"(?P<begin>\{\s*(?:\\\*\s*)?)?\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?\d{1,10})?[ ]?"
    r"|(?P<run>(?:\\'[0-9a-fA-F]{2}|[^\\{}])+)|(?P<brace>[{}])|\\(?P<sign>[^a-zA-Z]?)"
)
BYTE = re.compile(r"\\'(..)|[\r\n]")
SIGNS = {"~": "\xa0", "_": "-", "-": "", "{": "{", "}": "}", "\\": "\\"}
WORDS = dict.fromkeys(("emspace", "enspace", "nestcell"), " ") | {"line": "\n", "tab": "\t"}
WORDS |= zip(
    "bullet emdash endash ldblquote lquote rdblquote rquote".split(),
    "•—\u2013“\u2018”\u2019",
    strict=True,
)
GROUPS = {  # outside the running text, besides those that begin with an asterisk
    **dict.fromkeys("colortbl fldinst filetbl info listtable revtbl rxe".split(), "skipped"),
    **dict.fromkeys("nonesttables nonshppict shprslt sp stylesheet".split(), "skipped"),
    **dict.fromkeys("tc themedata xe".split(), "skipped"),
    "fonttbl": "fonts",
    "footnote": "note",
}
COUNTED = {"annotation": "comment", "object": "object", "pict": "picture"}
COUNTED |= dict.fromkeys("header headerf headerl headerr".split(), "page header")
COUNTED |= dict.fromkeys("footer footerf footerl footerr".split(), "page footer")
CODE_PAGES = dict(  # of the fonts
    zip(
        (77, 128, 129, 134, 136, 161, 162, 163, 177, 178, 186, 204, 222, 238),
        "mac_roman cp932 cp949 gb18030 big5hkscs cp1253 cp1254 cp1258 cp1255 cp1256 cp1257 cp1251 "
        "cp874 cp1250".split(),
        strict=True,
    )
)
CHANGES: dict[str, Callable[[int | None], dict[str, Any]]] = {
    "pard": lambda _: {"in_table": False, "level": 0},
    "intbl": lambda _: {"in_table": True},
    "outlinelevel": lambda level: {"level": ((level or 0) + 1) % 10},
    "plain": lambda _: {"unseen": False, "struck": False, "script": RunKind.PLAIN},
    "v": lambda on: {"unseen": on != 0},
    **dict.fromkeys("deleted strike striked".split(), lambda on: {"struck": on != 0}),
    "super": lambda on: {"script": RunKind.PLAIN if on == 0 else RunKind.SUPER},
    "sub": lambda on: {"script": RunKind.PLAIN if on == 0 else RunKind.SUB},
    "nosupersub": lambda _: {"script": RunKind.PLAIN},
    "uc": lambda n: {"n_fallback": max(0, n or 0)},
}
"""Changes of the state by control words, given their numbers."""


def read_rtf(file: BinaryIO) -> Reading:
    """Return the text of a Rich Text file, with notes in brackets and table rows as lines."""
    data = read_bytes(file)
    if not data[:HEAD].lstrip().startswith(b"{\\rtf"):
        return decode(data)
    found = _RtfText(data.decode("latin-1"))
    text, _, headings = Reading.joined(found.blocks)
    metadata = stated(found.about[TITLE], found.about["author"])
    return Reading(text, metadata, headings).leaving_out(found.left_out)


class _State(NamedTuple):
    """The formatting state within a group."""

    encoding: str
    group: str = ""  # "note", or of what is no text
    n_fallback: int = 1  # characters that stand for one of Unicode
    unseen: bool = False
    struck: bool = False
    script: RunKind = RunKind.PLAIN
    in_table: bool = False
    level: int = 0  # of a heading


class _RtfText:
    """The paragraphs and tables of a file, its title and author, and what was left out."""

    def __init__(self, rtf: str) -> None:
        self.blocks: list[Reading] = []
        self.about = {TITLE: "", "author": ""}
        self.left_out = Counter[str]()
        self._default = "cp1252"
        self._state = _State(self._default)
        self._outer: list[_State] = []
        self._line: list[tuple[RunKind, str]] = []  # runs, see `joined_runs`
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._note = 0  # where a note begins in the line
        self._n_skipped = 0  # characters still to be skipped
        at = 0
        while (match := TOKEN.match(rtf, at)) is not None:
            at = match.end()
            if match["word"] == "bin":
                at += max(0, int(match["number"] or 0))
            self._take(match)
        self._end_line()
        self._end_row()
        self._end_table()

    def _take(self, match: re.Match[str]) -> None:
        word, sign, begin = match["word"], match["sign"], match["begin"]
        if match["run"]:
            run = BYTE.sub(lambda byte: chr(int(byte[1], 16)) if byte[1] else "", match["run"])
            self._say(
                run[self._n_skipped :].encode("latin-1").decode(self._state.encoding, "replace")
            )
            self._n_skipped = max(0, self._n_skipped - len(run))
            return
        if begin or match["brace"] == "{":
            self._outer.append(self._state)
            self._n_skipped = 0
        if match["brace"] == "}":
            self._end_group()
        elif sign and sign in "\r\n":
            self._end_line()
        elif sign:
            self._say(SIGNS.get(sign, ""))
        elif word and not (begin and self._begins(word, is_optional="*" in begin)):
            self._obey(word, int(match["number"]) if match["number"] else None)

    def _begins(self, word: str, *, is_optional: bool) -> bool:
        """Return whether a word begins a group outside of the running text."""
        group = GROUPS.get(word, "")
        if word in COUNTED:
            self.left_out[COUNTED[word]] += self._is_text()
            group = "skipped"
        elif word in self.about and self._state.group == "skipped":
            group = word
        elif is_optional and word not in ("shpinst", "shppict", "shptxt"):
            group = group or "skipped"
        if group == "note":
            self._note = len(self._line)
        self._state = self._state._replace(group=group or self._state.group)
        return group != ""

    def _end_group(self) -> None:
        self._n_skipped = 0
        if self._state.group == "note" and self._outer and self._outer[-1].group != "note":
            note = joined_runs(self._line[self._note :], self.left_out)
            self._line[self._note :] = [(RunKind.PLAIN, f" [{note}]")] if note else []
        self._state = self._outer.pop() if self._outer else self._state

    def _obey(self, word: str, number: int | None) -> None:
        if word in WORDS:
            self._say(WORDS[word])
        elif word in CHANGES:
            self._state = self._state._replace(**CHANGES[word](number))
        elif word == "u" and number is not None:
            self._say(chr(number % 0x10000))
            self._n_skipped = self._state.n_fallback
        elif word in ("par", "sect", "page"):
            self._end_line()
        elif word == "cell":
            self._cells.append(" ".join(joined_runs(self._line, self.left_out).split()))
            self._line.clear()
        elif word == "row":
            self._end_row()
        elif word == "ansicpg":
            self._default = codec_of(f"cp{number}") or "cp1252"
            self._state = self._state._replace(encoding=self._default)
        elif word == "f":
            self._font = number or 0
            self._state = self._state._replace(encoding=self._fonts.get(self._font, self._default))
        elif word == "fcharset" and number in CODE_PAGES:
            self._fonts[self._font] = CODE_PAGES[number]

    def _say(self, text: str) -> None:
        state = self._state
        if state.group in self.about:
            self.about[state.group] += text
        elif self._is_text():
            why = RunKind.UNSEEN if state.unseen else RunKind.STRUCK if state.struck else None
            self._line.append((why or state.script, text))

    def _is_text(self) -> bool:
        return self._state.group in ("", "note")

    def _end_line(self) -> None:
        if self._state.in_table or self._state.group == "note":
            self._line.append((RunKind.PLAIN, " "))
        elif self._is_text():
            self._end_row()
            if text := joined_runs(self._line, self.left_out):
                self._end_table()
                block = Reading.block(text, self._state.level, " ".join(text.split()))
                self.blocks.append(block)
            self._line.clear()

    def _end_row(self) -> None:
        if any(self._cells):
            self._rows.append([*self._cells])
        self._cells.clear()

    def _end_table(self) -> None:
        if self._rows:
            records = records_of_table(self._rows)
            text = as_block(records) if records else "\n".join(map(" | ".join, self._rows))
            self.blocks.append(Reading.block(text))
        self._rows.clear()
