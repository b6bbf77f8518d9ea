"""Each format of evaluation data, and what is said of data that cannot be used."""

import json

import pytest
from llama_index.core.schema import Document

from hierindex.errors import InputError
from hierindex.evaluate import Dataset, Question, read_dataset
from hierindex.record import Span

TEXT = "Ann: hello.\nBo: the budget is short.\nAnn: bye."
TURNS = [[0, 11], [12, 36], [37, 46]]


def written(folder, **files):
    """A folder of JSON lines and of text."""
    for name, rows in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = rows if isinstance(rows, str) else "\n".join(map(json.dumps, rows)) + "\n"
        suffix = ".tsv" if isinstance(rows, str) else ".jsonl"
        path.with_suffix(suffix).write_text(text)
    return folder


def question_of(tmp_path, question, **document):
    question = {"qid": "q", "doc_id": "d", "question": "What?", **question}
    rows = {"documents": [{"doc_id": "d", "text": TEXT, **document}], "questions": [question]}
    return read_dataset(written(tmp_path, **rows)).questions[0]


def test_turns_are_spans_of_the_document_that_is_named(tmp_path) -> None:
    topics = [{"topic": "money", "spans": [[1, 1]]}]
    given = {"spans": [[1, 9]], "answer": "The budget.", "kind": "specific"}
    asked = question_of(tmp_path, given, turn_offsets=TURNS, topics=topics)
    assert asked.spans == (Span("d", 12, 46),)
    assert (asked.within, asked.kind, asked.reference) == ("d", "specific", "The budget.")
    assert asked.topics == ()  # it is about a part of the document


def test_a_question_about_a_whole_document_has_topics(tmp_path) -> None:
    topics = [{"topic": "hello", "spans": [[0, 0]]}, {"topic": "money", "spans": [[1, 1], [2, 2]]}]
    asked = question_of(tmp_path, {"spans": []}, turn_offsets=TURNS, topics=topics)
    assert asked.topics == ((Span("d", 0, 11),), (Span("d", 12, 36), Span("d", 37, 46)))
    sections = [{"start": 0, "end": 46}, {"start": 12, "end": 46}]
    asked = question_of(tmp_path, {"start": 0, "end": 46}, sections=sections)
    assert asked.topics == ((Span("d", 0, 12),), (Span("d", 12, 46),))


def test_offsets_and_paragraphs_are_asked_of_all_documents(tmp_path) -> None:
    asked = question_of(tmp_path, {"start": 12, "end": 36})
    assert (asked.spans, asked.within) == ((Span("d", 12, 36),), None)
    paragraphs = [{"pid": "p", "text": "Bo: the budget is short.\n"}]
    asked = question_of(tmp_path, {"pid": "p", "answers": ["short"]}, paragraphs=paragraphs)
    assert (asked.spans, asked.answers) == ((Span("d", 12, 36),), ("short",))


def test_within_is_taken_as_given(tmp_path) -> None:
    assert question_of(tmp_path, {"evidence": ["bye"], "within": None}).within is None
    assert question_of(tmp_path, {"start": 0, "end": 5, "within": "d"}).within == "d"


def test_gold_documents_answers_and_evidence(tmp_path) -> None:
    asked = question_of(tmp_path, {"gold_titles": ["d"], "answer": "yes", "doc_id": "question"})
    assert (asked.documents, asked.group, asked.within) == ({"d": 1}, "question", None)
    asked = question_of(tmp_path, {"answer": "short", "usable": True})
    assert (asked.answers, asked.reference) == (("short",), "")
    asked = question_of(tmp_path, {"answers": ["short"], "evidence": ["budget"]})
    assert (asked.reference, asked.evidence) == ("short", ("budget",))


def test_beir_prefers_the_test_set_and_keeps_grades(tmp_path) -> None:
    corpus = [{"_id": "a", "title": "Tea", "text": "hot"}, {"_id": "b", "text": "cold"}]
    queries = [{"_id": "1", "text": "warm?"}, {"_id": "2", "text": "not judged"}]
    head = "query-id\tcorpus-id\tscore\n"
    folder = written(
        tmp_path,
        corpus=corpus,
        queries=queries,
        qrels__dev=head + "2\ta\t1\n",
        qrels__test=head + "1\ta\t2\n1\tb\t0\n",
    )
    data = read_dataset(folder)
    assert [(d.doc_id, d.text) for d in data.documents] == [("a", "Tea\n\nhot"), ("b", "cold")]
    assert data.questions == [Question("1", "warm?", group="1", documents={"a": 2})]


def test_llama_indexs_embedding_qa_dataset(tmp_path) -> None:
    file = tmp_path / "pairs.json"
    pairs = {"queries": {"q": "warm?"}, "corpus": {"a": "hot"}, "relevant_docs": {"q": ["a"]}}
    file.write_text(json.dumps({**pairs, "mode": "text"}))
    data = read_dataset(file)
    assert data.name == "pairs"
    assert data.questions == [Question("q", "warm?", group="q", documents={"a": 1})]


DOCUMENT = [{"doc_id": "d", "text": TEXT}]
ASKED = {"qid": "q", "doc_id": "d", "question": "What?"}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "holds no evaluation data; DATA must be a folder with documents.jsonl"),
        ({"documents": DOCUMENT, "questions": []}, "has no question with gold"),
        ({"documents": DOCUMENT, "questions": [ASKED]}, "has no question with gold"),
        (
            {"documents": DOCUMENT, "questions": [{**ASKED, "gold_titles": ["elsewhere"]}]},
            "names the missing document 'elsewhere'",
        ),
        (
            {
                "documents": [{**DOCUMENT[0], "paragraphs": [{"pid": "p", "text": "else"}]}],
                "questions": [{**ASKED, "pid": "p"}],
            },
            "evaluation data: pid names 'p', which is no paragraph in 'd'.",
        ),
        (
            {
                "corpus": [{"_id": "a", "text": "x"}],
                "queries": [{"_id": "1", "text": "x"}],
                "qrels__test": "query-id\tcorpus-id\tscore\n1\ta\thigh\n",
            },
            "cannot be read as evaluation data",
        ),
    ],
    ids=["nothing", "no question", "no gold", "missing", "pid", "score"],
)
def test_bad_data_get_one_sentence(tmp_path, files, message) -> None:
    with pytest.raises(InputError, match=message) as told:
        read_dataset(written(tmp_path, **files))
    assert "\n" not in str(told.value)


D, Q = json.dumps(DOCUMENT[0]), json.dumps({**ASKED, "answer": "short"})
WITH_TURNS = json.dumps({**DOCUMENT[0], "turn_offsets": TURNS})


def asking(**gold):
    return json.dumps({**ASKED, **gold})


@pytest.mark.parametrize(
    ("file", "line", "reason"),
    [
        ("documents", D[:9], "cannot be read as evaluation data: Expecting ':' delimiter at col"),
        ("documents", b'{"doc_id": "\xff"}', "cannot be read as evaluation data: 'utf-8' codec"),
        ("documents", "[]", "cannot be read as evaluation data: "),
        ("documents", '{"doc_id": "e"}', "lacks the field 'text'."),
        ("documents", '{"doc_id": 5, "text": ""}', "id_ is invalid: it must be text"),
        ("questions", Q[:-1], "cannot be read as evaluation data: Expecting ',' delimiter at col"),
        ("questions", D, "lacks the field 'qid'."),
        ("questions", asking(start=0), "lacks the field 'end'."),
        ("questions", asking(start=1, end="7"), "'str' object cannot be interpreted as an int"),
        ("questions", asking(pid="77"), "pid names '77', which is no paragraph in 'd'."),
        ("questions", asking(spans=[[0, 0]], doc_id="e"), "names the turns 0 to 0 of 0."),
        ("questions", asking(evidence="short"), "evidence must be a list of texts, got 'short'."),
        ("questions", asking(answers="short"), "answers must be a list of texts, got 'short'."),
        ("questions", asking(answer=1912, usable=True), "must be a list of texts, got [1912]."),
        ("questions", asking(gold_titles="d"), "gold_titles must be a list of texts, got 'd'."),
        ("questions", asking(spans=[[3, 4]]), "spans names the turns 3 to 4 of 3."),
        ("questions", asking(spans=[[-1, 1]]), "spans names the turns -1 to 1 of 3."),
        ("questions", asking(spans=[[2, 1]]), "spans names the turns 2 to 1 of 3."),
    ],
)
def test_a_bad_line_is_named(tmp_path, file, line, reason) -> None:
    lines = {"documents": [WITH_TURNS, "", " "], "questions": [Q, "", " "]}
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


def test_a_bad_line_of_beir_is_named(tmp_path) -> None:
    corpus, head = [{"_id": "a", "text": "hot"}], "query-id\tcorpus-id\tscore\n"
    files = {"corpus": corpus, "queries": [{"_id": "1"}], "qrels__test": head}
    with pytest.raises(InputError, match=r"^Line 1 of .*queries\.jsonl lacks the field 'text'\.$"):
        read_dataset(written(tmp_path, **files))


@pytest.mark.parametrize("ends", [(0, 47), (-1, 9), (9, 9), (9, 3), (50, 60)])
def test_gold_is_a_part_of_its_document(tmp_path, ends) -> None:
    start, end = ends
    message = f"Gold of question 'q' of .* 46 characters of 'd', got {start} to {end}\\.$"
    with pytest.raises(InputError, match=message):
        question_of(tmp_path, {"start": start, "end": end})
    topics = [{"spans": [[0, 0]]}]
    with pytest.raises(InputError, match=message):
        question_of(tmp_path, {"answer": "x"}, turn_offsets=[ends], topics=topics)
    assert question_of(tmp_path, {"start": 0, "end": 46}).spans == (Span("d", 0, 46),)


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_question_is_not_asked_of_an_empty_document(text) -> None:
    documents = [Document(text=text, id_="d"), Document(text=TEXT, id_="e")]
    asked = Question("q", "?", group="d", within="d", reference="x")
    with pytest.raises(InputError, match=r"^Question 'q' of x is asked of 'd', which is empty\.$"):
        Dataset("x", documents, [asked])


@pytest.mark.parametrize(("n_documents", "n_questions"), [(2, 1), (1, 2)])
def test_an_id_is_unique(tmp_path, n_documents, n_questions) -> None:
    many = "documents" if n_documents > 1 else "questions"
    documents, questions = DOCUMENT * n_documents, [{**ASKED, "answer": "short"}] * n_questions
    with pytest.raises(InputError, match=f"has 2 {many} with the id '[dq]'"):
        read_dataset(written(tmp_path / "ours", documents=documents, questions=questions))
    row = {"_id": "a", "text": "x"}
    files = {"corpus": [row] * n_documents, "queries": [row] * n_questions}
    with pytest.raises(InputError, match=f"has 2 {many} with the id 'a'"):
        read_dataset(
            written(tmp_path, **files, qrels__test="query-id\tcorpus-id\tscore\na\ta\t1\n")
        )


def test_no_such_folder_and_no_json(tmp_path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_dataset(tmp_path / "none")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(InputError, match=r"bad\.json cannot be read"):
        read_dataset(tmp_path / "bad.json")
