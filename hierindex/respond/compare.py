"""Answers by LlamaIndex to one question, in one response mode or in several."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE, StreamingResponse
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore, QueryBundle

from hierindex.errors import HierindexError, ModelError
from hierindex.models.adapters import LLMLike, as_llm, with_retries
from hierindex.models.failures import refuses_all
from hierindex.models.record import CUT, Calls, check_said
from hierindex.progress import Stopwatch
from hierindex.respond.answer import (
    Answer,
    Citation,
    Passage,
    Source,
    listing_texts,
    seconds_of,
    sources_of,
)
from hierindex.respond.asking import EXTRACTIVE, MODES, NEED_LLM, WITHOUT_LLM, choose_mode
from hierindex.respond.engine import ReadingOrderEngine, query_engine
from hierindex.respond.evidence import source_scores
from hierindex.respond.extractive import no_answer
from hierindex.retrieve.listing import Listing
from hierindex.retrieve.named import unknown_names
from hierindex.retrieve.retrieval import Retrieved
from hierindex.retrieve.retriever import HierarchyRetriever, retrieved_of
from hierindex.store.generations import on_newest
from hierindex.unsafe import beginning

MAX_ERROR = 300  # characters of another library's error
IN_COMMON = ("sources", "why")  # the same in all modes
ANSWERING = [mode for mode in MODES if mode not in WITHOUT_LLM]


@dataclass(frozen=True)
class Searched:
    """The nodes that a retriever returned for a question, their scores, and seconds by stage."""

    nodes: list[NodeWithScore]
    retrieved: Retrieved
    scores: dict[str, float]
    seconds: dict[str, float]


@on_newest
def searched(question: str, retriever: HierarchyRetriever) -> Searched:
    """Embed a question and retrieve nodes for it.

    Raises
    ------
    InputError
        If the question is empty.
    ModelError, HierindexError
        If the embedding model cannot be reached or fails.
    """
    watch = Stopwatch()
    with watch("embed"):
        asking = retriever.embedded(question)
    with watch("search"):
        nodes = retriever.retrieve(QueryBundle(asking.text, embedding=asking.embedding))
        retrieved = retrieved_of(asking, nodes)
        known = source_scores(retrieved, retriever.embed_model)
    return Searched(nodes, retrieved, known, seconds_of(watch))


def answered(
    found: Searched,
    engine: ReadingOrderEngine,
    llm: LLM | None = None,
    calls: Calls | None = None,
    show: Callable[[str], object] | None = None,
) -> Answer:
    """Return the answer of an engine from retrieved nodes; `llm` is the engine's model, if any.

    `show` is called with each piece of the answer's text, for a stream as soon as it arrives.

    Raises
    ------
    ModelError
        If the language model cannot be reached or refuses.
    HierindexError
        If it fails otherwise, or LlamaIndex cannot use its answer.
    """
    watch, calls, retrieval = Stopwatch(), calls or Calls(), engine.retrieval
    assert retrieval is not None
    question, text = found.retrieved.question, ""
    with watch("respond"):
        try:
            query = QueryBundle(question.text, embedding=question.embedding)
            response = engine.synthesize(query, found.nodes)
            pieces = _pieces(response) if response.source_nodes else [no_answer(retrieval)]
            for piece in pieces:
                text += piece
                if show is not None:
                    show(piece)
        except HierindexError:
            raise
        except ValueError as error:  # LlamaIndex's, of a full window or an answer that is no form
            said = beginning(str(error), MAX_ERROR).rstrip(".")
            raise HierindexError(f"No answer can be made: {said}.") from error
    if llm is not None:
        check_said(f"LLM {llm.metadata.model_name!r}", calls.made)
    metadata, nodes = response.metadata or {}, response.source_nodes
    refused = metadata.get("refused", not found.nodes)
    listing = Listing(**metadata["listing"]) if "listing" in metadata else None
    if isinstance(response, StreamingResponse) and "answer" in metadata:  # with all signs
        before, after = listing_texts(question.text, listing, refused)
        text = f"{before}{metadata['answer']}{after}"
    retrieved, scores = retrieved_of(question, nodes), found.scores
    if any(node.node_id not in scores for node in nodes):  # of other documents
        scores = source_scores(retrieved, retrieval.embed_model)
    return Answer(
        answer=text,
        answer_kind="extractive" if llm is None else "llm",
        citations=list(map(Citation.from_json, metadata.get("citations", []))),
        sources=sources_of(retrieved, scores),
        usage=calls.usage,
        seconds={**found.seconds, **seconds_of(watch)},
        why=retrieved.why,
        score=metadata.get("score"),
        best=metadata.get("best") or None,
        refused=refused,
        missing=metadata.get("missing", []),
        unknown=unknown_names(question.text, retrieval.store.snapshot()) if refused else {},
        listing=listing,
        unsupported=metadata.get("unsupported", []),
        cut_off=any(call.finish_reason in CUT for call in calls.made) or None,
        passages=list(map(Passage.from_json, metadata.get("passages", []))),
        calls=calls.made,
    )


def _pieces(response: RESPONSE_TYPE) -> Iterable[str]:
    """Return the pieces of a stream, or the whole text, which may be empty."""
    if isinstance(response, StreamingResponse):
        return response.response_gen
    return [str(response)] if getattr(response, "response", None) else []


@dataclass(frozen=True)
class Attempt:
    """The answer of one response mode, or the error that it failed with."""

    mode: str
    answer: Answer | None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values, except fields that are the same in all modes."""
        if self.answer is None:
            return {"mode": self.mode, "error": self.error}
        data = self.answer.to_json()
        data["seconds"] = data["seconds"]["respond"]
        return {"mode": self.mode, **{k: v for k, v in data.items() if k not in IN_COMMON}}


@dataclass(frozen=True)
class Comparison:
    """Answers to one question in several response modes, from the same nodes.

    Attributes
    ----------
    question : str
    sources : list of Source
        The retrieved nodes.
    attempts : list of Attempt
        One for each mode, with its `answer` or, if it failed, the message in `error`.
    seconds : dict of str to float
        Time of the retrieval, by stage.
    why : str, optional
        As in `Answer`.
    """

    question: str
    sources: list[Source]
    attempts: list[Attempt]
    seconds: dict[str, float]
    why: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a dict for `json.dumps`, with `attempts` under the key "modes"."""
        return {
            "question": self.question,
            **({} if self.why is None else {"why": self.why}),
            "sources": [source.to_json() for source in self.sources],
            "modes": [attempt.to_json() for attempt in self.attempts],
            "seconds": self.seconds,
        }


@on_newest
def compare(
    question: str,
    as_retriever: Callable[[], HierarchyRetriever],
    *,
    llm: LLMLike | None = None,
    response_modes: Sequence[str] | None = None,
    synthesizer: Mapping[str, Any] | None = None,
) -> Comparison:
    """Answer a question in several response modes.

    Parameters
    ----------
    question : str
    as_retriever : callable
        Called once, so every mode gets the same nodes.
    llm : LLM or callable, optional
    response_modes : sequence of str, optional
        By default all modes that answer; without an LLM, "extractive" only.
    synthesizer : dict, optional
        As in `HierarchicalIndex.as_query_engine`; each mode takes the options that it supports.

    Raises
    ------
    InputError
        If a mode is unknown, an LLM is needed and missing, or an option is supported by no mode.
    ModelError
        If the LLM cannot be used. Any other failure is recorded in its mode's attempt.
    """
    llm = as_llm(llm)
    default = [EXTRACTIVE] if llm is None else ANSWERING
    modes = dict.fromkeys(choose_mode(mode, llm) for mode in response_modes or default)
    retriever = as_retriever()
    found = searched(question, retriever)
    shared, attempts = None if llm is None else with_retries(llm), list[Attempt]()
    for mode in modes:
        calls = Calls()
        engine = query_engine(
            retriever,
            retriever.embed_model,
            llm=shared and with_retries(shared, calls),
            response_mode=mode,
            **(synthesizer or {}),
        )
        try:
            model = llm if mode in NEED_LLM else None
            attempts.append(Attempt(mode, answered(found, engine, model, calls)))
        except HierindexError as error:
            if isinstance(error, ModelError) and refuses_all(error.__cause__):
                raise  # all modes would fail
            attempts.append(Attempt(mode, None, str(error)))
    sources = sources_of(found.retrieved, found.scores)
    return Comparison(question, sources, attempts, found.seconds, found.retrieved.why)
