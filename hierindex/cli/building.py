"""Commands that build an index."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hierindex.cli import options
from hierindex.cli.output import note_next, print_result
from hierindex.cli.progress import shown_progress
from hierindex.cli.text import built, described, estimated, files_read, timed
from hierindex.errors import InputError
from hierindex.read.files import check_sources
from hierindex.unsafe import visible

if TYPE_CHECKING:
    from hierindex.jobs.engine import Engine
    from hierindex.jobs.report import BuildReport
    from hierindex.settings import Settings

ENGINES = ("local", "ray")


@options.with_settings(
    "method embed_model precision summarizer llm llm_base_url llm_concurrency max_llm_tokens"
    " llm_timeout llm_deadline llm_completion_tokens llm_record prompt"
    " unsupported strict prompt_price completion_price chunk_size max_levels seed"
)
def build(
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE", help="Files and folders.")],
    index: options.NewIndex,
    *,
    settings: "Settings",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only estimate tokens, calls and cost. New content is read, embedded and cached "
            "for the build; no language model is called.",
        ),
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Replace the index even if its method or models change or most of its documents "
            "would be removed.",
        ),
    ] = False,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="local, or ray for a Ray cluster.")
    ] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(
            "--ray-address",
            metavar="HOST:PORT",
            help="With --engine ray: address of the head node. By default a cluster that runs on "
            "this machine, or else a new one on this machine.",
        ),
    ] = None,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Build an index of files and folders, or replace the documents of an existing index."""
    if engine not in ENGINES:
        raise InputError(f"--engine must be one of {', '.join(ENGINES)}, got {engine!r}.")
    if ray_address is not None and engine != "ray":
        raise InputError("--ray-address can only be used with --engine ray.")
    check_sources(sources)
    from hierindex.cli.models import hierarchy_of
    from hierindex.index import HierarchicalIndex

    with shown_progress() as progress:
        given: dict[str, Any] = {
            "hierarchy": hierarchy_of(settings),
            "chunk_size": settings.chunk_size,
            "progress": progress,
        }
        if engine == "ray" and not dry_run:
            given["engine"] = _cluster(ray_address)
        report = HierarchicalIndex.build(
            sources, index, replace=replace, dry_run=dry_run, **given
        ).last_build
    assert report is not None
    if dry_run:
        print_estimate(report, settings, as_json)
    else:
        summary = timed if verbose else built
        print_result(
            report.to_json(),
            as_json,
            lambda told: f"{summary({**told, 'skipped': []})}\n\n{files_read(told)}",
        )
        if report.generation == 1:
            note_next("Ask it", "query", "QUESTION", "--index", str(index), as_json=as_json)


def _cluster(address: str | None) -> "Engine":
    from hierindex.scale.engine import RayEngine

    return RayEngine(address)


def print_estimate(estimate: "BuildReport", settings: "Settings", as_json: bool) -> None:
    """Print an estimate, with its prices if the settings have prices of tokens."""
    prices = settings.prompt_price or 0.0, settings.completion_price or 0.0
    price = estimate.price(*prices) if any(prices) else None
    print_result({**estimate.to_json(), "price": price}, as_json, estimated)


def demo(
    index: Annotated[
        Path, typer.Option("--index", metavar="DIR", help="Folder of the demo's index.")
    ] = Path("hierindex-demo"),
) -> None:
    """Index the documentation of the installed scikit-learn and query it at three levels."""
    from hierindex.cli.answer_text import answered
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
    typer.echo(f"\n{visible(f'hierindex explore --index {index}')}   shows the tree in a browser.")
