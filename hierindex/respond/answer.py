"""Answers with their sources, usage and timings."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from pydantic.json_schema import SkipJsonSchema

from hierindex.models.record import Call, Usage
from hierindex.models.tokenizer import llm_tokenizer
from hierindex.node import SHOWN, Found
from hierindex.progress import Stopwatch
from hierindex.respond.citation import Citation
from hierindex.retrieve.listing import Listing
from hierindex.retrieve.retrieval import Retrieved
from hierindex.text.display import answer_html, answer_text, counted
from hierindex.unsafe import beginning, visible


@dataclass(frozen=True)
class Source:
    """A node that the answer is based on.

    `citations` are its places in documents, each with the part of the text that stands there, if it
    is verbatim. `path` are the ids from its parent up to the root. `title` is the node's own, not
    its document's. `score` in [0, 1] is the probability that the node
    answers, whatever the way of asking; `raw_score` is that of the search, see
    `HierarchyRetriever`.
    """

    id: str
    level: int
    title: str
    score: float
    raw_score: float
    text: str
    citations: list[Citation]
    path: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers."""
        return {**vars(self), "citations": [each.to_json() for each in self.citations]}


@dataclass(frozen=True)
class Passage:
    """A passage that an answer without a language model quotes.

    `text` is verbatim, and `best` the part of it that answers best, "" if none does. `lead` is what
    the answer has before it, such as the head of a table; it is not part of the quote. `title` is
    that of the document, or else its id. `citation` is the place of the text, with those of copies
    as `also`.
    """

    text: str
    lead: str
    best: str
    title: str
    citation: Citation

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the passage that `to_json` returned."""
        return cls(**{**data, "citation": Citation.from_json(data["citation"])})

    def to_json(self) -> dict[str, Any]:
        """Return texts, and the citation as a dictionary."""
        return {**vars(self), "citation": self.citation.to_json()}


@dataclass(frozen=True)
class Answer:
    """An answer to a question; `print` shows it with the places of its passages.

    `[n]` in the text refers to `citations[n - 1]`, and in an answer without a language model to
    `passages[n - 1]`. In the answer of a language model, a citation is the sentence of the passage
    nearest to the sentence that cites it, and `supported` says whether it is near enough and has
    its facts; "[n?]" marks those that are not. "[n*]" marks what the model did not cite and
    hierindex found; a stream shows neither. `unsupported` are the sentences without a citation that
    no passage supports, marked "[?]". See `ExtractiveSynthesizer` for
    other answers, which have a `score`, and as `best` the part of the first passage that matches
    best. `why` is the reason for searching chunks or for an outline, if mode "auto" chose.
    `refused` is True if nothing that was searched answers. `missing` are the numbers, names, quoted
    words and other important words of the question that an extractive answer lacks. If it is
    refused, `unknown` has the names of files in the question that no document has, each with the
    ids of documents with similar names. If the question counts or lists, `listing` has all
    documents with its words, and the text says so. `cut_off` is True if the model reached its limit
    of tokens, so that the answer is incomplete, and None otherwise. `calls` are the prompts sent to
    a language model, with its answers.
    """

    answer: str
    answer_kind: Literal["extractive", "llm"]
    citations: list[Citation]
    sources: list[Source]
    usage: Usage
    seconds: dict[str, float]
    why: str | None = None
    score: float | None = None
    best: str | None = None
    refused: bool = False
    missing: list[str] = field(default_factory=list)
    unknown: dict[str, list[str]] = field(default_factory=dict)
    listing: Listing | None = None
    cut_off: Literal[True] | None = None
    unsupported: list[str] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    calls: SkipJsonSchema[list[Call]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, without calls and without None."""
        data = asdict(self) | {
            name: [each.to_json() for each in getattr(self, name)]
            for name in ("citations", "sources", "passages")
        }
        del data["calls"]
        return {key: value for key, value in data.items() if value is not None}

    def __str__(self) -> str:
        """Return the text with the places of its passages."""
        return visible(answer_text(self.to_json()), lines=True)

    def __repr__(self) -> str:
        """Return the beginning of the text, and what it is made of."""
        documents = {each.document for each in self.citations} - {""}
        n = f"{counted(len(self.citations), 'passage')} of {counted(len(documents), 'document')}"
        score = None if self.score is None else f"score={self.score:.2f}"
        facts = repr(beginning(self.answer, SHOWN)), "refused" if self.refused else n, score
        return f"Answer({', '.join(filter(None, facts))})"

    def _repr_html_(self) -> str:
        return answer_html(self.to_json())


def listing_said(listing: Listing | None, refused: bool) -> str:
    """Return what the text of an answer ends with if there is a listing."""
    if listing is None:
        return ""
    partial = "" if refused or not listing.chunks else "This answer may not be complete. "
    return f"\n\n{partial}{listing.text}"


def sources_of(retrieved: Retrieved, scores: Mapping[str, float]) -> list[Source]:
    """Return what was found as the sources of an answer, with their scores by id."""
    return [
        source_of(each, retrieved.path(each.node), scores.get(each.node.id))
        for each in retrieved.found
    ]


def source_of(found: Found, path: Sequence[str] = (), score: float | None = None) -> Source:
    """Return a source of an answer; its score defaults to that of the search."""
    node = found.node
    quotes = {span: quote for quote in node.quotes for span in quote.sources}
    return Source(
        id=node.id,
        level=node.level,
        title=node.title,
        score=round(found.score if score is None else score, 6),
        raw_score=round(found.score, 6),
        text=node.text,
        citations=[
            Citation.from_json({**span.to_json(), "quote": node.text[q.at : q.to] * q.verbatim})
            for span, q in quotes.items()
        ],
        path=[*path],
    )


def outline_json(outlined: Retrieved) -> dict[str, Any]:
    """Return the nodes of an outline as sources of an answer, and the sum of their tokens."""
    tokens = llm_tokenizer()
    return {
        "nodes": [source.to_json() for source in sources_of(outlined, {})],
        "tokens": sum(len(tokens(node.text)) for node, _ in outlined.found),
    }


def seconds_of(watch: Stopwatch) -> dict[str, float]:
    """Return the seconds of each stage."""
    return {timing.stage: round(timing.seconds, 3) for timing in watch.timings}
