"""Evaluation data: documents, and questions with known answers (gold)."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from operator import index
from pathlib import Path
from typing import Any, TypeVar

from llama_index.core.schema import Document
from pydantic import ValidationError

from hierindex.errors import InputError
from hierindex.node import Span

T = TypeVar("T")


@dataclass(frozen=True)
class Question:
    """A question with its gold (expected) answer.

    Attributes
    ----------
    id, text : str
    group : str
        Unit of resampling for the confidence intervals, usually the id of the document.
    kind : str
        Results are averaged for each kind separately.
    within : str, optional
        Id of a document: only this document is searched.
    without : str, optional
        Id of a document to exclude from the search, with all summaries of its text.
    spans : tuple of Span
        Gold: passages that answer the question.
    documents : tuple of str
        Gold: ids of relevant documents. Documents missing from the data count as not found.
    answers : tuple of str
        Gold: texts, one of which must be found word for word.
    """

    id: str
    text: str
    group: str
    kind: str = ""
    within: str | None = None
    without: str | None = None
    spans: tuple[Span, ...] = ()
    documents: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """Documents and questions about them.

    Parameters
    ----------
    name : str
    documents : sequence of Document
        Only their texts are indexed, not their metadata.
    questions : sequence of Question

    Raises
    ------
    InputError
        If an id is repeated, a question's `within` or gold span names an unknown document, or a
        gold span is outside its document.
    """

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question]

    def __post_init__(self) -> None:
        texts = self.texts
        ids = [("question", q.id) for q in self.questions]
        ids += [("document", document.doc_id) for document in self.documents]
        for (what, repeated), n in Counter(ids).most_common(1):
            if n > 1:
                raise InputError(f"{self.name} has {n} {what}s with the id {repeated!r}.")
        for q in self.questions:
            named = {*(span.document for span in q.spans), q.within} - {None}
            for missing in named - texts.keys():
                raise InputError(
                    f"Question {q.id!r} of {self.name} names the missing document {missing!r}."
                )
            for span in q.spans:
                if not 0 <= span.start < span.end <= len(texts[span.document]):
                    raise InputError(
                        f"Gold of question {q.id!r} of {self.name} must be a part of the "
                        f"{len(texts[span.document])} characters of {span.document!r}, "
                        f"got {span.start} to {span.end}."
                    )

    @property
    def texts(self) -> dict[str, str]:
        """The text of each document, by its id."""
        return {document.doc_id: document.text for document in self.documents}


def read_dataset(path: str | Path) -> Dataset:
    """Read evaluation data in either of two formats.

    Parameters
    ----------
    path : str or Path
        A folder with `documents.jsonl` and `questions.jsonl`, or a BEIR folder (`corpus.jsonl`,
        `queries.jsonl`, `qrels/*.tsv`, of which `test.tsv` is preferred).

    Raises
    ------
    InputError
        If the data is missing, incomplete or wrong.

    Notes
    -----
    Each line of `documents.jsonl` is a JSON object with `doc_id` and `text`. Each line of
    `questions.jsonl` is a JSON object with `qid`, `doc_id` and `question`, and optionally `kind`
    and any of these gold fields:

    * `start` and `end` (exclusive): character offsets in the document's text;
    * `evidence`: a list of passages, word for word as in the document;
    * `gold_titles`: a list of document ids;
    * `answer`, or a list `answers`: texts, one of which must be found word for word.

    Other fields are ignored. For a question with `evidence`, only its own document is searched; for
    others, all documents are. A field `within` overrides this: a document id, or null for all.

    In a BEIR folder, a relevant document that is missing counts as not found, and a document with
    the id of a query is removed from the results of that query.
    """
    folder = Path(path)
    if (folder / "corpus.jsonl").is_file() and any(folder.glob("qrels/*.tsv")):
        with _naming(f"{folder}"):
            return _beir(folder)
    documents = _lines(
        folder / "documents.jsonl", lambda row: Document(text=row["text"], id_=row["doc_id"])
    )
    texts = {document.doc_id: document.text for document in documents}
    questions = _lines(folder / "questions.jsonl", partial(_question, texts))
    return Dataset(folder.name, documents, questions)


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Raise InputError with the name of the file or field that cannot be read."""
    try:
        yield
    except InputError:
        raise
    except KeyError as error:
        raise InputError(f"{what} lacks the field {error}.") from error
    except (OSError, AttributeError, TypeError, ValueError) as error:
        named = InputError.of_field(error) if isinstance(error, ValidationError) else error
        reason = str(named).replace(": line 1 column", " at column").rstrip(".")
        raise InputError(f"{what} cannot be read as evaluation data: {reason}.") from error


def _beir(folder: Path) -> Dataset:
    documents = _lines(
        folder / "corpus.jsonl",
        lambda row: Document(
            text="\n\n".join(filter(None, (row.get("title"), row["text"]))), id_=row["_id"]
        ),
    )
    file = min(folder.glob("qrels/*.tsv"), key=lambda file: (file.stem != "test", file.name))
    gold: dict[str, list[str]] = {}
    with file.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows, delimiter="\t"):
            if int(row["score"]) > 0:
                gold.setdefault(row["query-id"], []).append(row["corpus-id"])
    queries = _lines(folder / "queries.jsonl", lambda row: (row["_id"], row["text"]))
    ids = {document.doc_id for document in documents}
    asked = [
        Question(q, text, q, without=q if q in ids else None, documents=tuple(gold[q]))
        for q, text in queries
        if q in gold
    ]
    return Dataset(folder.name, documents, asked)


def _lines(path: Path, parse: Callable[[dict[str, Any]], T]) -> list[T]:
    """Parse the JSON object on each line of a file; errors name the line."""
    try:
        data = path.read_bytes()  # bytes, so that a line that is not UTF-8 is named, too
    except OSError as error:
        needed = "DATA must have documents.jsonl and questions.jsonl, or BEIR's files"
        raise InputError(f"{path} cannot be read ({error.strerror}); {needed}.") from error
    parsed = list[T]()
    for number, line in enumerate(map(bytes.strip, data.split(b"\n")), start=1):
        with _naming(f"Line {number} of {path}"):
            if line:
                parsed.append(parse(json.loads(line)))
    return parsed


def _question(texts: Mapping[str, str], row: Mapping[str, Any]) -> Question:
    answers = [row["answer"]] if row.get("answer") else row.get("answers")
    documents = _texts("gold_titles", row)
    for missing in (name for name in documents if name not in texts):
        raise ValueError(f"gold_titles names the missing document {missing!r}")
    return Question(
        id=row["qid"],
        text=row["question"],
        group=row["doc_id"],
        kind=row.get("kind") or "",
        within=row.get("within", row["doc_id"] if row.get("evidence") else None),
        spans=tuple(_spans(texts, row)),
        documents=documents,
        answers=_texts("answers", {"answers": answers}),
    )


def _spans(texts: Mapping[str, str], row: Mapping[str, Any]) -> Iterator[Span]:
    name = row["doc_id"]
    if "start" in row:
        yield Span(name, index(row["start"]), index(row["end"]))  # of integers only
    for passage in map(str.strip, _texts("evidence", row)):
        if (start := texts.get(name, "").find(passage)) < 0:
            raise ValueError(f"evidence is not in the document {name!r}: {passage[:60]!r}")
        yield Span(name, start, start + len(passage))


def _texts(field: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts of a list, or none if it is not a list."""
    texts = row.get(field) or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{field} must be a list of texts, got {texts!r}")
    return tuple(texts)
