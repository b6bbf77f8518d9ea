"""Commands that query an index."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from hierindex.cli import options
from hierindex.cli.output import print_result

RETRIEVAL = set(
    "mode level by top_k token_budget beam n_documents whole_documents merge mmr"
    " partial_summaries".split()
)
"""Settings that are passed to the retriever."""


def query(
    question: options.Question,
    index: options.Index,
    mode: options.Mode = None,
    level: options.Level = None,
    by: options.By = None,
    where: options.Where = None,
    partial_summaries: options.PartialSummaries = None,
    top_k: options.TopK = None,
    token_budget: options.TokenBudget = None,
    beam: options.Beam = None,
    n_documents: options.NDocuments = None,
    whole_documents: options.WholeDocuments = None,
    merge: options.Merge = None,
    mmr: options.Mmr = None,
    response_mode: options.ResponseMode = None,
    min_score: options.MinScore = None,
    llm: options.Model = None,
    llm_base_url: options.BaseUrl = None,
    llm_concurrency: options.LLMConcurrency = None,
    llm_timeout: options.LLMTimeout = None,
    as_json: options.AsJson = False,
) -> None:
    """Answer a question from one level or from all levels."""
    settings = options.settings_of(locals())
    with _without_garbage_collection():
        from hierindex.cli.llm import served_llm_of
        from hierindex.cli.text import answered
        from hierindex.cli.where import filters_of
        from hierindex.index import HierarchicalIndex
        from hierindex.respond.engine import EXTRACTIVE, choose_mode

        model = served_llm_of(settings)
        quotes = choose_mode(settings.response_mode, model) == EXTRACTIVE
        answer = HierarchicalIndex.open(index).ask(
            question,
            llm=model,
            response_mode=settings.response_mode,
            synthesizer={"min_score": settings.min_score} if quotes else {},
            filters=filters_of(where or ()),
            **settings.model_dump(include=RETRIEVAL),
        )
    print_result(answer.to_json(), as_json, answered)


def compare(
    question: options.Question,
    index: options.Index,
    mode: options.Mode = None,
    level: options.Level = None,
    by: options.By = None,
    where: options.Where = None,
    partial_summaries: options.PartialSummaries = None,
    top_k: options.TopK = None,
    token_budget: options.TokenBudget = None,
    response_modes: options.ResponseModes = None,
    min_score: options.MinScore = None,
    llm: options.Model = None,
    llm_base_url: options.BaseUrl = None,
    llm_concurrency: options.LLMConcurrency = None,
    llm_timeout: options.LLMTimeout = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare the answers of several response modes, given the same retrieved nodes."""
    settings = options.settings_of(locals())
    from hierindex.cli.llm import served_llm_of
    from hierindex.cli.text import compared
    from hierindex.cli.where import filters_of
    from hierindex.index import HierarchicalIndex
    from hierindex.respond.engine import NEED_LLM

    comparison = HierarchicalIndex.open(index).compare(
        question,
        llm=served_llm_of(settings),
        response_modes=response_modes,
        synthesizer={"min_score": settings.min_score},
        filters=filters_of(where or ()),
        **settings.model_dump(include=RETRIEVAL),
    )
    print_result(comparison.to_json(), as_json, compared)
    answers = [attempt for attempt in comparison.attempts if attempt.mode in NEED_LLM]
    if answers and all(attempt.error for attempt in answers):
        raise typer.Exit(1)


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection, which takes a tenth of the start-up time during imports."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
