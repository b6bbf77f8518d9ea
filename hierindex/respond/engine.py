"""A query engine over a retriever, with or without a language model."""

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
from hierindex.respond.extractive import ExtractiveSynthesizer
from hierindex.respond.tree import BoundedTreeSummarize
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
NOT_TAKEN = frozenset({"self", "llm", "embed_model", "callback_manager"})  # or the model's own
FIELDS = frozenset({"context_str", "query_str", "existing_answer", "context_msg"})
"""Of templates, that LlamaIndex fills; `context_messages` are of multimodal ones."""
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
    """A query engine; "tree_summarize" is our own, `BoundedTreeSummarize`.

    Parameters
    ----------
    retriever : BaseRetriever
    embed_model : BaseEmbedding
        For extractive answers.
    llm : LLM, optional
        A copy is asked, whose failures are tried again, see `served`. Without one, answers are
        extractive; LlamaIndex's `Settings.llm` is never looked up.
    response_mode : str, optional
        "extractive" or any of LlamaIndex's; "tree_summarize" by default if there is an LLM.
    variables : dict, optional
        Values of the templates' own fields.
    **synthesizer
        What the mode's class takes: templates, streaming, output_cls and the like of LlamaIndex's,
        and what `BoundedTreeSummarize` and `ExtractiveSynthesizer` take.

    Raises
    ------
    InputError
        If there is no such mode, it needs an LLM and there is none, or it has no such option.
    """
    mode = choose_mode(response_mode, llm)
    known = options_of(SYNTHESIZERS[mode])
    if wrong := [name for name in synthesizer if name not in known]:
        raise InputError(
            f"response_mode {mode!r} has no option {wrong[0]!r}; it has {', '.join(known)}."
        )
    options = _filled(synthesizer, variables or {})
    if mode == ResponseMode.TREE_SUMMARIZE.value and isinstance(retriever, HierarchyRetriever):
        bound = retriever.names_level or retriever.filters  # a summary is of another level, or kind
        options.setdefault("store", None if bound else retriever.store)
    try:
        made = synthesizer_of(mode, embed_model, llm, options)
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise InputError(f"response_mode {mode!r} cannot be made so: {reason}.") from error
    return RetrieverQueryEngine(retriever, made)


def taken_by(mode: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some options for several modes that this one has.

    Raises
    ------
    InputError
        If no mode has one of them.
    """
    all_known = {name for kind in SYNTHESIZERS.values() for name in options_of(kind)}
    if wrong := [name for name in options if name not in all_known]:
        raise InputError(f"No response mode has an option {wrong[0]!r}.")
    known = options_of(SYNTHESIZERS[mode])
    return {name: option for name, option in options.items() if name in known}


def options_of(synthesizer: type[BaseSynthesizer]) -> list[str]:
    """What a synthesizer takes beside its models, sorted.

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
    """Options, with the variables in their templates, all of whose fields are known then."""
    templates = {k: v for k, v in options.items() if isinstance(v, BasePromptTemplate)}
    if variables and not templates:
        raise InputError("variables are for the fields of a template: give one, or leave them out.")
    for name, template in templates.items():
        fields = set(getattr(template, "template_vars", ())) - set(template.kwargs)
        if unknown := sorted(fields - FIELDS - set(variables)):
            raise InputError(f"{name} has the field {unknown[0]!r}; give it in variables.")
    filled = {name: template.partial_format(**variables) for name, template in templates.items()}
    return {**options, **filled}


def choose_mode(response_mode: str | None, llm: LLM | None) -> str:
    """The mode by its name; without one, whether there is an LLM decides.

    Raises
    ------
    InputError
        If there is no such mode, or it needs an LLM and there is none.
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
    """What answers in a mode that `choose_mode` lets pass."""
    if mode == EXTRACTIVE:
        return ExtractiveSynthesizer(embed_model, **options)
    if mode in WITHOUT_LLM:  # LlamaIndex's would look for OpenAI's model
        return WITHOUT_LLM[mode](llm=llm or MockLLM(), **options)
    assert llm is not None  # as choose_mode has seen to
    options.setdefault("callback_manager", llm.callback_manager)  # else it is not the model's
    return SYNTHESIZERS[mode](llm=served(llm), **options)
