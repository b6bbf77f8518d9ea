"""Query engines over a retriever, with or without a language model, and their answers."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import RESPONSE_TYPE, StreamingResponse
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.response_synthesizers import (
    Accumulate,
    BaseSynthesizer,
    CompactAndRefine,
    Generation,
    Refine,
    SimpleSummarize,
    TreeSummarize,
)
from llama_index.core.response_synthesizers.compact_and_accumulate import CompactAndAccumulate
from llama_index.core.response_synthesizers.context_only import ContextOnly
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.settings import Settings
from pydantic import BaseModel, ValidationError

from hierindex.errors import HierindexError, InputError
from hierindex.models.functions import LLMLike, as_llm
from hierindex.models.llm import with_retries
from hierindex.models.record import CUT, Calls, check_said
from hierindex.progress import Stopwatch
from hierindex.respond.answer import Answer, Passage, Source, listing_said, seconds_of, sources_of
from hierindex.respond.asking import EXTRACTIVE, WITHOUT_LLM, choose_mode
from hierindex.respond.bounded_tree import BoundedTreeSummarize
from hierindex.respond.citation import Citation
from hierindex.respond.citation_check import TEMPLATES, CitationCheck, PassageHelper
from hierindex.respond.evidence import scores
from hierindex.respond.extractive import no_answer
from hierindex.respond.extractive_synthesizer import ExtractiveSynthesizer
from hierindex.respond.query_engine import ReadingOrderEngine
from hierindex.retrieve.listing import Listing
from hierindex.retrieve.named import unknown_names
from hierindex.retrieve.retrieval import Retrieved, embedded
from hierindex.retrieve.retriever import retrieved_of
from hierindex.store.generations import on_newest

# Messages of LlamaIndex's prompt helper.
NO_ROOM_SAID = re.compile(r"context size -\d+ was not|Chunk size -?\d+ is not")
NO_ROOM = (
    "the prompt leaves no room for texts in the model's window; shorten the question or the "
    "template, or set context_window= and max_tokens= of the model"
)

# Messages of LlamaIndex's output parsers; the rest may quote a model's answer.
NO_FORM_SAID = re.compile("Could not extract json|Expected at least one tool call")

SYNTHESIZERS: dict[str, type[BaseSynthesizer]] = {
    EXTRACTIVE: ExtractiveSynthesizer,
    "refine": Refine,
    "compact": CompactAndRefine,
    "simple_summarize": SimpleSummarize,
    "tree_summarize": BoundedTreeSummarize,
    "generation": Generation,
    "accumulate": Accumulate,
    "compact_accumulate": CompactAndAccumulate,
    "no_text": NoText,
    "context_only": ContextOnly,
}
NOT_TAKEN = frozenset({"llm", "embed_model", "callback_manager"})  # passed separately
FIELDS = frozenset({"context_str", "query_str", "existing_answer", "context_msg"})
"""Template fields that LlamaIndex fills, without `context_messages` of multimodal ones."""
CANNOT_STREAM = (Accumulate, NoText, ContextOnly)
CITING = (Refine, SimpleSummarize, TreeSummarize, Accumulate)


@dataclass(frozen=True)
class Asked:
    """A question with the nodes that a retriever returned, and the seconds of each stage."""

    retrieved: Retrieved
    nodes: list[NodeWithScore]
    scores: dict[str, float]
    seconds: dict[str, float]
    embed_model: BaseEmbedding

    def sources(self, nodes: Sequence[NodeWithScore]) -> list[Source]:
        """Convert nodes, whether retrieved for the question or not, to sources of an answer."""
        retrieved, known = retrieved_of(self.retrieved.question, nodes), self.scores
        if any(node.node_id not in known for node in nodes):
            known = scores(retrieved, self.embed_model)
        return sources_of(retrieved, known)


@on_newest
def asked(question: str, retriever: BaseRetriever, embed_model: BaseEmbedding) -> Asked:
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
        asking = embedded(question, embed_model)
    with watch("search"):
        nodes = retriever.retrieve(QueryBundle(asking.text, embedding=asking.embedding))
        retrieved = retrieved_of(asking, nodes)
        known = scores(retrieved, embed_model)
    return Asked(retrieved, nodes, known, seconds_of(watch), embed_model)


def answered(
    found: Asked,
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
    watch, calls = Stopwatch(), calls or Calls()
    name = "" if llm is None else f"LLM {llm.metadata.model_name!r}"
    question, retrieval = found.retrieved.question, engine.retrieval
    of_model = llm.output_cls if isinstance(llm, StructuredLLM) else None
    form = of_model or getattr(engine._response_synthesizer, "_output_cls", None)
    with watch("respond"), _llama_index_errors(name, form):
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
    listing = Listing(**metadata["listing"]) if "listing" in metadata else None
    if isinstance(response, StreamingResponse) and "answer" in metadata:  # with all signs
        text = f"{metadata['answer']}{listing_said(listing, refused)}"
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


@contextmanager
def _llama_index_errors(model: str, form: type[BaseModel] | None) -> Iterator[None]:
    """Convert LlamaIndex's errors about full windows and unusable structured answers."""
    try:
        yield
    except ValidationError as error:  # its message quotes the model's answer
        if form is None or error.title != form.__name__:
            raise
        names = ", ".join(sorted({str(e["loc"][0]) for e in error.errors() if e["loc"]}))
        raise HierindexError(
            f"{model} did not return a valid structured answer; wrong fields: {names}."
        ) from error
    except ValueError as error:
        if NO_ROOM_SAID.search(str(error)):
            raise HierindexError(f"No answer can be made: {NO_ROOM}.") from error
        if form is not None and NO_FORM_SAID.match(str(error)):
            raise HierindexError(f"{model} did not return a valid structured answer.") from error
        raise


def query_engine(
    retriever: BaseRetriever,
    embed_model: BaseEmbedding,
    *,
    llm: LLMLike | None = None,
    response_mode: str | None = None,
    **synthesizer: Any,
) -> ReadingOrderEngine:
    """Return a query engine; "tree_summarize" uses `BoundedTreeSummarize`.

    Answers are written from the nodes in reading order, see `ReadingOrderEngine`. Answers of a
    language model cite them, see `CitationCheck`, except in mode "generation" and in structured
    answers. The default templates ask for citations. Other templates are used unchanged; their
    passages are numbered, too.

    Parameters
    ----------
    retriever : BaseRetriever
    embed_model : BaseEmbedding
        For extractive answers and for the check of citations.
    llm : LLM or callable, optional
        A copy with retries is used, see `with_retries`. Without an LLM, answers are extractive;
        LlamaIndex's `Settings.llm` is ignored.
    response_mode : str, optional
        "extractive" or one of LlamaIndex's modes; "tree_summarize" by default with an LLM.
    **synthesizer
        Options of the mode's class, such as templates, streaming and output_cls.

    Raises
    ------
    InputError
        If the mode is unknown, needs an LLM and none is given, or lacks an option.
    """
    llm = as_llm(llm)
    mode = choose_mode(response_mode, llm)
    known = options_of(SYNTHESIZERS[mode])
    if wrong := [name for name in synthesizer if name not in known]:
        raise InputError(
            f"response_mode {mode!r} has no option {wrong[0]!r}; it has {', '.join(known)}."
        )
    _check_templates(synthesizer)
    citations = None
    cites = issubclass(SYNTHESIZERS[mode], CITING) and not isinstance(llm, StructuredLLM)
    # Of "multimodal", passages are messages, which are not numbered.
    if llm is not None and cites and not any(map(synthesizer.get, ("output_cls", "multimodal"))):
        citations = CitationCheck(embed_model)
        given = {name: option for name, option in synthesizer.items() if option is not None}
        helper = Settings._prompt_helper or PassageHelper.from_llm_metadata(llm.metadata)
        asking = {name: template for name, template in TEMPLATES.items() if name in known}
        synthesizer = {"prompt_helper": helper, **asking, **given}
    if mode == EXTRACTIVE:
        made_with: dict[str, Any] = {"embed_model": embed_model}
    elif llm is None or mode in WITHOUT_LLM:  # the default would be OpenAI's
        made_with = {"llm": llm or MockLLM()}
    else:  # the callback manager would not be the model's
        made_with = {"llm": with_retries(llm), "callback_manager": llm.callback_manager}
    try:
        response_synthesizer = SYNTHESIZERS[mode](**made_with, **synthesizer)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise InputError(f"response_mode {mode!r} rejects its options: {reason}.") from error
    return ReadingOrderEngine(retriever, response_synthesizer, citations=citations)


def taken_by(mode: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a mode supports.

    Raises
    ------
    InputError
        If an option is supported by no mode.
    """
    all_known = {name for kind in SYNTHESIZERS.values() for name in options_of(kind)}
    if wrong := [name for name in options if name not in all_known]:
        raise InputError(f"No response mode has an option {wrong[0]!r}.")
    known = options_of(SYNTHESIZERS[mode])
    return {name: option for name, option in options.items() if name in known}


def options_of(synthesizer: type[BaseSynthesizer]) -> list[str]:
    """Return the names of a synthesizer's options, sorted.

    >>> options_of(ExtractiveSynthesizer)
    ['answer_tokens', 'min_score']
    """
    names = {*signature(synthesizer).parameters}
    if issubclass(synthesizer, BoundedTreeSummarize):
        names = (names - {"options"}) | {*signature(TreeSummarize).parameters}
    without = {"streaming"} if issubclass(synthesizer, CANNOT_STREAM) else set[str]()
    return sorted(names - NOT_TAKEN - without)


def can_stream(mode: str) -> bool:
    """Return whether a mode can stream its answers.

    >>> can_stream("compact"), can_stream("accumulate")
    (True, False)
    """
    return "streaming" in options_of(SYNTHESIZERS[mode])


def _check_templates(options: Mapping[str, Any]) -> None:
    """Raise InputError if a template among the options has a field that nothing fills."""
    for name, template in options.items():
        if not isinstance(template, BasePromptTemplate):
            continue
        fields = set(getattr(template, "template_vars", ())) - set(template.kwargs)
        if unknown := sorted(fields - FIELDS):
            raise InputError(
                f"{name} has the field {unknown[0]!r}; fill it with the template's partial_format."
            )
