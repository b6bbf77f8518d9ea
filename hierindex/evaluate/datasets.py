"""Evaluation data: documents, and questions with gold, read from three formats."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from operator import attrgetter, index, itemgetter
from pathlib import Path
from typing import Any, TypeVar

from llama_index.core.schema import Document
from pydantic import ValidationError

from hierindex.errors import InputError
from hierindex.record import Span

T = TypeVar("T")
FORMATS = (
    "a folder with documents.jsonl and questions.jsonl, a BEIR folder, or a JSON file of "
    "LlamaIndex's EmbeddingQAFinetuneDataset"
)


@dataclass(frozen=True)
class Question:
    """A question with its gold, of which any field may be empty.

    Questions of one `group`, usually a document, are resampled together; figures are means over
    the questions of one `kind`. If `within` names a document, only this document is searched.
    Gold is the `spans` that answer the question, the passages of each of the `topics` that an
    overview mentions, texts that are `evidence`, the relevance of `documents`, `answers` that
    passages hold word for word, or a person's answer, the `reference`.
    """

    id: str
    text: str
    group: str
    kind: str = ""
    within: str | None = None
    spans: tuple[Span, ...] = ()
    topics: tuple[tuple[Span, ...], ...] = ()
    evidence: tuple[str, ...] = ()
    documents: Mapping[str, int] = field(default_factory=dict)
    answers: tuple[str, ...] = ()
    reference: str = ""


@dataclass(frozen=True)
class Dataset:
    """Documents and questions about them.

    Only the texts of the documents are indexed, not their metadata.

    Raises
    ------
    InputError
        If there is no question, an id is repeated, a question is asked of an empty document, or
        gold lies outside of the documents.
    """

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question]

    def __post_init__(self) -> None:
        if not self.questions:
            raise InputError(f"{self.name} has no question with gold.")
        texts = self.texts
        ids = [("question", q.id) for q in self.questions]
        ids += [("document", document.doc_id) for document in self.documents]
        ((what, repeated), n), *_ = Counter(ids).most_common(1)
        if n > 1:
            raise InputError(f"{self.name} has {n} {what}s with the id {repeated!r}.")
        for q in self.questions:
            spans = [*q.spans, *(span for topic in q.topics for span in topic)]
            named = {*(span.document for span in spans), *q.documents, q.within} - {None}
            for missing in named - texts.keys():
                raise InputError(
                    f"Question {q.id!r} of {self.name} names the missing document {missing!r}."
                )
            if q.within is not None and not texts[q.within].strip():
                raise InputError(
                    f"Question {q.id!r} of {self.name} is asked of {q.within!r}, which is empty."
                )
            for span in spans:
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
    """Read evaluation data in any of three formats.

    Parameters
    ----------
    path : str or Path
        A BEIR folder (`corpus.jsonl`, `queries.jsonl`, `qrels/*.tsv`, of which `test.tsv` is
        preferred), a JSON file of LlamaIndex's `EmbeddingQAFinetuneDataset`, or a folder of
        `documents.jsonl` and `questions.jsonl`.

    Raises
    ------
    InputError
        If the data are missing, incomplete or wrong, or have no question with gold.

    Notes
    -----
    Each line of `documents.jsonl` is a JSON object with `doc_id` and `text`. Each line of
    `questions.jsonl` is one with `qid`, `doc_id`, `question`, optionally `kind`, and gold:

    * `start` and `end` (exclusive), characters of the document's text;
    * `spans`, pairs of the first and last turn, counted from 0; the document's `turn_offsets`
      are the start and end of each turn;
    * `pid`, one of the document's `paragraphs`, each with `pid` and `text`;
    * `evidence`, a list of passages; `gold_titles`, a list of ids of documents;
    * `answer` or a list of `answers`, written by a person. With `pid` or `usable`, passages must
      contain an answer. If `usable` is false, the line is skipped.

    A document's `topics`, each with `spans`, or `sections`, each with `start`, are gold of
    questions about the whole of it. A question with `start`, `pid` or `gold_titles` is asked of
    all documents, others of their own, or of the one that `within` names.
    """
    path = Path(path)
    for reader, needed in READERS.items():
        if all(any(path.glob(name)) if name else path.is_file() for name in needed):
            with _one_sentence(f"{path}"):
                return reader(path)
    problem = "holds no evaluation data" if path.exists() else "does not exist"
    raise InputError(f"{path} {problem}; DATA must be {FORMATS}.")


@contextmanager
def _one_sentence(what: str) -> Iterator[None]:
    """Convert errors in reading `what` into one sentence."""
    try:
        yield
    except InputError:
        raise
    except KeyError as error:
        raise InputError(f"{what} lacks the field {error}.") from error
    except (OSError, AttributeError, IndexError, TypeError, ValueError) as error:
        named = InputError.of_field(error) if isinstance(error, ValidationError) else error
        reason = str(named).replace(": line 1 column", " at column").rstrip(".")
        raise InputError(f"{what} cannot be read as evaluation data: {reason}.") from error


def _lines(path: Path, parse: Callable[[dict[str, Any]], T]) -> list[T]:
    """Parse the JSON object on each line of a file, which an error names with the line."""
    parsed = list[T]()
    with path.open("rb") as lines:  # bytes, so that a line that is not UTF-8 is named, too
        for number, line in enumerate(map(bytes.strip, lines), start=1):
            with _one_sentence(f"Line {number} of {path}"):
                if line:
                    parsed.append(parse(json.loads(line)))
    return parsed


def _embedding_qa(path: Path) -> Dataset:
    data = json.loads(path.read_text("utf-8"))
    documents = [Document(text=text, id_=name) for name, text in data["corpus"].items()]
    gold = {name: dict.fromkeys(ids, 1) for name, ids in data["relevant_docs"].items()}
    return Dataset(path.stem, documents, _of_documents(data["queries"].items(), gold))


def _beir(folder: Path) -> Dataset:
    documents = _lines(
        folder / "corpus.jsonl", lambda row: _document(row["_id"], row["text"], row.get("title"))
    )
    file = min(folder.glob("qrels/*.tsv"), key=lambda file: (file.stem != "test", file.name))
    gold: dict[str, dict[str, int]] = {}
    with file.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows, delimiter="\t"):
            if int(row["score"]) > 0:
                gold.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    queries = _lines(folder / "queries.jsonl", itemgetter("_id", "text"))
    return Dataset(folder.name, documents, _of_documents(queries, gold))


def _of_documents(
    queries: Iterable[tuple[str, str]], gold: Mapping[str, Mapping[str, int]]
) -> list[Question]:
    asked = ((name, text) for name, text in queries if gold.get(name))
    return [Question(name, text, group=name, documents=gold[name]) for name, text in asked]


def _with_gold(folder: Path) -> Dataset:
    read = _lines(
        folder / "documents.jsonl", lambda row: (_document(row["doc_id"], row["text"]), row)
    )
    rows = {document.doc_id: row for document, row in read}
    questions = _lines(folder / "questions.jsonl", lambda row: _question(row, rows))
    gold = attrgetter("spans", "topics", "evidence", "documents", "answers", "reference")
    usable = [q for q in questions if q and any(gold(q))]
    return Dataset(folder.name, [document for document, _ in read], usable)


def _document(name: str, text: str, title: str | None = None) -> Document:
    return Document(text="\n\n".join(filter(None, (title, text))), id_=name)


READERS = {
    _beir: ("corpus.jsonl", "queries.jsonl", "qrels/*.tsv"),
    _with_gold: ("documents.jsonl", "questions.jsonl"),
    _embedding_qa: ("",),  # a file
}
"""Readers, and the files that show that a folder is theirs."""


def _question(row: Mapping[str, Any], documents: Mapping[str, Any]) -> Question | None:
    if not row.get("usable", True):
        return None
    document = documents.get(row["doc_id"], {"text": ""})
    name, spans = row["doc_id"], tuple(_spans(row, document))
    answers = _texts("answers", row.get("answers") or [*filter(None, [row.get("answer")])])
    verbatim = "pid" in row or "usable" in row  # in SQuAD and Natural Questions
    anywhere = {"start", "pid", "gold_titles"} & row.keys()
    whole = not spans or (spans[0].start == 0 and spans[0].end >= len(document["text"]))
    return Question(
        id=row["qid"],
        text=row["question"],
        group=name,
        kind=row.get("kind") or "",
        within=row.get("within", None if anywhere else name),
        spans=spans,
        topics=tuple(_topics(name, document)) if whole else (),
        evidence=_texts("evidence", row.get("evidence")),
        documents=dict.fromkeys(_texts("gold_titles", row.get("gold_titles")), 1),
        answers=answers if verbatim else (),
        reference="" if verbatim else "".join(answers[:1]),
    )


def _texts(field: str, value: Any) -> tuple[str, ...]:
    """Return the texts of a list, none if there is no list."""
    texts = value or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"{field} must be a list of texts, got {texts!r}")
    return tuple(texts)


def _spans(row: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Span]:
    name = row["doc_id"]
    if "start" in row:
        yield Span(name, index(row["start"]), index(row["end"]))  # of integers only
    elif "pid" in row:
        paragraphs = {p["pid"]: p["text"].strip() for p in document.get("paragraphs", ())}
        if (text := paragraphs.get(row["pid"])) is None or text not in document["text"]:
            raise ValueError(f"pid names {row['pid']!r}, which is no paragraph in {name!r}")
        start = document["text"].index(text)
        yield Span(name, start, start + len(text))
    else:
        yield from _turns(name, document, row.get("spans") or ())


def _turns(
    name: str, document: Mapping[str, Any], spans: Iterable[tuple[int, int]]
) -> Iterator[Span]:
    for first, last in spans:
        turns = document.get("turn_offsets", ())
        if not 0 <= first <= last or first >= len(turns):
            raise ValueError(f"spans names the turns {first} to {last} of {len(turns)}")
        yield Span(name, turns[first][0], turns[min(last, len(turns) - 1)][1])


def _topics(name: str, document: Mapping[str, Any]) -> Iterator[tuple[Span, ...]]:
    """Yield the passages of each topic, or the text of each section up to the next one."""
    for topic in document.get("topics") or ():
        yield tuple(_turns(name, document, topic["spans"]))
    starts = sorted(
        {section["start"] for section in document.get("sections") or () if "start" in section}
    )
    if len(starts) > 1:
        yield from ((Span(name, *ends),) for ends in pairwise([*starts, len(document["text"])]))
