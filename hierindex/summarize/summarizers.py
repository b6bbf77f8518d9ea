"""Summarisers made from a name, a language model or a description, and their rehearsals."""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from llama_index.core.llms import LLM
from llama_index.core.utils import get_tokenizer

from hierindex.errors import InputError
from hierindex.models.record import Usage
from hierindex.summarize.extractive import ExtractiveSummarizer
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.rewrites import Rewrite, Rewriter, of_each
from hierindex.summarize.summary import Resources, Summarizer
from hierindex.summarize.two_stage import TwoStageSummarizer

SummarizerLike = Summarizer | LLM | str | None


def as_summarizer(given: SummarizerLike) -> Summarizer:
    """Return the summariser that a `summarizer` argument stands for.

    Parameters
    ----------
    given : Summarizer, LLM, str or None
        A summariser is returned as it is; None and "extractive" give the extractive one. A
        language model, or a sequence-to-sequence model given by name or folder, rewrites the
        extracts of a `TwoStageSummarizer`.

    Raises
    ------
    InputError
        If it is of another type.
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
    if hasattr(given, "rewrite"):
        raise InputError(f"Wrap the {type(given).__name__} in a TwoStageSummarizer and pass that.")
    raise InputError(
        "summarizer must be a Summarizer, a LlamaIndex LLM, a model's name or None, "
        f"got {type(given).__name__}."
    )


def summarizer_from_dict(
    data: Mapping[str, Any], llm: LLM | None = None, *, strict: bool = False, **limits: Any
) -> Summarizer:
    """Return the summariser that a `to_dict` describes.

    Parameters
    ----------
    data : Mapping
    llm : LLM, optional
        The language model that it names.
    strict : bool
        See `TwoStageSummarizer`.
    **limits
        Options of `LLMRewriter` that do not determine what it writes.

    Raises
    ------
    InputError
        If it cannot be made from its description alone; names the argument to pass.
    """
    rewriter = data.get("rewriter", {})
    if "llm" in rewriter and llm is None:
        raise InputError(
            f"The summaries were written by the language model {rewriter['llm']!r}; pass it as "
            "llm= (on the command line --llm remembered)."
        )
    made: Summarizer = ExtractiveSummarizer()
    if rewriter.keys() & {"llm", "seq2seq"}:
        made = TwoStageSummarizer(
            _rewriter(rewriter, llm, limits),
            extract_tokens=data["extract_tokens"],
            strict=strict,
            unsupported=data["unsupported"],
        )
    if made.to_dict() != data:
        raise InputError("The summariser has settings of its own; pass it as summarizer=.")
    return made


def _rewriter(data: Mapping[str, Any], llm: LLM | None, limits: Mapping[str, Any]) -> Rewriter:
    if llm is not None and "llm" in data:
        return LLMRewriter(llm, prompt=data["prompt"], **limits)
    from hierindex.summarize.seq2seq import Seq2SeqRewriter

    return Seq2SeqRewriter(data["seq2seq"], num_beams=data["num_beams"])


def rehearsed(summarizer: Summarizer) -> Summarizer:
    """Return a copy of the summariser that sends no requests.

    Groups and extracts stay the same. Cached rewrites are used; the beginning of the extract
    stands in for the others. The usage counts the requests that would be sent, the tokens of
    their prompts and the maximum tokens of their answers.

    Raises
    ------
    InputError
        If it is neither an `ExtractiveSummarizer` nor a `TwoStageSummarizer`.
    """
    if isinstance(summarizer, ExtractiveSummarizer):
        return summarizer
    if not isinstance(summarizer, TwoStageSummarizer):
        raise InputError(
            f"The cost of {type(summarizer).__name__} cannot be estimated; use an "
            "ExtractiveSummarizer or a TwoStageSummarizer."
        )
    rehearsal = copy(summarizer)
    rehearsal.rewriter = _Rehearsal(summarizer.rewriter)
    return rehearsal


class _Rehearsal:
    """A rewriter that returns cached rewrites, or else the text itself with the cost."""

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self.name = rewriter.name

    def to_dict(self) -> dict[str, Any]:
        return self._rewriter.to_dict()

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        distinct = dict.fromkeys(texts)
        return of_each(texts, {t: self._rewrite(t, max_tokens, resources) for t in distinct})

    def _rewrite(self, text: str, max_tokens: int, resources: Resources | None) -> Rewrite:
        rewriter, completions = self._rewriter, resources and resources.completions
        if not isinstance(rewriter, LLMRewriter):
            return Rewrite(text)
        if completions and (known := completions.recall(rewriter.key_of(text, max_tokens))):
            title, written = rewriter.split(known)
            return Rewrite(written, Usage(cached_summaries=1), title=title)
        usage = Usage(
            llm_calls=1,
            prompt_tokens=len(get_tokenizer()(rewriter.prompt_of(text, max_tokens))),
            completion_tokens=rewriter.completion_tokens(max_tokens),
        )
        return Rewrite(text, usage)
