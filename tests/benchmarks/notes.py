"""Answers without a language model on a folder of notes: which facts they show, and how early.

The folder is `tests/respond/notes`: lists, tables, records, mails, a chat, clauses. Its questions
stand beside it, in `notes.jsonl`: facts with their gold strings, and questions that the notes
cannot answer, with the words that they lack. Half are for tuning, half are held back.

Asked with the defaults. Printed are the facts whose gold stands in the answer, and in its first
60 and 120 words; the mean words of an answer; the unanswerable questions that are refused, or
whose `missing` names what the notes lack; and each miss with its answer.

Usage: python tests/benchmarks/notes.py [tuning|held]
"""

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from facts import normalised, says
from measures import rows_of

from hierindex import Answer, HierarchicalIndex

HERE = Path(__file__).parents[1] / "respond"
NOTES, QUESTIONS = HERE / "notes", HERE / "notes.jsonl"
PARTS = ("tuning", "held")
WORDS = (60, 120)


def first_words(answer: Answer, n_words: int | None = None) -> str:
    """The first words of an answer without the numbers of its passages; none if it is refused."""
    words = [] if answer.refused else re.sub(r" ?\[\d+\]", "", answer.answer).split()
    return " ".join(words[:n_words])


def is_told_apart(answer: Answer, absent: list[str]) -> bool:
    """Whether a question is refused, or a word that the notes lack is named as missing."""
    missing = {word for phrase in answer.missing for word in normalised(phrase).split()}
    return answer.refused or not missing.isdisjoint(map(normalised, absent))


def measured(part: str, asked: list[tuple[dict, Answer]]) -> str:
    """A row of the table; misses are printed."""
    facts = [(row, answer) for row, answer in asked if "answers" in row]
    others = [(row, answer) for row, answer in asked if "absent" in row]
    shown = [says(first_words(answer), tuple(row["answers"])) for row, answer in facts]
    early = [
        sum(says(first_words(answer, n), tuple(row["answers"])) for row, answer in facts)
        for n in WORDS
    ]
    told = [is_told_apart(answer, row["absent"]) for row, answer in others]
    for (row, answer), good in zip([*facts, *others], [*shown, *told], strict=True):
        if not good:
            gold = "; ".join(row.get("answers", ["no answer"]))
            print(f"{part}, {row['kind']}: {row['question']} ({gold})")
            print(f"    missing {answer.missing}, score {answer.score}: {answer.answer!r}")
    words = sum(len(first_words(answer).split()) for _, answer in facts) / len(facts)
    cells = [f"{sum(shown)} of {len(facts)}", *early, f"{words:.0f}", f"{sum(told)} of {len(told)}"]
    return f"| {' | '.join([part, *map(str, cells)])} |"


def main(parts: list[str]) -> None:
    first = " | ".join(f"first {n} words" for n in WORDS)
    table = [f"| | shown | {first} | words | refused or missing |", "|---" * 6 + "|"]
    with TemporaryDirectory() as folder:
        index = HierarchicalIndex.build(NOTES, folder)
        for part in parts:
            rows = [row for row in rows_of(QUESTIONS) if row["part"] == part]
            table.append(measured(part, [(row, index.ask(row["question"])) for row in rows]))
    print("\n" + "\n".join(table))


if __name__ == "__main__":
    if not set(sys.argv[1:]) <= set(PARTS):
        sys.exit("Usage: python tests/benchmarks/notes.py [tuning|held]")
    main(sys.argv[1:] or [*PARTS])
