"""Query engines over a retriever, with or without a language model."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import (
    Accumulate,
    BaseSynthesizer,
    CompactAndRefine,
    Generation,
    Refine,
    ResponseMode,
    SimpleSummarize,
)
from llama_index.core.response_synthesizers.compact_and_accumulate import CompactAndAccumulate
from llama_index.core.response_synthesizers.context_only import ContextOnly
from llama_index.core.response_synthesizers.no_text import NoText

from hierindex.errors import InputError
from hierindex.llm.served import served
from hierindex.respond.bounded_tree import BoundedTreeSummarize
from hierindex.respond.extractive_synthesizer import ExtractiveSynthesizer
from hierindex.respond.reading import ReadingOrderEngine
from hierindex.retrieve.retriever import HierarchyRetriever

EXTRACTIVE = "extractive"
MODES = [EXTRACTIVE, *(mode.value for mode in ResponseMode)]
WITHOUT_LLM: dict[str, type[BaseSynthesizer]] = {
    ResponseMode.NO_TEXT.value: NoText,
    ResponseMode.CONTEXT_ONLY.value: ContextOnly,
}
SYNTHESIZERS: dict[str, type[BaseSynthesizer]] = {
    EXTRACTIVE: ExtractiveSynthesizer,
    ResponseMode.REFINE.value: Refine,
    ResponseMode.COMPACT.value: CompactAndRefine,
    ResponseMode.SIMPLE_SUMMARIZE.value: SimpleSummarize,
    ResponseMode.TREE_SUMMARIZE.value: BoundedTreeSummarize,
    ResponseMode.GENERATION.value: Generation,
    ResponseMode.ACCUMULATE.value: Accumulate,
    ResponseMode.COMPACT_ACCUMULATE.value: CompactAndAccumulate,
    **WITHOUT_LLM,
}
NOT_TAKEN = frozenset({"self", "llm", "embed_model", "callback_manager"})  # passed separately
FIELDS = frozenset({"context_str", "query_str", "existing_answer", "context_msg"})
"""Template fields that LlamaIndex fills, without `context_messages` of multimodal ones."""
CANNOT_STREAM = (Accumulate, NoText, ContextOnly)
NEED_LLM = frozenset(MODES) - WITHOUT_LLM.keys() - {EXTRACTIVE}


def query_engine(
    retriever: BaseRetriever,
    embed_model: BaseEmbedding,
    *,
    llm: LLM | None = None,
    response_mode: str | None = None,
    variables: Mapping[str, Any] | None = None,
    **synthesizer: Any,
) -> RetrieverQueryEngine:
    """Return a query engine; "tree_summarize" uses `BoundedTreeSummarize`.

    Answers are written from the nodes in reading order, see `ReadingOrderEngine`.

    Parameters
    ----------
    retriever : BaseRetriever
    embed_model : BaseEmbedding
        For extractive answers.
    llm : LLM, optional
        A copy with retries is used, see `served`. Without an LLM, answers are extractive;
        LlamaIndex's `Settings.llm` is ignored.
    response_mode : str, optional
        "extractive" or one of LlamaIndex's modes; "tree_summarize" by default with an LLM.
    variables : dict, optional
        Values of custom template fields.
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
    options = _filled(synthesizer, variables or {})
    if mode == ResponseMode.TREE_SUMMARIZE.value and isinstance(retriever, HierarchyRetriever):
        # Parents may violate a restriction to a level or to filters.
        restricted = retriever.names_level or retriever.filters
        options.setdefault("store", None if restricted else retriever.store)
    try:
        response_synthesizer = synthesizer_of(mode, embed_model, llm, options)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise InputError(f"response_mode {mode!r} rejects its options: {reason}.") from error
    return ReadingOrderEngine(retriever, response_synthesizer)


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
    names = set[str]()
    for kind in (kind for kind in synthesizer.__mro__ if "__init__" in vars(kind)):
        parameters = signature(vars(kind)["__init__"]).parameters.values()
        names |= {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
        if all(p.kind is not p.VAR_KEYWORD for p in parameters):
            break
    without = {"streaming"} if issubclass(synthesizer, CANNOT_STREAM) else set[str]()
    return sorted(names - NOT_TAKEN - without)


def _filled(options: Mapping[str, Any], variables: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the variables into the templates among the options; check that no field is left."""
    templates = {k: v for k, v in options.items() if isinstance(v, BasePromptTemplate)}
    if variables and not templates:
        raise InputError("variables fill the fields of a template; pass a template, or omit them.")
    for name, template in templates.items():
        fields = set(getattr(template, "template_vars", ())) - set(template.kwargs)
        if unknown := sorted(fields - FIELDS - set(variables)):
            raise InputError(f"{name} has the field {unknown[0]!r}; pass its value in variables.")
    filled = {name: template.partial_format(**variables) for name, template in templates.items()}
    return {**options, **filled}


def choose_mode(response_mode: str | None, llm: LLM | None) -> str:
    """Return the response mode; by default it depends on whether there is an LLM.

    Raises
    ------
    InputError
        If the mode is unknown, or needs an LLM and none is given.
    """
    if llm is not None and not isinstance(llm, LLM):
        raise InputError(f"llm must be one of LlamaIndex's models, got {llm!r}.")
    if response_mode is None:
        return EXTRACTIVE if llm is None else ResponseMode.TREE_SUMMARIZE.value
    mode = str(getattr(response_mode, "value", response_mode))
    if mode not in MODES:
        raise InputError(f"response_mode must be one of {', '.join(MODES)}, got {mode!r}.")
    if llm is None and mode in NEED_LLM:
        raise InputError(
            f"response_mode {mode!r} needs an LLM; pass llm= (on the command line --llm and "
            "--llm-base-url), or use 'extractive'."
        )
    return mode


def synthesizer_of(
    mode: str, embed_model: BaseEmbedding, llm: LLM | None, options: dict[str, Any]
) -> BaseSynthesizer:
    """Return the response synthesizer of a mode from `choose_mode`."""
    if mode == EXTRACTIVE:
        return ExtractiveSynthesizer(embed_model, **options)
    if mode in WITHOUT_LLM:  # the default would be OpenAI's
        return WITHOUT_LLM[mode](llm=llm or MockLLM(), **options)
    assert llm is not None  # checked by choose_mode
    options.setdefault("callback_manager", llm.callback_manager)  # not the model's by default
    return SYNTHESIZERS[mode](llm=served(llm), **options)
