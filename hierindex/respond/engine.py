"""Query engines over a retriever, with or without a language model."""

from collections.abc import Collection, Mapping
from inspect import signature
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.llms.structured_llm import StructuredLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.response_synthesizers import (
    Accumulate,
    BaseSynthesizer,
    CompactAndRefine,
    Generation,
    Refine,
    ResponseMode,
    SimpleSummarize,
    TreeSummarize,
)
from llama_index.core.response_synthesizers.compact_and_accumulate import CompactAndAccumulate
from llama_index.core.response_synthesizers.context_only import ContextOnly
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.settings import Settings

from hierindex.errors import InputError
from hierindex.models.llm import served
from hierindex.respond.bounded_tree import BoundedTreeSummarize
from hierindex.respond.cited import CitationCheck
from hierindex.respond.citing_prompts import TEMPLATES, PassageHelper
from hierindex.respond.extractive_synthesizer import ExtractiveSynthesizer
from hierindex.respond.modes import EXTRACTIVE, WITHOUT_LLM, choose_mode
from hierindex.respond.reading import ReadingOrderEngine

SYNTHESIZERS: dict[str, type[BaseSynthesizer]] = {
    EXTRACTIVE: ExtractiveSynthesizer,
    ResponseMode.REFINE.value: Refine,
    ResponseMode.COMPACT.value: CompactAndRefine,
    ResponseMode.SIMPLE_SUMMARIZE.value: SimpleSummarize,
    ResponseMode.TREE_SUMMARIZE.value: BoundedTreeSummarize,
    ResponseMode.GENERATION.value: Generation,
    ResponseMode.ACCUMULATE.value: Accumulate,
    ResponseMode.COMPACT_ACCUMULATE.value: CompactAndAccumulate,
    ResponseMode.NO_TEXT.value: NoText,
    ResponseMode.CONTEXT_ONLY.value: ContextOnly,
}
NOT_TAKEN = frozenset({"llm", "embed_model", "callback_manager"})  # passed separately
FIELDS = frozenset({"context_str", "query_str", "existing_answer", "context_msg"})
"""Template fields that LlamaIndex fills, without `context_messages` of multimodal ones."""
CANNOT_STREAM = (Accumulate, NoText, ContextOnly)
CITING = (Refine, SimpleSummarize, TreeSummarize, Accumulate)


def query_engine(
    retriever: BaseRetriever,
    embed_model: BaseEmbedding,
    *,
    llm: LLM | None = None,
    response_mode: str | None = None,
    **synthesizer: Any,
) -> ReadingOrderEngine:
    """Return a query engine; "tree_summarize" uses `BoundedTreeSummarize`.

    Answers are written from the nodes in reading order, see `ReadingOrderEngine`. Those of a
    language model cite them, see `CitationCheck`, except in mode "generation" and in structured
    answers. The default templates ask for citations; other templates are used as they are, and
    the passages that they show are numbered, too.

    Parameters
    ----------
    retriever : BaseRetriever
    embed_model : BaseEmbedding
        For extractive answers and for the check of citations.
    llm : LLM, optional
        A copy with retries is used, see `served`. Without an LLM, answers are extractive;
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
    mode = choose_mode(response_mode, llm)
    known = options_of(SYNTHESIZERS[mode])
    if wrong := [name for name in synthesizer if name not in known]:
        raise InputError(
            f"response_mode {mode!r} has no option {wrong[0]!r}; it has {', '.join(known)}."
        )
    _check_templates(synthesizer)
    citations = None
    cites = issubclass(SYNTHESIZERS[mode], CITING)
    if llm is not None and cites and not _is_structured(llm, synthesizer):
        citations = CitationCheck(embed_model)
        given = {name: option for name, option in synthesizer.items() if option is not None}
        synthesizer = _for_citations(known, llm) | given
    if mode == EXTRACTIVE:
        made_with: dict[str, Any] = {"embed_model": embed_model}
    elif llm is None or mode in WITHOUT_LLM:  # the default would be OpenAI's
        made_with = {"llm": llm or MockLLM()}
    else:  # the callback manager would not be the model's
        made_with = {"llm": served(llm), "callback_manager": llm.callback_manager}
    try:
        response_synthesizer = SYNTHESIZERS[mode](**made_with, **synthesizer)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise InputError(f"response_mode {mode!r} rejects its options: {reason}.") from error
    return ReadingOrderEngine(retriever, response_synthesizer, citations=citations)


def taken_by(mode: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a mode has.

    Raises
    ------
    InputError
        If no mode has one of the options.
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


def _for_citations(known: Collection[str], llm: LLM) -> dict[str, Any]:
    """Return the options with which a synthesizer asks for citations."""
    helper = Settings._prompt_helper or PassageHelper.from_llm_metadata(llm.metadata)
    return {"prompt_helper": helper, **{k: v for k, v in TEMPLATES.items() if k in known}}


def _is_structured(llm: LLM | None, options: Mapping[str, Any]) -> bool:
    """Return whether answers fill in a form, or passages are messages, which are not numbered."""
    return isinstance(llm, StructuredLLM) or any(map(options.get, ("output_cls", "multimodal")))


def _check_templates(options: Mapping[str, Any]) -> None:
    """Check that the templates among the options have no field that is left empty."""
    for name, template in options.items():
        if not isinstance(template, BasePromptTemplate):
            continue
        fields = set(getattr(template, "template_vars", ())) - set(template.kwargs)
        if unknown := sorted(fields - FIELDS):
            raise InputError(
                f"{name} has the field {unknown[0]!r}; fill it with the template's partial_format."
            )
