"""Commands that build an index or change its documents."""

from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hierindex.cli import options
from hierindex.cli.output import (
    note_next,
    print_note,
    print_result,
    until_stopped,
    wrapped,
)
from hierindex.cli.text import (
    built,
    changed,
    estimated,
    files_read,
    moved,
    not_read,
    skipped_files,
    some,
    timed,
    usage_of,
)
from hierindex.errors import HierindexError, InputError
from hierindex.read.files import check_sources
from hierindex.unsafe import visible

if TYPE_CHECKING:
    from hierindex.jobs.job import Engine
    from hierindex.jobs.report import BuildReport
    from hierindex.settings import Settings


ENGINES = ("local", "ray")

WRITING = (
    "llm llm_base_url llm_concurrency max_llm_tokens llm_timeout"
    " llm_completion_tokens llm_record strict"
)
"""Settings of the commands that change an index."""
PRICES = "prompt_price completion_price"
STOPPED = "Stopped; the index is as the last update left it."


@options.with_settings(
    "method embed_model precision summarizer llm llm_base_url llm_concurrency max_llm_tokens"
    " llm_timeout llm_completion_tokens llm_record prompt"
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
            help="Replace the index even if its method or models change, or most of its documents "
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
    from hierindex.cli.progress import ShownProgress
    from hierindex.models.load import BUNDLED

    with closing(ShownProgress(settings.embed_model or BUNDLED[1])) as progress:
        from hierindex.cli.models import hierarchy_of
        from hierindex.index import HierarchicalIndex

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
    """Print an estimate, with its price if the settings have token prices."""
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
    from hierindex.cli.progress import ShownProgress

    with closing(ShownProgress("scikit-learn")) as progress:
        from hierindex.demo import QUESTIONS, demo_documents
        from hierindex.index import HierarchicalIndex

        made = HierarchicalIndex.build(demo_documents(), index, progress=progress)
    assert made.last_build is not None
    print_result(made.last_build.to_json(), False, built)
    for level, question in QUESTIONS.items():
        command = f'hierindex query "{question}" --index {index} --level {level}'
        typer.echo(f"\n{visible(command)}\n")
        print_result(made.ask(question, level=level, top_k=5).to_json(), False, answered)
    tried = {
        "explore": "opens the tree and its documents in a browser",
        "chat": "answers your questions",
        "tree": "prints the table of contents",
    }
    typer.echo("\nTry next:")
    for name, what in tried.items():
        typer.echo(f"  {visible(f'hierindex {name} --index {index}'):<44} {what}")


DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Only estimate the cost; new content is read, embedded and cached."
    ),
]


@options.with_settings(f"{WRITING} {PRICES}")
def update(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="Files and folders to read again or to add; by default all that the index was "
            "built from.",
        ),
    ] = None,
    *,
    index: options.Index,
    flags: dict[str, Any],
    purge: options.Purge = False,
    dry_run: DryRun = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Read files again and update the index with their changes.

    The method, the models and other settings are taken from the index. Pass
    `--llm remembered` to use the language model that wrote the summaries.
    """
    from hierindex.cli.progress import ShownProgress

    with closing(ShownProgress("the index")) as progress:
        from hierindex.cli.models import as_built
        from hierindex.index import HierarchicalIndex

        opened = HierarchicalIndex.open(index)
        settings, models = as_built(opened.settings, flags)
        given = {"progress": progress, **models}
        report = opened.update(sources or None, purge=purge, dry_run=dry_run, **given)
    _print(report, settings, verbose, as_json)


@options.with_settings(WRITING)
def watch(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="Files and folders to watch; by default all that the index was built from.",
        ),
    ] = None,
    *,
    index: options.Index,
    flags: dict[str, Any],
    purge: options.Purge = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print only JSON objects, one on a line.")
    ] = False,
) -> None:
    """Update the index now and whenever its files change, until Ctrl-C.

    Each update works like `hierindex update`. A failed update is retried at
    the next change, or after 30 seconds. Set WATCHFILES_FORCE_POLLING=1 where
    the system does not report changes, as on most network drives.
    """
    from hierindex.cli.models import as_built
    from hierindex.cli.progress import ShownProgress
    from hierindex.index import HierarchicalIndex
    from hierindex.jobs.changes import Remembered

    def failed(error: HierindexError) -> None:
        progress.close()
        print_note(f"{error} Still watching.")

    opened = HierarchicalIndex.open(index)
    _, models = as_built(opened.settings, flags)
    with until_stopped(STOPPED), closing(ShownProgress("the files")) as progress:
        given = {"purge": purge, "progress": progress, **models}
        reports = opened.watch(sources or None, failed=failed, **given)
        places = sources or Remembered.of(opened.table.snapshot()).sources
        print_note(f"Watching {some(places)}; Ctrl-C stops.")
        generation, known = -1, list[dict[str, str]]()  # `known` files are skipped and printed
        for report in reports:
            progress.close()
            result = report.to_json()
            skipped = result["skipped"]
            new = [each for each in skipped if each not in known]
            if new or report.generation != generation:
                print_result({**result, "skipped": new}, as_json, _updated, indent=None)
            generation, known = report.generation, skipped


@options.with_settings(f"{WRITING} {PRICES}")
def delete(
    documents: Annotated[
        list[str],
        typer.Argument(metavar="DOCUMENT", help="Ids, as `hierindex tree` prints them."),
    ],
    index: options.Index,
    *,
    flags: dict[str, Any],
    dry_run: DryRun = False,
    verbose: options.Verbose = False,
    as_json: options.AsJson = False,
) -> None:
    """Delete documents, and everything derived from them, from the index.

    Deleting a mailbox deletes all its e-mails; deleting an e-mail deletes its
    attachments. The files themselves are not changed. Later updates skip them
    until they are named as SOURCE.
    """
    from hierindex.cli.progress import ShownProgress
    from hierindex.read.files import valid_name

    documents = [*map(valid_name, documents)]  # which the shell may have completed
    with closing(ShownProgress("the index")) as progress:
        from hierindex.cli.models import as_built
        from hierindex.index import HierarchicalIndex

        opened = HierarchicalIndex.open(index)
        settings, models = as_built(opened.settings, flags)
        given = {"progress": progress, **models}
        report = opened.delete(*documents, dry_run=dry_run, **given)
    _print(report, settings, verbose, as_json)
    if not as_json:
        were = "would be" if dry_run else "were"
        what = f"Earlier generations {were} removed, as they contain the deleted text."
        typer.echo(
            wrapped(f"{what} Updates skip files that still exist until they are named as SOURCE.")
        )


def _print(report: "BuildReport", settings: "Settings", verbose: bool, as_json: bool) -> None:
    if report.dry_run:
        print_estimate(report, settings, as_json)
        return
    summary = timed if verbose else built
    print_result(
        report.to_json(),
        as_json,
        lambda told: "\n".join([summary(told), *not_read(told["files"])]),
    )


def _updated(report: dict[str, Any]) -> str:
    """Format the report of an update on one line, then requests and skipped files."""
    names = "; ".join([*changed(report["names"]), *moved(report)]) or "Nothing has changed."
    at, seconds = f"{datetime.now():%H:%M:%S}", f"{report['seconds']['total']:.1f} s"
    usage = [usage_of(report["usage"])] if report["usage"]["llm_calls"] else []
    line = f"{at}  Generation {report['generation']}, {seconds}. {names}"
    partly = not_read(report["files"])
    return "\n".join([line, *usage, *partly, *skipped_files(report["skipped"])])
