"""From settings to the library's objects."""

from typing import TYPE_CHECKING

from hierindex.errors import InputError
from hierindex.hierarchy.driver import Hierarchy
from hierindex.hierarchy.transforms import DocumentHierarchy, RaptorHierarchy, SemanticHierarchy
from hierindex.llm import load_llm
from hierindex.settings import Settings
from hierindex.summarize.choice import as_summarizer
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Summarizer
from hierindex.summarize.two_stage import TwoStageSummarizer

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

HIERARCHIES = {
    kind.method: kind for kind in (SemanticHierarchy, RaptorHierarchy, DocumentHierarchy)
}


def hierarchy_of(settings: Settings) -> Hierarchy:
    """The hierarchy that the settings describe, its models loaded."""
    summarizer = _summarizer(settings)
    return HIERARCHIES[settings.method](
        embed_model=settings.embed_model,
        summarizer=summarizer,
        max_levels=settings.max_levels,
        seed=settings.seed,
    )


def llm_of(settings: Settings) -> "LLM | None":
    """The language model that the settings name, if any."""
    if settings.llm is None:
        return None
    if settings.llm_base_url is None:
        raise InputError(
            "--llm needs --llm-base-url: nothing is sent to an address that is not named."
        )
    return load_llm(settings.llm, settings.llm_base_url)


def _summarizer(settings: Settings) -> Summarizer:
    llm = llm_of(settings)
    if llm is not None and settings.summarizer != "extractive":
        raise InputError(
            f"--llm writes the summaries itself; leave out --summarizer {settings.summarizer}."
        )
    made = (
        as_summarizer(settings.summarizer)
        if llm is None
        else TwoStageSummarizer(LLMRewriter(llm, concurrency=settings.llm_concurrency))
    )
    if isinstance(made, TwoStageSummarizer):
        made.strict = settings.strict
    return made
