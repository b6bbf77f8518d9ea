"""Answers of LlamaIndex's query engines."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE, StreamingResponse
from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import BaseModel, ValidationError

from hierindex.errors import HierindexError
from hierindex.llm.record import CUT, Calls, check_said
from hierindex.node import Found
from hierindex.progress import Stopwatch
from hierindex.respond.answer import Answer, Passage, Source, seconds_of, source_of
from hierindex.respond.bounded_tree import SUMMARIES
from hierindex.respond.evidence import scores
from hierindex.respond.extractive import no_answer
from hierindex.respond.extractive_synthesizer import (
    BEST,
    CITATIONS,
    LISTING,
    MISSING,
    PASSAGES,
    REFUSED,
    SCORE,
)
from hierindex.retrieve.listing import Listing
from hierindex.retrieve.named import unknown_names
from hierindex.retrieve.retrieval import Question, Retrieval, embedded
from hierindex.retrieve.retrieved import RetrievedNode, retrieved_of
from hierindex.retrieve.retriever import HierarchyRetriever
from hierindex.store.generations import on_newest
from hierindex.text_node import from_text_node

# Messages of LlamaIndex's prompt helper.
NO_ROOM_SAID = re.compile(r"context size -\d+ was not|Chunk size -?\d+ is not")
NO_ROOM = (
    "the prompt leaves no room for texts in the model's window; shorten the question or the "
    "template, or set context_window= and max_tokens= of the model"
)

# Messages of LlamaIndex's output parsers; the rest may quote a model's answer.
NO_FORM_SAID = re.compile("Could not extract json|Expected at least one tool call")


@dataclass(frozen=True)
class Asked:
    """A question with the nodes that a retriever returned, and the seconds of each stage."""

    query: QueryBundle
    nodes: list[NodeWithScore]
    scores: dict[str, float]
    seconds: dict[str, float]
    embed_model: BaseEmbedding

    @property
    def why(self) -> str | None:
        """The reason for the way of searching, if mode "auto" chose it."""
        return _why(self.nodes)

    def sources(self, nodes: Sequence[NodeWithScore]) -> list[Source]:
        """Convert nodes, of these or others, to sources of an answer."""
        others = [node for node in nodes if node.node_id not in self.scores]
        known = self.scores | scores_of(self.query, others, self.embed_model)
        return [source_of_node(node, known.get(node.node_id)) for node in nodes]


@on_newest
def asked(question: str, retriever: BaseRetriever, embed_model: BaseEmbedding) -> Asked:
    """Embed a question and retrieve nodes for it.

    Raises
    ------
    InputError
        If the question is empty.
    ModelError, HierindexError
        If the embedding model cannot be reached, or fails.
    """
    watch = Stopwatch()
    with watch("embed"):
        text, vector = embedded(question, embed_model)
        query = QueryBundle(text, embedding=vector)
    with watch("search"):
        nodes = retriever.retrieve(query)
        evidence = scores_of(query, nodes, embed_model)
    return Asked(query, nodes, evidence, seconds_of(watch), embed_model)


def source_of_node(found: NodeWithScore, score: float | None = None) -> Source:
    """Convert a retrieved node to a source; its score defaults to that of the search."""
    path = found.path if isinstance(found, RetrievedNode) else ()
    return source_of(Found(from_text_node(found.node), found.score or 0.0), path, score)


def _why(nodes: Sequence[NodeWithScore]) -> str | None:
    return next((node.why for node in nodes if isinstance(node, RetrievedNode)), None)


def scores_of(
    query: QueryBundle, nodes: Sequence[NodeWithScore], model: BaseEmbedding
) -> dict[str, float]:
    """Return how well each node alone answers; nothing without the question's vector."""
    if query.embedding is None:
        return {}
    return scores(retrieved_of(Question(query.query_str, query.embedding), nodes), model)


def answered(
    found: Asked,
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
        pieces = _pieces(response) if response.source_nodes else [no_answer(_retrieval(engine))]
        text = "".join(_shown(pieces, show))
    check_said(name, calls.made)
    metadata = response.metadata or {}
    refused = metadata.get(REFUSED, not found.nodes)
    unknown = dict[str, list[str]]()
    if refused and (retrieval := _retrieval(engine)):
        unknown = unknown_names(found.query.query_str, retrieval.store.snapshot())
    return Answer(
        answer=text,
        answer_kind="extractive" if llm is None else "llm",
        citations=metadata.get(CITATIONS, []),
        sources=found.sources(response.source_nodes),
        usage=calls.usage,
        seconds={**found.seconds, **seconds_of(watch)},
        why=_why(response.source_nodes) or found.why,
        score=metadata.get(SCORE),
        best=metadata.get(BEST) or None,
        refused=refused,
        missing=metadata.get(MISSING, []),
        unknown=unknown,
        listing=Listing(**metadata[LISTING]) if LISTING in metadata else None,
        summaries=metadata.get(SUMMARIES, []),
        cut_off=any(call.finish_reason in CUT for call in calls.made) or None,
        passages=[Passage(**each) for each in metadata.get(PASSAGES, [])],
        calls=calls.made,
    )


def _retrieval(engine: RetrieverQueryEngine) -> Retrieval | None:
    """Return the options of our retriever; None for another one."""
    retriever = engine.retriever
    return retriever if isinstance(retriever, HierarchyRetriever) else None


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
