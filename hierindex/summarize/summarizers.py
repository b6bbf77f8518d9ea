"""Making summarisers from names, language models or descriptions."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llama_index.core.llms import LLM

from hierindex.core.identity import digest
from hierindex.errors import InputError
from hierindex.models.adapters import LLMLike, checked_text, name_of
from hierindex.models.embedder import is_function
from hierindex.models.failures import request_errors
from hierindex.models.record import Usage
from hierindex.summarize.extractive import ExtractiveSummarizer
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Resources, Summarizer
from hierindex.summarize.two_stage import Rewrite, Rewriter, TwoStageSummarizer

SummarizeFunction = Callable[[str, int], str]
"""A function that summarises a text in about so many tokens."""
SummarizerLike = Summarizer | LLM | SummarizeFunction | str | None


def as_summarizer(given: SummarizerLike) -> Summarizer:
    """Convert a `summarizer` argument to a summariser.

    Parameters
    ----------
    given : Summarizer, LLM, callable, str or None
        A summariser is returned as it is; None and "extractive" give the extractive one. A
        language model, a sequence-to-sequence model given by name or folder, or a function of a
        text and max_tokens rewrites the extracts of a `TwoStageSummarizer`.

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
    if is_function(given):
        return TwoStageSummarizer(FunctionRewriter(given))
    raise InputError(
        "summarizer must be a Summarizer, a LlamaIndex LLM, a function of a text and max_tokens, "
        f"a model's name or None, got {type(given).__name__}."
    )


class FunctionRewriter:
    """A rewriter that calls a function for one text at a time, with a cache.

    A text has no rewrite if the function raises a RuntimeError or an exception of `request_errors`.
    """

    def __init__(self, function: SummarizeFunction) -> None:
        self.name: str = name_of(function)
        self._function = function

    def to_dict(self) -> dict[str, Any]:
        """Return the module and name of the function; its code is not compared."""
        return {"function": self.name, "module": self._function.__module__}

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """Return one rewrite for each text, in order."""
        resources, rewrites = resources or Resources(), list[Rewrite]()
        for text in texts:
            rewrites.append(self._rewrite(text, max_tokens, resources))
            resources.progress("summarize", len(rewrites), len(texts))
        return rewrites

    def _rewrite(self, text: str, max_tokens: int, resources: Resources) -> Rewrite:
        key = digest("function", *self.to_dict().values(), str(max_tokens), text)
        if known := resources.completions.recall(key):
            return Rewrite(known, Usage(cached_summaries=1), key=key)
        failures: tuple[type[Exception], ...] = (RuntimeError, *request_errors())
        try:
            written = self._function(text, max_tokens)
        except failures as error:
            return Rewrite(None, reason=f"it raised {error!r:.100}")
        if not checked_text(written, self.name).strip():
            return Rewrite(None, reason="it wrote nothing")
        resources.completions.keep(key, written)
        return Rewrite(written, key=key)


def summarizer_from_dict(
    data: Mapping[str, Any], llm: LLMLike | None = None, *, strict: bool = False, **limits: Any
) -> Summarizer:
    """Return the summariser described by the dict of `to_dict`.

    Parameters
    ----------
    data : Mapping
    llm : LLM or callable, optional
        The language model named in `data`.
    strict : bool
        See `TwoStageSummarizer`.
    **limits
        Options of `LLMRewriter` that do not affect its texts.

    Raises
    ------
    InputError
        If an argument is missing; the message names it.
    """
    described = data.get("rewriter", {})
    rewriter: Rewriter | None = None
    if "llm" in described:
        if llm is None:
            raise InputError(
                f"The summaries were written by the language model {described['llm']!r}; pass it "
                "as llm= (on the command line --llm remembered)."
            )
        rewriter = LLMRewriter(llm, prompt=described["prompt"], **limits)
    elif "seq2seq" in described:
        from hierindex.summarize.seq2seq import Seq2SeqRewriter

        rewriter = Seq2SeqRewriter(described["seq2seq"], num_beams=described["num_beams"])
    made: Summarizer = ExtractiveSummarizer()
    if rewriter is not None:
        settings = {name: data[name] for name in ("extract_tokens", "unsupported")}
        made = TwoStageSummarizer(rewriter, strict=strict, **settings)
    if made.to_dict() != data:
        name = described.get("function")
        what = f"is the function {name}" if name else "has settings of its own"
        raise InputError(
            f"The summariser {what}; pass it as summarizer=, or to an update in hierarchy=."
        )
    return made


def check_estimable(summarizer: Summarizer) -> None:
    """Raise InputError if the cost of a summariser's requests cannot be estimated."""
    if not isinstance(summarizer, ExtractiveSummarizer | TwoStageSummarizer):
        raise InputError(
            f"The cost of {type(summarizer).__name__} cannot be estimated; use an "
            "ExtractiveSummarizer or a TwoStageSummarizer."
        )
