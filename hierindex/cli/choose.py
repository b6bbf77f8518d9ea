"""Construction of hierarchies and summarisers from settings."""

from pathlib import Path
from typing import TYPE_CHECKING

from hierindex.cli.llm import llm_of
from hierindex.errors import InputError
from hierindex.hierarchy.hierarchy import Hierarchy
from hierindex.hierarchy.transforms import DocumentHierarchy, RaptorHierarchy, SemanticHierarchy
from hierindex.settings import Settings
from hierindex.summarize.extractive import ExtractiveSummarizer
from hierindex.summarize.grounding import EmbeddingGrounding
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.prompts import PROMPTS
from hierindex.summarize.seq2seq import Seq2SeqRewriter
from hierindex.summarize.summary import Summarizer
from hierindex.summarize.two_stage import TwoStageSummarizer

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

HIERARCHIES = {
    kind.method: kind for kind in (SemanticHierarchy, RaptorHierarchy, DocumentHierarchy)
}


def hierarchy_of(settings: Settings) -> Hierarchy:
    """Return the hierarchy that the settings describe, with its models loaded."""
    summarizer = _summarizer(settings)
    return HIERARCHIES[settings.method](
        embed_model=settings.embed_model,
        summarizer=summarizer,
        max_levels=settings.max_levels,
        seed=settings.seed,
    )


def _summarizer(settings: Settings) -> Summarizer:
    llm = llm_of(settings)
    if llm is not None and settings.summarizer != "extractive":
        raise InputError(f"--llm is given; leave out --summarizer {settings.summarizer}, or --llm.")
    if llm is None and settings.summarizer == "extractive":
        return ExtractiveSummarizer()
    rewriter = Seq2SeqRewriter(settings.summarizer) if llm is None else _rewriter(llm, settings)
    return TwoStageSummarizer(
        rewriter,
        strict=settings.strict,
        grounding=EmbeddingGrounding() if settings.grounding == "embedding" else None,
        min_grounding=settings.min_grounding,
    )


def _rewriter(llm: "LLM", settings: Settings) -> LLMRewriter:
    return LLMRewriter(
        llm,
        concurrency=settings.llm_concurrency,
        prompt=_prompt(settings.prompt),
        timeout=settings.llm_timeout,
        deadline=settings.llm_deadline,
        token_limit=settings.max_llm_tokens,
        record=settings.llm_record,
    )


def _prompt(name: str) -> str:
    """Return a built-in prompt, or else the contents of the file of this name."""
    if name in PROMPTS:
        return PROMPTS[name]
    try:
        return Path(name).read_text("utf-8")
    except (OSError, ValueError) as error:
        names = ", ".join(PROMPTS)
        raise InputError(
            f"--prompt {name} is neither one of {names} nor a readable text file: {error}."
        ) from error
