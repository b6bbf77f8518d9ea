"""A query engine over a retriever, with or without a language model."""

from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import (
    BaseSynthesizer,
    ResponseMode,
    get_response_synthesizer,
)
from llama_index.core.response_synthesizers.context_only import ContextOnly
from llama_index.core.response_synthesizers.no_text import NoText

from hierindex.errors import InputError
from hierindex.respond.extractive import ExtractiveSynthesizer

EXTRACTIVE = "extractive"
MODES = [EXTRACTIVE, *(mode.value for mode in ResponseMode)]
WITHOUT_LLM: dict[str, type[BaseSynthesizer]] = {
    ResponseMode.NO_TEXT.value: NoText,
    ResponseMode.CONTEXT_ONLY.value: ContextOnly,
}
NEED_LLM = frozenset(MODES) - WITHOUT_LLM.keys() - {EXTRACTIVE}


def query_engine(
    retriever: BaseRetriever,
    embed_model: BaseEmbedding,
    *,
    llm: LLM | None = None,
    response_mode: str | None = None,
    **synthesizer: Any,
) -> RetrieverQueryEngine:
    """A query engine.

    Parameters
    ----------
    retriever : BaseRetriever
    embed_model : BaseEmbedding
        For extractive answers.
    llm : LLM, optional
        Without one, answers are extractive; LlamaIndex's `Settings.llm` is never looked up.
    response_mode : str, optional
        "extractive" or any of LlamaIndex's; "tree_summarize" by default if there is an LLM.
    **synthesizer
        For `get_response_synthesizer`: templates, streaming, use_async and the like.

    Raises
    ------
    InputError
        If there is no such mode, or it needs an LLM and there is none.
    """
    mode = choose_mode(response_mode, llm)
    return RetrieverQueryEngine(retriever, _synthesizer(mode, embed_model, llm, synthesizer))


def choose_mode(response_mode: str | None, llm: LLM | None) -> str:
    """The mode by its name; without one, whether there is an LLM decides.

    Raises
    ------
    InputError
        If there is no such mode, or it needs an LLM and there is none.
    """
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


def _synthesizer(
    mode: str, embed_model: BaseEmbedding, llm: LLM | None, options: dict[str, Any]
) -> BaseSynthesizer:
    if mode == EXTRACTIVE:
        return ExtractiveSynthesizer(embed_model, **options)
    if mode in WITHOUT_LLM:  # LlamaIndex's factory would look for OpenAI's model
        return WITHOUT_LLM[mode](llm=llm or MockLLM(), **options)
    assert llm is not None  # as choose_mode has seen to
    options.setdefault("callback_manager", llm.callback_manager)  # or the factory replaces it
    return get_response_synthesizer(llm=llm, response_mode=ResponseMode(mode), **options)
