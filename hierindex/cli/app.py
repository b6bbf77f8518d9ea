"""Commands: each parses, calls the library once, and prints."""

import gc
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from hierindex.cli import options
from hierindex.errors import HierindexError, InputError

RETRIEVAL = {
    "mode",
    "level",
    "by",
    "top_k",
    "token_budget",
    "beam",
    "n_documents",
    "whole_documents",
    "merge",
    "mmr",
}
"""Settings that are the retriever's options."""

INTERRUPTED = 130  # typer's exit status after Ctrl-C

app = typer.Typer(
    name="hierindex",
    help="Turn documents into a tree of summaries and ask it at any level.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
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
    """Build an index of files and folders, or replace the documents of one."""
    from hierindex.settings import load_settings

    settings = load_settings(
        method=method,
        embed_model=embed_model,
        summarizer=summarizer,
        llm=llm,
        llm_base_url=llm_base_url,
        llm_concurrency=llm_concurrency,
        max_llm_tokens=max_llm_tokens,
        llm_timeout=llm_timeout,
        llm_deadline=llm_deadline,
        llm_completion_tokens=llm_completion_tokens,
        llm_record=llm_record,
        prompt=prompt,
        min_grounding=min_grounding,
        grounding=grounding,
        strict=strict,
        prompt_price=prompt_price,
        completion_price=completion_price,
        chunk_size=chunk_size,
        max_levels=max_levels,
        seed=seed,
    )
    from hierindex.cli.choose import hierarchy_of
    from hierindex.cli.progress import shown_progress
    from hierindex.cli.text import built, estimated, timed
    from hierindex.index import HierarchicalIndex

    if quick and not dry_run:
        raise InputError("--quick is for --dry-run: only an estimate can be quick.")
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
        _print({**estimate.to_json(), "price": price}, as_json, estimated)
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
    _print(made.last_build.to_json(), as_json, timed if timings else built)


@app.command()
def query(
    question: options.Question,
    index: options.Index,
    mode: options.Mode = None,
    level: options.Level = None,
    by: options.By = None,
    where: options.Where = None,
    top_k: options.TopK = None,
    token_budget: options.TokenBudget = None,
    beam: options.Beam = None,
    n_documents: options.NDocuments = None,
    whole_documents: options.WholeDocuments = None,
    merge: options.Merge = None,
    mmr: options.Mmr = None,
    response_mode: options.ResponseMode = None,
    llm: options.Model = None,
    llm_base_url: options.BaseUrl = None,
    as_json: options.AsJson = False,
) -> None:
    """Ask a question, at one level or at all."""
    from hierindex.settings import load_settings

    settings = load_settings(
        mode=mode,
        level=level or None,
        by=by,
        top_k=top_k,
        token_budget=token_budget,
        beam=beam,
        n_documents=n_documents,
        whole_documents=whole_documents,
        merge=merge,
        mmr=mmr,
        response_mode=response_mode,
        llm=llm,
        llm_base_url=llm_base_url,
    )
    with _without_garbage_collection():
        from hierindex.cli.llm import llm_of
        from hierindex.cli.text import answered
        from hierindex.cli.where import filters_of
        from hierindex.index import HierarchicalIndex

        answer = HierarchicalIndex.open(index).ask(
            question,
            llm=llm_of(settings),
            response_mode=settings.response_mode,
            filters=filters_of(where or ()),
            **settings.model_dump(include=RETRIEVAL),
        )
    _print(answer.to_json(), as_json, answered)


@app.command()
def compare(
    question: options.Question,
    index: options.Index,
    mode: options.Mode = None,
    level: options.Level = None,
    by: options.By = None,
    where: options.Where = None,
    top_k: options.TopK = None,
    token_budget: options.TokenBudget = None,
    response_mode: options.ResponseModes = None,
    llm: options.Model = None,
    llm_base_url: options.BaseUrl = None,
    as_json: options.AsJson = False,
) -> None:
    """Ask a question in several response modes, side by side, of the same nodes."""
    from hierindex.settings import load_settings

    settings = load_settings(
        mode=mode,
        level=level or None,
        by=by,
        top_k=top_k,
        token_budget=token_budget,
        llm=llm,
        llm_base_url=llm_base_url,
    )
    from hierindex.cli.llm import llm_of
    from hierindex.cli.text import compared
    from hierindex.cli.where import filters_of
    from hierindex.index import HierarchicalIndex

    comparison = HierarchicalIndex.open(index).compare(
        question,
        llm=llm_of(settings),
        response_modes=response_mode,
        filters=filters_of(where or ()),
        **settings.model_dump(include=RETRIEVAL),
    )
    _print(comparison.to_json(), as_json, compared)


@app.command()
def info(index: options.Index, as_json: options.AsJson = False) -> None:
    """Say what an index holds: levels, nodes, models."""
    from hierindex.cli.text import described
    from hierindex.index import HierarchicalIndex

    _print(HierarchicalIndex.open(index).info(), as_json, described)


@app.command()
def show(
    node: Annotated[str, typer.Argument(metavar="NODE", help="An id or its beginning.")],
    index: options.Index,
    as_json: options.AsJson = False,
) -> None:
    """Show a node: its text, its parents and children, where its text stands."""
    from hierindex.cli.text import node_shown
    from hierindex.index import HierarchicalIndex

    _print(HierarchicalIndex.open(index).describe(node), as_json, node_shown)


@app.command()
def export(
    form: options.Form,
    index: options.Index,
    to: options.To,
    as_json: options.AsJson = False,
) -> None:
    """Write the tree in a form that other programs read."""
    from hierindex.cli.export import WRITERS
    from hierindex.cli.text import exported
    from hierindex.index import HierarchicalIndex

    if form not in WRITERS:
        raise InputError(f"FORMAT must be one of {', '.join(WRITERS)}, got {form!r}.")
    n_nodes = WRITERS[form](HierarchicalIndex.open(index), to)
    _print({"format": form, "path": str(to), "nodes": n_nodes}, as_json, exported)


@app.command()
def demo(
    index: Annotated[Path, typer.Option("--index", help="Folder of the demo's index.")] = Path(
        "hierindex-demo"
    ),
) -> None:
    """Index scikit-learn's documentation, as installed here, and ask it at three levels."""
    from hierindex.cli.progress import shown_progress
    from hierindex.cli.text import answered, built, described
    from hierindex.demo import QUESTIONS, demo_documents
    from hierindex.index import HierarchicalIndex

    with shown_progress() as progress:
        made = HierarchicalIndex.build(demo_documents(), index, progress=progress)
    assert made.last_build is not None
    typer.echo(built(made.last_build.to_json()) + "\n")
    typer.echo(described(made.info()))
    for level, question in QUESTIONS.items():
        typer.echo(f'\nhierindex query "{question}" --index {index} --level {level}\n')
        typer.echo(answered(made.ask(question, level=level, top_k=5).to_json()))


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Imports make objects by the million and drop hardly one: looking is a tenth of a start."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _print(result: dict[str, Any], as_json: bool, text: Any) -> None:
    typer.echo(json.dumps(result, ensure_ascii=False, indent=2) if as_json else text(result))


def main() -> None:
    """Run a command; an error is one sentence on standard error and an exit status."""
    warnings.showwarning = _notice
    logger = logging.getLogger("hierindex")
    logger.handlers = [_Notes()]
    logger.setLevel(logging.INFO)
    try:
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _fail("Interrupted; an index is as it was, and a build goes on where it was.", end.code)
        raise
    except HierindexError as error:
        _fail(str(error), error.exit_status)
    except Exception as error:  # noqa: BLE001  # the one place where any error becomes a sentence
        _fail(f"{type(error).__name__}: {error}", 1)


def _fail(sentence: str, status: int) -> None:
    typer.echo(f"hierindex: {' '.join(sentence.split())}", err=True)
    sys.exit(status)


class _Notes(logging.Handler):
    """Prints what the library logs as notices."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(f"hierindex: note: {record.getMessage()}", err=True)


def _notice(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print our own warnings as notices; those of libraries are not for a command's user."""
    if category.__module__.startswith("hierindex"):
        typer.echo(f"hierindex: note: {message}", err=True)


if __name__ == "__main__":
    main()
