"""Response modes: their names, and which of them need a language model."""

from typing import TYPE_CHECKING

from hierindex.errors import InputError

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

EXTRACTIVE, TREE_SUMMARIZE, COMPACT = "extractive", "tree_summarize", "compact"
WITHOUT_LLM = frozenset({"no_text", "context_only"})
MODES = (  # of LlamaIndex, but for the first
    *(EXTRACTIVE, "refine", COMPACT, "simple_summarize", TREE_SUMMARIZE, "generation"),
    *("no_text", "context_only", "accumulate", "compact_accumulate"),
)
NEED_LLM = frozenset(MODES) - WITHOUT_LLM - {EXTRACTIVE}


def choose_mode(response_mode: str | None, llm: "LLM | None") -> str:
    """Return the response mode; by default it depends on whether there is an LLM.

    Raises
    ------
    InputError
        If the mode is unknown, or needs an LLM and none is given.
    """
    if llm is not None:
        from llama_index.core.llms import LLM

        if not isinstance(llm, LLM):
            raise InputError(f"llm must be one of LlamaIndex's models, got {llm!r}.")
    if response_mode is None:
        return EXTRACTIVE if llm is None else TREE_SUMMARIZE
    mode = str(getattr(response_mode, "value", response_mode))
    if mode not in MODES:
        raise InputError(f"response_mode must be one of {', '.join(MODES)}, got {mode!r}.")
    if llm is None and mode in NEED_LLM:
        raise InputError(
            f"response_mode {mode!r} needs an LLM; pass llm= (on the command line --llm and "
            "--llm-base-url), or use 'extractive'."
        )
    return mode
