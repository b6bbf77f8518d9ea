"""Commands that build an index."""

from pathlib import Path
from typing import Annotated

import typer

from hierindex.cli import options
from hierindex.cli.output import print_result, visible
from hierindex.errors import InputError


def build(
    sources: options.Sources,
    index: options.Index,
    method: options.Method = None,
    embed_model: options.EmbedModel = None,
    summarizer: options.Summarizer = None,
    llm: options.Model = None,
    llm_base_url: options.BaseUrl = None,
    llm_concurrency: options.LLMConcurrency = None,
    max_llm_tokens: options.MaxLLMTokens = None,
    llm_timeout: options.LLMTimeout = None,
    llm_deadline: options.LLMDeadline = None,
    llm_completion_tokens: options.LLMCompletionTokens = None,
    llm_record: options.LLMRecord = None,
    prompt: options.Prompt = None,
    min_grounding: options.MinGrounding = None,
    grounding: options.Grounding = None,
    strict: options.Strict = None,
    dry_run: options.DryRun = False,
    quick: options.Quick = False,
    prompt_price: options.PromptPrice = None,
    completion_price: options.CompletionPrice = None,
    chunk_size: options.ChunkSize = None,
    max_levels: options.MaxLevels = None,
    seed: options.Seed = None,
    timings: options.Timings = False,
    as_json: options.AsJson = False,
) -> None:
    """Build an index of files and folders, or replace the documents of an existing index."""
    settings = options.settings_of(locals())
    from hierindex.cli.choose import hierarchy_of
    from hierindex.cli.progress import shown_progress
    from hierindex.cli.text import built, estimated, timed
    from hierindex.index import HierarchicalIndex

    if quick and not dry_run:
        raise InputError("--quick can only be used with --dry-run.")
    if dry_run:
        with shown_progress() as progress:
            estimate = HierarchicalIndex.estimate(
                sources,
                index,
                hierarchy=hierarchy_of(settings),
                chunk_size=settings.chunk_size,
                quick=quick,
                progress=progress,
            )
        prices = settings.prompt_price or 0.0, settings.completion_price or 0.0
        price = estimate.price(*prices) if any(prices) else None
        print_result({**estimate.to_json(), "price": price}, as_json, estimated)
        return
    with shown_progress() as progress:
        made = HierarchicalIndex.build(
            sources,
            index,
            hierarchy=hierarchy_of(settings),
            chunk_size=settings.chunk_size,
            progress=progress,
        )
    assert made.last_build is not None
    print_result(made.last_build.to_json(), as_json, timed if timings else built)


def demo(
    index: Annotated[Path, typer.Option("--index", help="Folder of the demo's index.")] = Path(
        "hierindex-demo"
    ),
) -> None:
    """Index the documentation of the installed scikit-learn and query it at three levels."""
    from hierindex.cli.progress import shown_progress
    from hierindex.cli.text import answered, built, described
    from hierindex.demo import QUESTIONS, demo_documents
    from hierindex.index import HierarchicalIndex

    with shown_progress() as progress:
        made = HierarchicalIndex.build(demo_documents(), index, progress=progress)
    assert made.last_build is not None
    print_result(made.last_build.to_json(), False, built)
    typer.echo()
    print_result(made.info(), False, described)
    for level, question in QUESTIONS.items():
        command = f'hierindex query "{question}" --index {index} --level {level}'
        typer.echo(f"\n{visible(command)}\n")
        print_result(made.ask(question, level=level, top_k=5).to_json(), False, answered)
