"""Evaluation data: documents, and questions with gold."""

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, get_args

from llama_index.core.schema import Document

from hierindex.core.arguments import require
from hierindex.errors import InputError
from hierindex.record import Span

Part = Literal["all", "tuning", "held-out"]
PARTS: tuple[Part, ...] = get_args(Part)
FORMATS = (
    "a folder with documents.jsonl and questions.jsonl, a BEIR folder, or a JSON file of "
    "LlamaIndex's EmbeddingQAFinetuneDataset"
)


@dataclass(frozen=True)
class Question:
    """A question with its gold, of which any field may be empty.

    Questions of one `group`, usually a document, are in the same part and resampled together;
    figures are means over the questions of one `kind`. If `within` names a document, only this
    document is searched. Gold is the `spans` that answer the question, the passages of each of
    the `topics` that an overview mentions, texts that are `evidence`, the relevance of
    `documents`, `answers` that passages hold word for word, or a person's answer, the
    `reference`. `choices` are possible answers, of which the reference is one.
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
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dataset:
    """Documents and questions about them.

    Raises
    ------
    InputError
        If there is no question, or one names a document that is missing.
    """

    name: str
    documents: Sequence[Document]
    questions: Sequence[Question]

    def __post_init__(self) -> None:
        if not self.questions:
            raise InputError(f"{self.name} has no question with gold.")
        known = {document.doc_id for document in self.documents}
        for q in self.questions:
            spans = [*q.spans, *(span for topic in q.topics for span in topic)]
            named = {*(span.document for span in spans), *q.documents, q.within} - {None}
            for missing in named - known:
                raise InputError(
                    f"Question {q.id!r} of {self.name} names the missing document {missing!r}."
                )

    def part(self, part: Part) -> list[Question]:
        """Return the questions of a part: a third of the groups is held out, by their hashes.

        Raises
        ------
        InputError
            If the part does not exist or has no question.
        """
        require(part in PARTS, "part", f"one of {', '.join(PARTS)}", part)
        kept = [q for q in self.questions if part in ("all", _part_of(q.group))]
        if not kept:
            raise InputError(f"{self.name} has no question in the part {part!r}.")
        return kept


def read_dataset(path: str | Path) -> Dataset:
    """Read evaluation data in any of three formats.

    Parameters
    ----------
    path : str or Path
        A BEIR folder (`corpus.jsonl`, `queries.jsonl`, `qrels/*.tsv`, of which `test.tsv` is
        preferred), a JSON file of LlamaIndex's `EmbeddingQAFinetuneDataset`, or a folder of
        `documents.jsonl` (`doc_id`, `text`) and `questions.jsonl` (`qid`, `doc_id`, `question`,
        `kind`), whose gold is any of `start` and `end`; `spans` of the document's `turn_offsets`;
        `pid`, one of its `paragraphs`; `gold_titles`, ids of documents; `evidence`; `answer` or
        `answers`; `choices`. A document's `topics` or `sections` are gold of questions about the
        whole of it. A question with `start`, `pid` or `gold_titles` is asked of all documents,
        others of their own, or of the one that `within` names.

    Raises
    ------
    InputError
        If the data are missing or incomplete, or have no question with gold.
    """
    path = Path(path)
    for reader, needed in READERS.items():
        if all(any(path.glob(name)) if name else path.is_file() for name in needed):
            try:
                return reader(path)
            except InputError:
                raise
            except KeyError as error:
                raise InputError(f"An entry of {path} lacks the field {error}.") from error
            except (OSError, AttributeError, IndexError, TypeError, ValueError) as error:
                raise InputError(f"{path} cannot be read as evaluation data: {error}.") from error
    problem = "holds no evaluation data" if path.exists() else "does not exist"
    raise InputError(f"{path} {problem}; DATA must be {FORMATS}.")


def _part_of(group: str) -> Part:
    thirds = int(sha256(group.encode()).hexdigest(), 16) % 3
    return "held-out" if thirds == 0 else "tuning"


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def _embedding_qa(path: Path) -> Dataset:
    data = json.loads(path.read_text("utf-8"))
    documents = [Document(text=text, id_=name) for name, text in data["corpus"].items()]
    gold = {name: dict.fromkeys(ids, 1) for name, ids in data["relevant_docs"].items()}
    return Dataset(path.stem, documents, _of_documents(data["queries"], gold))


def _beir(folder: Path) -> Dataset:
    documents = [
        Document(text="\n\n".join(filter(None, (row.get("title"), row["text"]))), id_=row["_id"])
        for row in _lines(folder / "corpus.jsonl")
    ]
    file = min(folder.glob("qrels/*.tsv"), key=lambda file: (file.stem != "test", file.name))
    gold: dict[str, dict[str, int]] = {}
    with file.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows, delimiter="\t"):
            if int(row["score"]) > 0:
                gold.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    queries = {row["_id"]: row["text"] for row in _lines(folder / "queries.jsonl")}
    return Dataset(folder.name, documents, _of_documents(queries, gold))


def _of_documents(
    queries: Mapping[str, str], gold: Mapping[str, Mapping[str, int]]
) -> list[Question]:
    asked = ((name, text) for name, text in queries.items() if gold.get(name))
    return [Question(name, text, group=name, documents=gold[name]) for name, text in asked]


def _with_gold(folder: Path) -> Dataset:
    rows = {row["doc_id"]: row for row in _lines(folder / "documents.jsonl")}
    documents = [Document(text=row["text"], id_=name) for name, row in rows.items()]
    usable = (row for row in _lines(folder / "questions.jsonl") if row.get("usable", True))
    questions = [_question(row, rows.get(row["doc_id"], {"text": ""})) for row in usable]
    gold = attrgetter("spans", "topics", "evidence", "documents", "answers", "reference")
    return Dataset(folder.name, documents, [q for q in questions if any(gold(q))])


READERS = {
    _beir: ("corpus.jsonl", "queries.jsonl", "qrels/*.tsv"),
    _with_gold: ("documents.jsonl", "questions.jsonl"),
    _embedding_qa: ("",),  # a file
}
"""Readers, and the files that show that a folder is theirs."""


def _question(row: Mapping[str, Any], document: Mapping[str, Any]) -> Question:
    name, spans = row["doc_id"], tuple(_spans(row, document))
    answers = tuple(row.get("answers") or filter(None, [row.get("answer")]))
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
        evidence=tuple(row.get("evidence") or ()),
        documents=dict.fromkeys(row.get("gold_titles", ()), 1),
        answers=answers if verbatim else (),
        reference="" if verbatim else "".join(answers[:1]),
        choices=tuple(row.get("choices", ())),
    )


def _spans(row: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Span]:
    name = row["doc_id"]
    if "start" in row:
        yield Span(name, row["start"], row["end"])
    elif "pid" in row:
        text = {p["pid"]: p["text"].strip() for p in document["paragraphs"]}[row["pid"]]
        start = document["text"].index(text)
        yield Span(name, start, start + len(text))
    else:
        yield from _turns(name, document, row.get("spans") or ())


def _turns(
    name: str, document: Mapping[str, Any], spans: Iterable[tuple[int, int]]
) -> Iterator[Span]:
    for first, last in spans:
        turns = document["turn_offsets"]
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
