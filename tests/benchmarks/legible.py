"""Answers without a language model: how many of their passages do not read as an answer.

Up to 120 questions of each set of `facts.py` are asked with `min_score=None`, and each passage of
the answers is held against the text of its document around its citation. Counted are passages that

* begin or end inside a sentence,
* are a heading, or another line that is no sentence, outside tables and code, and announces none,
* are a line of a table of contents or of an index of names,
* only ask, in an answer that has nothing else,
* are a part of a block of code.

Usage: python tests/benchmarks/legible.py DATA CORPORA INDEX_FOLDER [SET ...]
(as for `facts.py`; the faulty passages are printed)
"""

import re
import sys
from collections import Counter
from pathlib import Path

from facts import SETS, WRITTEN, index_of, questions_of, within
from hierindex.respond.legible import END
from measures import read_labelled

from hierindex import HierarchicalIndex
from hierindex.evaluate import Question
from hierindex.read.documents import read_documents
from hierindex.text.blocks import is_code

MOST = 120
AROUND = 300  # characters of the document before and after a passage
ITEM = re.compile(r"\s*(?:[-*+\u2022]|\(?(?:\d{1,3}|[a-z]{1,3})[.)]|[|+#>`]|\S[^\t\n]*\t)\s*")
PARAGRAPH = re.compile(r"\n[ \t]*\n\s*$")
ANNOUNCED = re.compile(r"[:\uff1a]\s*$")
CONTENTS = re.compile(
    r"\.{4,}|(?:\s\.){4,}|\b(?:Vol\. [IVXL]+, )?p+\. ?\d+(?:-\d+)?\.?$", re.MULTILINE
)
FAULTS = ("begins inside", "ends inside", "no sentence", "contents", "only asks", "cut code")


def documents_of(name: str, data: Path, corpora: Path) -> dict[str, str]:
    """The texts of a set's documents, by their ids."""
    documents = (
        read_documents(corpora / name)[0]
        if name in WRITTEN
        else read_labelled(data / name).documents
    )
    return {document.doc_id: document.text for document in documents}


def is_verbatim(line: str) -> bool:
    """Whether a line is code or a row of a table."""
    return is_code(line) or line.startswith(("    ", "\t", "|", ">>>", "$ ", "```")) or "\t" in line


def begins_inside(before: str, text: str) -> bool:
    """Whether a passage begins after a word of its own sentence."""
    if not before.strip() or PARAGRAPH.search(before) or ITEM.match(text):
        return False
    line = before.rstrip().rpartition("\n")[2]
    ended = END.search(line.rstrip(" '\"")) or ANNOUNCED.search(line) or is_verbatim(line)
    is_new_line = "\n" in before[len(before.rstrip()) :]
    return not (ended or (is_new_line and (ITEM.match(line) or len(line) < 50)))


def ends_inside(text: str, after: str) -> bool:
    """Whether a sentence goes on after a passage."""
    last = text.rpartition("\n")[2]
    if END.search(text) or ANNOUNCED.search(text) or is_verbatim(last) or not after.strip():
        return False
    return not (re.match(r"[ \t]*\n[ \t]*\n", after) or ITEM.match(after.lstrip("\n")))


def faults_of(texts: list[str], places: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The faults of an answer, each with its passage."""
    faults = []
    for text, (before, after) in zip(texts, places, strict=True):
        lines = text.split("\n")
        verbatim = [is_verbatim(line) for line in lines]
        if begins_inside(before, text):
            faults.append(("begins inside", f"{before[-60:]!r} <<{text[:80]!r}"))
        if ends_inside(text, after):
            faults.append(("ends inside", f"{text[-80:]!r}>> {after[:60]!r}"))
        announces = ANNOUNCED.search(text) and text is not texts[-1]  # what is quoted next
        ends = any(END.search(line.rstrip()) for line in lines)
        if not (any(verbatim) or ends or announces):
            faults.append(("no sentence", repr(text)))
        if CONTENTS.search(text):
            faults.append(("contents", repr(text)))
        inner = before.rstrip("\n").rpartition("\n")[2], after.lstrip("\n").partition("\n")[0]
        beside = [is_code(line) or line.startswith("    ") for line in inner]
        near = before.endswith("\n"), after.startswith("\n")
        if (is_code(lines[0]) and beside[0] and near[0]) or (
            is_code(lines[-1]) and beside[1] and near[1]
        ):
            faults.append(("cut code", f"{before[-80:]!r} <<{text!r}>> {after[:80]!r}"))
    if texts and all(text.rstrip("\"'\u201d)*_").endswith(("?", "\uff1f")) for text in texts):
        faults.append(("only asks", repr(texts)))
    return faults


def faults_in(index: HierarchicalIndex, question: Question, texts: dict[str, str]) -> list:
    """The faults of the answer to a question, and how many passages it has."""
    answer = index.ask(question.text, synthesizer={"min_score": None}, **within(question))
    cited = [c for c in answer.citations if c is not None]
    quoted = [texts[c["document"]][c["start"] : c["end"]] for c in cited]
    places = [
        (
            texts[c["document"]][max(0, c["start"] - AROUND) : c["start"]],
            texts[c["document"]][c["end"] : c["end"] + AROUND],
        )
        for c in cited
    ]
    return [len(cited), faults_of(quoted, places)]


def main(data: Path, corpora: Path, folder: Path, names: list[str]) -> None:
    table = [f"| | answers | passages | {' | '.join(FAULTS)} |", "|---" * (3 + len(FAULTS)) + "|"]
    for name in names or [*SETS, *WRITTEN]:
        texts, index = documents_of(name, data, corpora), index_of(name, data, corpora, folder)
        questions = questions_of(name, data)[:MOST]
        found = [faults_in(index, question, texts) for question in questions]
        faults = [
            (q.text, *fault) for q, (_, of) in zip(questions, found, strict=True) for fault in of
        ]
        for question, kind, case in faults:
            print(f"{name}: {kind}: {question}\n    {case}")
        counts = Counter(kind for _, kind, _ in faults)
        cells = [name, len(questions), sum(n for n, _ in found), *(counts[kind] for kind in FAULTS)]
        table.append(f"| {' | '.join(map(str, cells))} |")
    print("\n" + "\n".join(table))


if __name__ == "__main__":
    if len(sys.argv) < 4 or not all(Path(path).is_dir() for path in sys.argv[1:3]):
        sys.exit("Usage: python tests/benchmarks/legible.py DATA CORPORA INDEX_FOLDER [SET ...]")
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
