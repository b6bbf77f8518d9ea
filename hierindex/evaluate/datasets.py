"""Evaluation data: documents, and questions with gold."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Literal, get_args

from llama_index.core.schema import Document

from hierindex.core.arguments import require
from hierindex.errors import InputError
from hierindex.record import Span

Part = Literal["all", "tuning", "held-out"]
PARTS: tuple[Part, ...] = get_args(Part)


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

    Only the texts of the documents are evaluated: metadata would count towards the budgets of some
    ways to retrieve and not of others.

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
        texts = {document.doc_id: document.text for document in self.documents}
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


def _part_of(group: str) -> Part:
    thirds = int(sha256(group.encode()).hexdigest(), 16) % 3
    return "held-out" if thirds == 0 else "tuning"
