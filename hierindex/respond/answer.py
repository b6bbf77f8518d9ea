"""Answers with their sources and citations, usage and timings."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from pydantic.json_schema import SkipJsonSchema

from hierindex.models.record import Call, Usage, llm_tokenizer
from hierindex.node import SHOWN, Node
from hierindex.progress import Stopwatch
from hierindex.retrieve.listing import Listing, asked_of
from hierindex.retrieve.retrieval import Retrieved
from hierindex.text.display import answer_html, answer_text, counted
from hierindex.unsafe import beginning, visible


@dataclass(frozen=True, repr=False)
class Citation:
    """A span of a document, cited by an answer or by a `Source`; unknown fields are empty.

    Attributes
    ----------
    document : str
        The document's id; "" if the position is unknown.
    start, end : int
        Character offsets in the document's text as it was read; `end` is exclusive.
    page : int, optional
    page_label, anchor : str
        As in `Span`.
    section : tuple of str
        Titles above the passage, the outermost first.
    title : str
        The document's title, if it has one.
    node : str
        In a language model's answer, the id of the passage's node.
    quote : str
        The text from `start` to `end`, verbatim; "" if a model wrote the node's text.
    supported : bool, optional
        Whether the cited text supports the sentence of the answer; None if this was not checked.
    by : {"model", "hierindex"}, optional
        "model" if the language model cited it, "hierindex" for extractive answers and for citations
        that were added to sentences without one; None for the citations of a `Source`.
    also : tuple of Citation
        Other positions of the same text.
    """

    document: str = ""
    start: int = 0
    end: int = 0
    page: int | None = None
    page_label: str = ""
    section: tuple[str, ...] = ()
    anchor: str = ""
    title: str = ""
    node: str = ""
    quote: str = ""
    supported: bool | None = None
    by: Literal["model", "hierindex"] | None = None
    also: tuple["Citation", ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Restore a citation from the dict that `to_json` returns, as in a response's metadata."""
        also = tuple(map(Citation.from_json, data.get("also", ())))
        return cls(**{**data, "section": tuple(data.get("section", ())), "also": also})

    def to_json(self) -> dict[str, Any]:
        """Return the non-empty fields as a dict for `json.dumps`.

        >>> Citation("a.md", 3, 9, section=("Results",), quote="It ran").to_json()
        {'document': 'a.md', 'start': 3, 'end': 9, 'section': ['Results'], 'quote': 'It ran'}
        """
        lists = {"section": [*self.section], "also": [each.to_json() for each in self.also]}
        unknown = () if self.document else ("start", "end")
        data = {key: value for key, value in vars(self).items() if key not in unknown} | lists
        return {key: value for key, value in data.items() if value not in (None, "", [])}

    def __repr__(self) -> str:
        """Return the fields that are not empty."""
        return f"Citation({', '.join(f'{key}={value!r}' for key, value in self.to_json().items())})"


@dataclass(frozen=True)
class Source:
    """A node that an answer is based on.

    Attributes
    ----------
    id : str
    level : int
    title : str
        Title of the node, not of its document.
    score : float
        Probability in [0, 1] that the node answers the question, comparable between searches. For
        nodes of an outline, and for nodes retrieved without an answer, it equals `raw_score`.
    raw_score : float
        Score from the search. Its meaning depends on the options; see `HierarchyRetriever`.
    text : str
    citations : list of Citation
        The node's sources in documents, each with a `quote` if the node's text repeats it verbatim.
    path : list of str
        Ids of the ancestors, starting with the parent with the highest weight.
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
        """Return the fields as a dict for `json.dumps`."""
        return {**vars(self), "citations": [each.to_json() for each in self.citations]}


@dataclass(frozen=True)
class Passage:
    """A passage that an extractive answer quotes.

    Attributes
    ----------
    text : str
        Verbatim text from the document.
    lead : str
        Text shown before it, such as the header of a table; not part of the quote.
    best : str
        The part of `text` that answers best, or `lead` if metadata of the document answer, or "".
    title : str
        Title of the document, or else its id.
    citation : Citation
        Position of `text`; `citation.also` has the positions of its copies.
    """

    text: str
    lead: str
    best: str
    title: str
    citation: Citation

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Restore a passage from the dict that `to_json` returns."""
        return cls(**{**data, "citation": Citation.from_json(data["citation"])})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a dict, `citation` included."""
        return {**vars(self), "citation": self.citation.to_json()}


@dataclass(frozen=True)
class Answer:
    """An answer to a question; `print` shows it with the source of each passage.

    In a language model's answer, "[n]" is a citation, "[n?]" one that does not support its
    sentence, "[n*]" one that hierindex added to a sentence without a citation, and "[?]" a sentence
    that no passage supports. Of these, streamed text contains only "[n]".

    Attributes
    ----------
    answer : str
        The text, with "[n]" for `citations[n - 1]`.
    answer_kind : {"extractive", "llm"}
        Whether the answer quotes passages (see `ExtractiveSynthesizer`) or was written by an LLM.
    citations : list of Citation
        One for each "[n]". In an LLM's answer, it quotes the passage's sentence that is most
        similar to the citing sentence; `supported` says whether the two are similar enough
        and have the same names and numbers.
    sources : list of Source
        The retrieved nodes, best first.
    usage : Usage
    seconds : dict of str to float
        By stage.
    why : str, optional
        Why the chunks were searched or an outline was chosen; None if the options decided it, or if
        a quoted answer found no node.
    score : float, optional
        For an extractive answer: the probability that it answers the question.
    best : str, optional
        For extractive answers: the part of the first passage that best answers the question.
    refused : bool
        True if no searched text answers the question. An LLM's answer is only refused if no node
        was found.
    missing : list of str
        For extractive answers: words of the question that were not found. These are numbers, names
        and quoted words that are neither in the passages nor in the titles above them, and other
        important words that no node about the question's subject contains.
    unknown : dict of str to list of str
        For extractive and refused answers: file names in the question that match no document and
        occur in no passage, each with the ids of documents with similar names.
    listing : Listing, optional
        For "which documents" and "how many" questions: the documents that contain the question's
        words.
    cut_off : True, optional
        True if the model reached its token limit, so that the answer is incomplete, else None.
    unsupported : list of str
        The sentences marked "[?]".
    passages : list of Passage
        For extractive answers: `passages[n - 1]` is quoted for "[n]".
    calls : list of Call
        The prompts sent to a language model, with its completions.
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
        """Return the fields as a dict for `json.dumps`, except `calls` and None values."""
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
        """Return the beginning of the text, and the numbers of passages or citations."""
        documents = {each.document for each in self.citations} - {""}
        n = f"{counted(len(self.citations), 'passage')} of {counted(len(documents), 'document')}"
        score = None if self.score is None else f"score={self.score:.2f}"
        facts = repr(beginning(self.answer, SHOWN)), "refused" if self.refused else n, score
        return f"Answer({', '.join(filter(None, facts))})"

    def _repr_html_(self) -> str:
        return answer_html(self.to_json())


def listing_texts(question: str, listing: Listing | None, refused: bool) -> tuple[str, str]:
    """Return the text that a listing adds before an answer, and the text that it adds after it.

    The list comes first if the question asks for it: it is complete, other than the answer.
    """
    if listing is None:
        return "", ""
    if asked_of(question).for_several and not refused:
        return f"{listing.text}\n\n", ""
    partial = "" if refused or not listing.words else "This answer may not be complete. "
    return "", f"\n\n{partial}{listing.text}"


def sources_of(retrieved: Retrieved, scores: Mapping[str, float]) -> list[Source]:
    """Convert retrieved nodes to the sources of an answer, with their scores by id if known."""
    return [
        Source(
            id=node.id,
            level=node.level,
            title=node.title,
            score=round(scores.get(node.id, score), 6),
            raw_score=round(score, 6),
            text=node.text,
            citations=_citations(node),
            path=retrieved.path(node),
        )
        for node, score in retrieved.found
    ]


def _citations(node: Node) -> list[Citation]:
    quotes = {span: quote for quote in node.quotes for span in quote.sources}
    return [
        Citation.from_json({**span.to_json(), "quote": node.text[q.at : q.to] * q.verbatim})
        for span, q in quotes.items()
    ]


def outline_json(outlined: Retrieved) -> dict[str, Any]:
    """Return the nodes of an outline like sources of an answer, and the sum of their tokens."""
    tokens = llm_tokenizer()
    return {
        "nodes": [source.to_json() for source in sources_of(outlined, {})],
        "tokens": sum(len(tokens(node.text)) for node, _ in outlined.found),
    }


def seconds_of(watch: Stopwatch) -> dict[str, float]:
    """Return the seconds of each stage."""
    return {stage: round(seconds, 3) for stage, seconds in watch.seconds.items()}
