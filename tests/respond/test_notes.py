"""Questions on a folder of notes: lists, tables, records, mails, a chat, clauses.

Every third one; `tests/benchmarks/notes.py` asks them all.
"""

import json
import re
from pathlib import Path

import pytest

from hierindex import HierarchicalIndex

HERE = Path(__file__).parent
LINES = (HERE / "notes.jsonl").read_text(encoding="utf-8").splitlines()
QUESTIONS = [json.loads(line) for line in LINES][::3]
FIRST = 60  # words


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    index = HierarchicalIndex.build(HERE / "notes", tmp_path_factory.mktemp("index") / "notes")
    return [(row, index.ask(row["question"])) for row in QUESTIONS]


def words(answer):
    return re.sub(r" ?\[\d+\]", "", answer.answer).split()


def share(hits):
    return sum(hits) / len(hits)


def test_facts_of_notes_are_shown_and_early(answers):
    asked = [(row["answers"], answer) for row, answer in answers if "answers" in row]
    assert len(asked) >= 10
    assert share([any(gold in " ".join(words(a)) for gold in of) for of, a in asked]) >= 27 / 30
    first = [any(gold in " ".join(words(a)[:FIRST]) for gold in of) for of, a in asked]
    assert share(first) >= 24 / 30


def test_what_notes_do_not_have_is_refused_or_named(answers):
    asked = [(row["absent"], answer) for row, answer in answers if "absent" in row]
    assert len(asked) >= 6
    told = [a.refused or not {*a.missing}.isdisjoint(absent) for absent, a in asked]
    assert share(told) >= 16 / 20


def test_passages_are_verbatim_and_short(answers):
    for _, answer in answers:
        assert len(answer.passages) <= 5
        for passage in answer.passages:
            assert passage.text in answer.answer
            assert passage.best in passage.text or passage.best == passage.lead.strip()
            assert len(passage.text.split()) <= 80
