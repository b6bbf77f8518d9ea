"""From what a user names to a summariser."""

from collections.abc import Mapping
from typing import Any

from llama_index.core.llms import LLM

from hierindex.errors import InputError
from hierindex.summarize.extractive import ExtractiveSummarizer
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Summarizer
from hierindex.summarize.two_stage import TwoStageSummarizer

SummarizerLike = Summarizer | LLM | str | None


def as_summarizer(given: SummarizerLike) -> Summarizer:
    """A summariser from itself, a language model, a model's name, or None for the extractive one.

    Parameters
    ----------
    given : Summarizer, LLM, str or None
        A string is "extractive", or a sequence-to-sequence model by name or folder; a model
        rewrites what the extractive stage chose.

    Raises
    ------
    InputError
        If it is none of these.
    ModelError
        If the model cannot be loaded.
    """
    match given:
        case None | "extractive":
            return ExtractiveSummarizer()
        case str():
            from hierindex.summarize.seq2seq import Seq2SeqRewriter

            return TwoStageSummarizer(Seq2SeqRewriter(given))
        case LLM():
            return TwoStageSummarizer(LLMRewriter(given))
        case Summarizer() if not isinstance(given, type):
            return given
    if hasattr(given, "arewrite"):
        raise InputError(f"Pass summarizer=TwoStageSummarizer(...) around {type(given).__name__}.")
    raise InputError(
        "summarizer must be a Summarizer, a LlamaIndex LLM, a model's name or None, "
        f"got {type(given).__name__}."
    )


def summarizer_from_dict(data: Mapping[str, Any], llm: LLM | None = None) -> Summarizer:
    """The summariser that `to_dict` described, if it is one of the defaults.

    Raises
    ------
    InputError
        If it cannot be made from its description alone; names what to pass.
    """
    rewriter = data.get("rewriter", {})
    if "llm" in rewriter and llm is None:
        raise InputError(f"The summaries were written by {rewriter['llm']!r}; pass it as llm=.")
    made = as_summarizer(llm if "llm" in rewriter else rewriter.get("seq2seq"))
    if made.to_dict() != data:
        raise InputError("This summariser has settings of its own; pass it as summarizer=.")
    return made
