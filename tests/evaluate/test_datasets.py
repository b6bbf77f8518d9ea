"""Evaluation data, and what is said of data that cannot be used."""

import json

import pytest

from hierindex import Span
from hierindex.errors import InputError
from hierindex.evaluate import Question, read_dataset

TEXT = "Ann: hello.\nBo: the budget is short.\nAnn: bye."


def written(folder, **files):
    """A folder of JSON lines."""
    for name, rows in files.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return folder


def question_of(tmp_path, question, **document):
    question = {"qid": "q", "doc_id": "d", "question": "What?", **question}
    rows = {"documents": [{"doc_id": "d", "text": TEXT, **document}], "questions": [question]}
    return read_dataset(written(tmp_path, **rows)).questions[0]


def test_gold_is_offsets_passages_documents_or_answers(tmp_path) -> None:
    asked = question_of(tmp_path, {"start": 12, "end": 36, "kind": "specific"})
    assert asked == Question("q", "What?", "d", kind="specific", spans=(Span("d", 12, 36),))
    asked = question_of(tmp_path, {"evidence": ["Ann: hello.\n", "bye"]})
    assert asked.spans == (Span("d", 0, 11), Span("d", 42, 45))
    asked = question_of(tmp_path, {"gold_titles": ["d"], "doc_id": "elsewhere"})
    assert asked == Question("q", "What?", "elsewhere", documents=("d",))
    for gold in ({"answer": "short"}, {"answers": ["short"]}):
        assert question_of(tmp_path, gold) == Question("q", "What?", "d", answers=("short",))


def test_beir_has_gold_documents(tmp_path) -> None:
    (beir := tmp_path / "beir").mkdir()
    (beir / "qrels").mkdir()
    written(
        beir,
        corpus=[{"_id": "d", "title": "Budget", "text": TEXT}, {"_id": "e", "text": "Other."}],
        queries=[{"_id": name, "text": "What?"} for name in ("q", "e", "none")],
    )
    rows = "query-id\tcorpus-id\tscore\nq\td\t2\nq\te\t0\ne\td\t1\n"
    (beir / "qrels" / "test.tsv").write_text(rows)
    dataset = read_dataset(beir)
    assert dataset.questions == [
        Question("q", "What?", "q", documents=("d",)),
        Question("e", "What?", "e", without="e", documents=("d",)),  # its own result
    ]
    assert dataset.texts["d"] == f"Budget\n\n{TEXT}"


def test_evidence_is_sought_in_its_document(tmp_path) -> None:
    assert question_of(tmp_path, {"evidence": ["bye"]}).within == "d"
    assert question_of(tmp_path, {"evidence": ["bye"], "within": None}).within is None
    assert question_of(tmp_path, {"start": 0, "end": 5}).within is None
    assert question_of(tmp_path, {"start": 0, "end": 5, "within": "d"}).within == "d"


def test_other_fields_are_ignored(tmp_path) -> None:
    asked = question_of(tmp_path, {"comment": 1912, "spans": [[0, 9]], "evidence": None}, topics=1)
    assert asked == Question("q", "What?", "d")


DOCUMENT = [{"doc_id": "d", "text": TEXT}]
ASKED = {"qid": "q", "doc_id": "d", "question": "What?"}


def test_what_is_of_a_missing_document_is_named(tmp_path) -> None:
    for gold in ({"within": "elsewhere"}, {"doc_id": "elsewhere", "start": 0, "end": 5}):
        with pytest.raises(InputError, match=r"^Question 'q' .* missing document 'elsewhere'\.$"):
            question_of(tmp_path, gold)


D, Q = json.dumps(DOCUMENT[0]), json.dumps(ASKED)


def asking(**gold):
    return json.dumps({**ASKED, **gold})


@pytest.mark.parametrize(
    ("file", "line", "reason"),
    [
        ("documents", D[:9], "cannot be read as evaluation data: Expecting ':' delimiter at col"),
        ("documents", b'{"doc_id": "\xff"}', "cannot be read as evaluation data: 'utf-8' codec"),
        ("documents", "[]", "cannot be read as evaluation data: "),
        ("documents", '{"doc_id": "e"}', "lacks the field 'text'."),
        ("documents", '{"doc_id": 5, "text": ""}', "id_ is invalid: input should be a"),
        ("questions", Q[:-1], "cannot be read as evaluation data: Expecting ',' delimiter at col"),
        ("questions", D, "lacks the field 'qid'."),
        ("questions", asking(start=0), "lacks the field 'end'."),
        ("questions", asking(start=1, end="7"), "'str' object cannot be interpreted as an int"),
        ("questions", asking(evidence=["no"]), "evidence is not in the document 'd': 'no'."),
        ("questions", asking(evidence="short"), "evidence must be a list of texts, got 'short'."),
        ("questions", asking(gold_titles="d"), "gold_titles must be a list of texts, got 'd'."),
        ("questions", asking(gold_titles=["d", "e"]), "names the missing document 'e'."),
        ("questions", asking(answer=7), "answers must be a list of texts, got [7]."),
    ],
)
def test_a_bad_line_is_named(tmp_path, file, line, reason) -> None:
    lines = {"documents": [D, "", " "], "questions": [Q, "", " "]}
    lines[file].append(line)
    for name, each in lines.items():
        rows = [row if isinstance(row, bytes) else row.encode() for row in each]
        (tmp_path / f"{name}.jsonl").write_bytes(b"\r\n".join(rows))
    with pytest.raises(InputError) as told:
        read_dataset(tmp_path)
    assert str(told.value).startswith(f"Line 4 of {tmp_path / file}.jsonl ")
    assert reason in str(told.value)
    assert "\n" not in str(told.value)
    assert "line 1" not in str(told.value)


@pytest.mark.parametrize("ends", [(0, 47), (-1, 9), (9, 9), (9, 3), (50, 60)])
def test_gold_is_a_part_of_its_document(tmp_path, ends) -> None:
    start, end = ends
    message = f"Gold of question 'q' of .* 46 characters of 'd', got {start} to {end}\\.$"
    with pytest.raises(InputError, match=message):
        question_of(tmp_path, {"start": start, "end": end})


@pytest.mark.parametrize(("n_documents", "n_questions"), [(2, 1), (1, 2)])
def test_an_id_is_unique(tmp_path, n_documents, n_questions) -> None:
    many = "documents" if n_documents > 1 else "questions"
    with pytest.raises(InputError, match=f"has 2 {many} with the id '[dq]'"):
        read_dataset(
            written(tmp_path, documents=DOCUMENT * n_documents, questions=[ASKED] * n_questions)
        )


@pytest.mark.parametrize("missing", ["documents", "questions"])
def test_a_missing_file_is_named(tmp_path, missing) -> None:
    folder = written(tmp_path, documents=DOCUMENT, questions=[ASKED])
    (folder / f"{missing}.jsonl").unlink()
    with pytest.raises(InputError, match=rf"{missing}\.jsonl cannot be read \(No such file"):
        read_dataset(folder)
