"""Answers with their sources, usage and timings."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE, StreamingResponse
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import SkipJsonSchema

from hierindex.embed.embedder import named_errors
from hierindex.errors import HierindexError, InputError
from hierindex.llm.record import CUT, Call, Calls, Usage, check_said
from hierindex.progress import Stopwatch
from hierindex.record import NodeRecord
from hierindex.respond.bounded_tree import SUMMARIES
from hierindex.respond.evidence import scores
from hierindex.respond.extractive_synthesizer import (
    BEST,
    CITATIONS,
    MISSING,
    REFUSED,
    SCORE,
    no_answer,
)
from hierindex.retrieve.named import unknown_names
from hierindex.retrieve.retrieved import RetrievedNode
from hierindex.retrieve.selection import token_counter
from hierindex.store.generations import on_newest
from hierindex.store.vector_store import HierarchyStore

# Messages of LlamaIndex's prompt helper.
NO_ROOM_SAID = re.compile(r"context size -\d+ was not|Chunk size -?\d+ is not")
NO_ROOM = (
    "the prompt leaves no room for texts in the model's window; shorten the question or the "
    "template, or set context_window= and max_tokens= of the model"
)

# Messages of LlamaIndex's output parsers; the rest may quote a model's answer.
NO_FORM_SAID = re.compile("Could not extract json|Expected at least one tool call")


@dataclass(frozen=True)
class Source:
    """A node that the answer is based on.

    `citations` are its spans in documents, `path` the ids from its parent up to the root. `title`
    is the node's own, not its document's. `score` in [0, 1] is the probability that the node
    answers, whatever the way of asking; `raw_score` is that of the search, see
    `HierarchyRetriever`.
    """

    id: str
    level: int
    title: str
    score: float
    raw_score: float
    text: str
    citations: list[dict[str, Any]]
    path: list[str]


@dataclass(frozen=True)
class Answer:
    """An answer to a question.

    `[n]` in the text refers to `citations[n - 1]`. In the answer of a language model, a
    citation is the sentence of the passage nearest to the sentence that cites it, and
    `supported` says whether that is near enough and the numbers are the passage's; "[n?]" marks
    those that are not. See
    `ExtractiveSynthesizer` for other answers, which have a `score` and the `best` of their
    sentences. `why` is the reason for searching chunks or for an outline, if mode "auto" chose.
    `refused` is True if nothing that was searched answers. `missing` are the numbers, names and
    quoted words of the question that an extractive answer has not. If it is refused, `unknown`
    has the names of files in the question that no document has, each with the ids of documents
    with similar names. `summaries` are the ids of summaries that a language model read instead
    of their children, which are among the sources. `cut_off` is True if the model reached its limit
    of tokens, so that the answer is incomplete, and None otherwise. `calls` are the prompts sent
    to a language model, with its answers.
    """

    answer: str
    answer_kind: Literal["extractive", "llm"]
    citations: list[dict[str, Any] | None]
    sources: list[Source]
    usage: Usage
    seconds: dict[str, float]
    why: str | None = None
    score: float | None = None
    best: str | None = None
    refused: bool = False
    missing: list[str] = field(default_factory=list)
    unknown: dict[str, list[str]] = field(default_factory=dict)
    summaries: list[str] = field(default_factory=list)
    cut_off: Literal[True] | None = None
    calls: SkipJsonSchema[list[Call]] = field(default_factory=list, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers, without calls and without None."""
        data = asdict(self)
        del data["calls"]
        return {key: value for key, value in data.items() if value is not None}


@dataclass(frozen=True)
class Retrieved:
    """The nodes retrieved for a question, their `scores` by id, and the seconds of each stage."""

    query: QueryBundle
    nodes: list[NodeWithScore]
    scores: dict[str, float]
    seconds: dict[str, float]
    embed_model: BaseEmbedding

    @property
    def why(self) -> str | None:
        """The reason for the way of searching, if mode "auto" chose it."""
        return next((node.why for node in self.nodes if isinstance(node, RetrievedNode)), None)

    def sources(self, nodes: Sequence[NodeWithScore]) -> list[Source]:
        """Convert nodes, of these or others, to sources of an answer."""
        others = [node for node in nodes if node.node_id not in self.scores]
        known = self.scores | scores(self.query, others, self.embed_model)
        return [source_of(node, known.get(node.node_id)) for node in nodes]


@on_newest
def retrieved(question: str, retriever: BaseRetriever, embed_model: BaseEmbedding) -> Retrieved:
    """Embed a question and retrieve nodes for it.

    Raises
    ------
    InputError
        If the question is empty.
    ModelError, HierindexError
        If the embedding model cannot be reached, or fails.
    """
    if not question.strip():
        raise InputError("The question is empty; pass some text.")
    question = question.encode("utf-8", "replace").decode()  # a shell passes on any byte
    watch = Stopwatch()
    with watch("embed"), named_errors(embed_model):
        query = QueryBundle(question, embedding=embed_model.get_query_embedding(question))
    with watch("search"):
        nodes = retriever.retrieve(query)
        evidence = scores(query, nodes, embed_model)
    return Retrieved(query, nodes, evidence, _seconds(watch), embed_model)


def answered(
    found: Retrieved,
    engine: RetrieverQueryEngine,
    llm: LLM | None = None,
    calls: Calls | None = None,
    show: Callable[[str], object] | None = None,
) -> Answer:
    """Return the answer of an engine from retrieved nodes; `llm` is the engine's model, if any.

    `show` is called with each piece of the answer's text; of a stream, as soon as it comes.

    Raises
    ------
    ModelError
        If the language model cannot be reached or refuses.
    HierindexError
        If it fails otherwise, or LlamaIndex cannot use its answer.
    """
    watch, calls = Stopwatch(), calls or Calls()
    name = "" if llm is None else f"LLM {llm.metadata.model_name!r}"
    with watch("respond"), _llama_index_errors(name, _form_of(engine, llm)):
        response = engine.synthesize(found.query, found.nodes)
        pieces = _pieces(response) if response.source_nodes else [no_answer(engine.retriever)]
        text = "".join(_shown(pieces, show))
    check_said(name, calls.made)
    metadata = response.metadata or {}
    refused = metadata.get(REFUSED, not found.nodes)
    store = getattr(engine.retriever, "store", None) if refused else None
    unknown = dict[str, list[str]]()
    if isinstance(store, HierarchyStore):
        unknown = unknown_names(found.query.query_str, store.snapshot())
    return Answer(
        answer=text,
        answer_kind="extractive" if llm is None else "llm",
        citations=metadata.get(CITATIONS, []),
        sources=found.sources(response.source_nodes),
        usage=calls.usage,
        seconds={**found.seconds, **_seconds(watch)},
        why=replace(found, nodes=response.source_nodes).why or found.why,
        score=metadata.get(SCORE),
        best=metadata.get(BEST) or None,
        refused=refused,
        missing=metadata.get(MISSING, []),
        unknown=unknown,
        summaries=metadata.get(SUMMARIES, []),
        cut_off=any(call.finish_reason in CUT for call in calls.made) or None,
        calls=calls.made,
    )


def _seconds(watch: Stopwatch) -> dict[str, float]:
    return {timing.stage: round(timing.seconds, 3) for timing in watch.timings}


def _pieces(response: RESPONSE_TYPE) -> Iterable[str]:
    """Return the pieces of a stream, or the whole text, which is empty if there is no answer."""
    if isinstance(response, StreamingResponse):
        return response.response_gen
    return [str(response)] if getattr(response, "response", None) else []


def _shown(pieces: Iterable[str], show: Callable[[str], object] | None) -> Iterator[str]:
    for piece in pieces:
        if show is not None:
            show(piece)
        yield piece


def _form_of(engine: RetrieverQueryEngine, llm: LLM | None) -> type[BaseModel] | None:
    """Return the output class of structured answers, or None for text."""
    of_model = llm.output_cls if isinstance(llm, StructuredLLM) else None
    return of_model or getattr(engine._response_synthesizer, "_output_cls", None)


@contextmanager
def _llama_index_errors(model: str, form: type[BaseModel] | None) -> Iterator[None]:
    """Convert LlamaIndex's errors about full windows and unusable structured answers."""
    try:
        yield
    except ValidationError as error:  # its message quotes the model's answer
        if form is None or error.title != form.__name__:
            raise
        names = ", ".join(sorted({str(e["loc"][0]) for e in error.errors() if e["loc"]}))
        raise HierindexError(f"{model} did not fill in the form; wrong fields: {names}.") from error
    except ValueError as error:
        if NO_ROOM_SAID.search(str(error)):
            raise HierindexError(f"No answer can be made: {NO_ROOM}.") from error
        if form is not None and NO_FORM_SAID.match(str(error)):
            raise HierindexError(f"{model} did not fill in the form.") from error
        raise


def outline_json(nodes: Sequence[NodeWithScore]) -> dict[str, Any]:
    """Return the nodes of an outline as sources of an answer, and the sum of their tokens."""
    return {
        "nodes": [asdict(source_of(node)) for node in nodes],
        "tokens": sum(map(token_counter(), nodes)),
    }


def source_of(found: NodeWithScore, score: float | None = None) -> Source:
    """Convert a retrieved node to a source of an answer; its score is by default that found."""
    record = NodeRecord.from_metadata(found.metadata)
    return Source(
        id=found.node_id,
        level=record.level,
        title=record.title,
        score=round(found.get_score() if score is None else score, 6),
        raw_score=round(found.get_score(), 6),
        text=found.get_content(MetadataMode.NONE),
        citations=[span.to_json() for span in record.citations],
        path=found.path if isinstance(found, RetrievedNode) else [],
    )
