"""LlamaIndex's names of options, so that code written for `VectorStoreIndex` works."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.llms import LLM
from llama_index.core.response_synthesizers import ResponseMode

from hierindex.errors import InputError
from hierindex.respond.engine import SYNTHESIZERS, choose_mode, options_of

ANSWERING = {"text_qa_template", "refine_template"}  # templates of "compact", LlamaIndex's default
IGNORED = {*ANSWERING, "summary_template", "simple_template", "use_async", "verbose"}
"""Ignored by modes that do not have them, as in LlamaIndex."""
SYNTHESIZER = {*IGNORED, "streaming", "output_cls"}


def separated(
    options: Mapping[str, Any],
    synthesizer: Mapping[str, Any],
    response_mode: str | None,
    llm: LLM | None,
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the response mode, the options of its synthesizer, and those of the retriever.

    As in LlamaIndex, templates, `use_async` and `verbose` are ignored by modes without them.

    Parameters
    ----------
    options : mapping
        Options of the retriever, and those of the synthesizer that LlamaIndex takes directly.
    synthesizer : mapping
        Options of the synthesizer.
    response_mode : str, optional
        By default "compact" if one of its templates is given directly, else as in `choose_mode`.
    llm : LLM, optional

    Raises
    ------
    InputError
        If an option is given twice, or the mode needs an LLM and none is given.
    """
    direct = {name: options[name] for name in options if name in SYNTHESIZER and options[name]}
    for name in direct.keys() & synthesizer:
        raise InputError(f"{name} is given directly and in synthesizer; pass it once.")
    if response_mode is None and direct.keys() & ANSWERING:
        response_mode = ResponseMode.COMPACT.value
    mode = choose_mode(response_mode, llm)
    ignored = IGNORED - {*options_of(SYNTHESIZERS[mode])}
    taken = {name: option for name, option in direct.items() if name not in ignored}
    retriever = {name: option for name, option in options.items() if name not in SYNTHESIZER}
    return mode, {**synthesizer, **taken}, retriever
