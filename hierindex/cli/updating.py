"""Commands that change the documents of an index."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hierindex.cli import options
from hierindex.cli.building import print_estimate
from hierindex.cli.output import print_result, wrapped

if TYPE_CHECKING:
    from hierindex.indexing.report import BuildReport

FLAGS = (
    "method embed_model summarizer llm llm_base_url llm_concurrency max_llm_tokens llm_timeout"
    " llm_deadline llm_completion_tokens llm_record prompt min_grounding grounding strict"
    " prompt_price completion_price chunk_size max_levels seed"
)
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Only estimate what it would cost; what is new is read and embedded."
    ),
]


@options.with_settings(FLAGS)
def update(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE...]",
            help="Files and folders to read again or to add; by default all that the index was "
            "built from.",
        ),
    ] = None,
    *,
    index: options.Index,
    flags: dict[str, Any],
    purge: options.Purge = False,
    dry_run: DryRun = False,
    timings: options.Timings = False,
    as_json: options.AsJson = False,
) -> None:
    """Read files again and update the index with what has changed.

    Method, models and other settings are those that the index was built with; flags that
    contradict them are refused. `--llm remembered` asks the language model that wrote the
    summaries.
    """
    from hierindex.cli.choose import as_built
    from hierindex.cli.progress import shown_progress
    from hierindex.index import HierarchicalIndex

    opened = HierarchicalIndex.open(index)
    settings, models = as_built(opened.settings, flags)
    with shown_progress() as progress:
        given = {"progress": progress, **models}
        if dry_run:
            estimate = opened.estimate_update(sources or None, **given)
        else:
            report = opened.update(sources or None, purge=purge, **given)
    if dry_run:
        print_estimate(estimate, settings, as_json)
    else:
        _print(report, timings, as_json)


@options.with_settings(FLAGS)
def delete(
    documents: Annotated[
        list[str],
        typer.Argument(metavar="DOCUMENT...", help="Ids, as `hierindex tree` prints them."),
    ],
    index: options.Index,
    *,
    flags: dict[str, Any],
    dry_run: DryRun = False,
    timings: options.Timings = False,
    as_json: options.AsJson = False,
) -> None:
    """Delete documents from the index, with all that is derived from them.

    Their files are not touched, and later updates leave them out until they are named as SOURCE.
    """
    from hierindex.cli.choose import as_built
    from hierindex.cli.progress import shown_progress
    from hierindex.index import HierarchicalIndex
    from hierindex.read.files import valid_name

    documents = [*map(valid_name, documents)]  # which the shell may have completed
    opened = HierarchicalIndex.open(index)
    settings, models = as_built(opened.settings, flags)
    with shown_progress() as progress:
        given = {"progress": progress, **models}
        if dry_run:
            estimate = opened.estimate_update(delete=documents, **given)
        else:
            report = opened.delete(*documents, **given)
    if dry_run:
        print_estimate(estimate, settings, as_json)
    else:
        _print(report, timings, as_json)
    if not as_json:
        were = "would be" if dry_run else "were"
        what = f"Earlier generations {were} removed with the deleted text."
        typer.echo(
            wrapped(f"{what} Files that still exist stay out until they are named as SOURCE.")
        )


def _print(report: "BuildReport", timings: bool, as_json: bool) -> None:
    from hierindex.cli.text import built, timed

    print_result(report.to_json(), as_json, timed if timings else built)
