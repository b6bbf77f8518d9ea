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
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import BaseModel, ValidationError

from hierindex.errors import HierindexError
from hierindex.models.record import CUT, Calls, check_said
from hierindex.node import Found
from hierindex.progress import Stopwatch
from hierindex.respond.answer import Answer, Passage, Source, seconds_of, source_of
from hierindex.respond.citation import Citation
from hierindex.respond.evidence import scores
from hierindex.respond.extractive import no_answer
from hierindex.respond.reading import ReadingOrderEngine
from hierindex.retrieve.listing import Listing
from hierindex.retrieve.named import unknown_names
from hierindex.retrieve.retrieval import Retrieved, embedded
from hierindex.retrieve.retrieved import RetrievedNode, retrieved_of
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

    retrieved: Retrieved
    nodes: list[NodeWithScore]
    scores: dict[str, float]
    seconds: dict[str, float]
    embed_model: BaseEmbedding

    def sources(self, nodes: Sequence[NodeWithScore]) -> list[Source]:
        """Convert nodes, of these or others, to sources of an answer."""
        known = self.scores
        if any(node.node_id not in known for node in nodes):
            known = scores(retrieved_of(self.retrieved.question, nodes), self.embed_model)
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
        asking = embedded(question, embed_model)
    with watch("search"):
        nodes = retriever.retrieve(QueryBundle(asking.text, embedding=asking.embedding))
        retrieved = retrieved_of(asking, nodes)
        known = scores(retrieved, embed_model)
    return Asked(retrieved, nodes, known, seconds_of(watch), embed_model)


def source_of_node(found: NodeWithScore, score: float | None = None) -> Source:
    """Convert a retrieved node to a source; its score defaults to that of the search."""
    path = found.path if isinstance(found, RetrievedNode) else ()
    return source_of(Found(from_text_node(found.node), found.score or 0.0), path, score)


def answered(
    found: Asked,
    engine: ReadingOrderEngine,
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
    question, retrieval = found.retrieved.question, engine.retrieval
    with watch("respond"), _llama_index_errors(name, _form_of(engine, llm)):
        query = QueryBundle(question.text, embedding=question.embedding)
        response = engine.synthesize(query, found.nodes)
        pieces = _pieces(response) if response.source_nodes else [no_answer(retrieval)]
        text = ""
        for piece in pieces:
            text += piece
            if show is not None:
                show(piece)
    check_said(name, calls.made)
    metadata, nodes = response.metadata or {}, response.source_nodes
    refused = metadata.get("refused", not found.nodes)
    unknown = dict[str, list[str]]()
    if refused and retrieval:
        unknown = unknown_names(question.text, retrieval.store.snapshot())
    return Answer(
        answer=text,
        answer_kind="extractive" if llm is None else "llm",
        citations=list(map(Citation.from_json, metadata.get("citations", []))),
        sources=found.sources(nodes),
        usage=calls.usage,
        seconds={**found.seconds, **seconds_of(watch)},
        why=retrieved_of(question, nodes).why,
        score=metadata.get("score"),
        best=metadata.get("best") or None,
        refused=refused,
        missing=metadata.get("missing", []),
        unknown=unknown,
        listing=Listing(**metadata["listing"]) if "listing" in metadata else None,
        unsupported=metadata.get("unsupported", []),
        cut_off=any(call.finish_reason in CUT for call in calls.made) or None,
        passages=list(map(Passage.from_json, metadata.get("passages", []))),
        calls=calls.made,
    )


def _pieces(response: RESPONSE_TYPE) -> Iterable[str]:
    """Return the pieces of a stream, or the whole text, which is empty if there is no answer."""
    if isinstance(response, StreamingResponse):
        return response.response_gen
    return [str(response)] if getattr(response, "response", None) else []


def _form_of(engine: ReadingOrderEngine, llm: LLM | None) -> type[BaseModel] | None:
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
