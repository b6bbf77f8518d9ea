"""Commands that build an index or change its documents."""

import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import hierindex
from hierindex.cli import options, text
from hierindex.cli.options import argument, flag, option
from hierindex.cli.output import print_note, print_result, until_stopped
from hierindex.errors import HierindexError
from hierindex.read.files import check_sources
from hierindex.settings import Settings
from hierindex.text.display import shortened
from hierindex.unsafe import visible

WRITING = (
    "llm llm_base_url llm_concurrency max_llm_tokens llm_timeout"
    " llm_completion_tokens llm_record strict"
)
"""Settings of the commands that change an index."""
STOPPED = "Stopped; the index is as the last update left it."

Sources = Annotated[
    list[str] | None,
    argument("SOURCE", "Files and folders, also new ones; by default those of the build."),
]
DryRun = Annotated[
    bool,
    flag("--dry-run", "Only estimate tokens and calls; new content is read, embedded and cached."),
]


@options.with_settings(
    f"method embed_model precision summarizer {WRITING} prompt unsupported chunk_size max_levels"
    " seed"
)
def build(
    sources: Annotated[list[str], argument("SOURCE", "Files and folders.")],
    index: options.NewIndex,
    *,
    settings: Settings,
    dry_run: DryRun = False,
    replace: Annotated[
        bool,
        flag(
            "--replace",
            "Build even if the method or models change, or most documents would be removed.",
        ),
    ] = False,
    engine: Annotated[
        Literal["local", "ray"],
        option("NAME", "local, or ray for the Ray cluster at RAY_ADDRESS or on this machine."),
    ] = "local",
    as_json: options.AsJson = False,
) -> None:
    """Build an index of files and folders, or replace the documents of an existing index.

    What is unchanged is not computed again. Each build publishes a generation, and two are kept.
    """
    check_sources(sources)
    from hierindex.cli.progress import ShownProgress
    from hierindex.models.load import BUNDLED

    with closing(ShownProgress(settings.embed_model or BUNDLED[1])) as progress:
        from hierindex.cli.models import hierarchy_of

        report = hierindex.HierarchicalIndex.build(
            sources,
            index,
            hierarchy=hierarchy_of(settings),
            chunk_size=settings.chunk_size,
            replace=replace,
            dry_run=dry_run,
            progress=progress,
            engine=hierindex.scale.RayEngine() if engine == "ray" and not dry_run else None,
        ).last_build
    assert report is not None
    print_result(report.to_json(), as_json, text.built if dry_run else text.built_from_files)
    is_first = report.generation == 1 and report.statistics
    if is_first and not (as_json or dry_run):
        ask = shlex.join(["hierindex", "query", "QUESTION", "--index", index])
        print_note(f"note: Ask it: {ask}")


def demo(
    index: Annotated[Path, option("DIR", "Folder of the demo's index.")] = Path("hierindex-demo"),
) -> None:
    """Index the documentation of the installed scikit-learn and query it at three levels."""
    from hierindex.cli.progress import ShownProgress

    with closing(ShownProgress("scikit-learn")) as progress:
        from hierindex.demo import QUESTIONS, demo_documents

        made = hierindex.HierarchicalIndex.build(demo_documents(), index, progress=progress)
    assert made.last_build is not None
    print_result(made.last_build.to_json(), False, text.built)
    for level, question in QUESTIONS.items():
        command = f'hierindex query "{question}" --index {index} --level {level}'
        typer.echo(f"\n{visible(command)}\n")
        print_result(made.ask(question, level=level, top_k=5).to_json(), False, text.answered)
    tried = {
        "explore": "opens the tree and its documents in a browser",
        "chat": "answers your questions",
        "tree": "prints the table of contents",
    }
    typer.echo("\nTry next:")
    for name, what in tried.items():
        typer.echo(f"  {visible(f'hierindex {name} --index {index}'):<44} {what}")


@contextmanager
def _changing(
    index: str, flags: dict[str, Any]
) -> Iterator[tuple["hierindex.HierarchicalIndex", dict[str, Any]]]:
    """Show progress; yield an index, and the options of its `update`."""
    from hierindex.cli.progress import ShownProgress

    with closing(ShownProgress("the index")) as progress:
        from hierindex.cli.models import as_built

        opened = hierindex.HierarchicalIndex.open(index)
        yield opened, {"progress": progress, **as_built(opened.settings, flags)}


@options.with_settings(WRITING)
def update(
    sources: Sources = None,
    *,
    index: options.Index,
    flags: dict[str, Any],
    purge: options.Purge = False,
    dry_run: DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Read files again and update the index with their changes.

    The method, the models and other settings are taken from the index. Pass
    `--llm remembered` to use the language model that wrote the summaries.
    """
    with _changing(index, flags) as (opened, given):
        report = opened.update(sources or None, purge=purge, dry_run=dry_run, **given)
    print_result(report.to_json(), as_json, text.built)


@options.with_settings(WRITING)
def watch(
    sources: Sources = None,
    *,
    index: options.Index,
    flags: dict[str, Any],
    purge: options.Purge = False,
    as_json: Annotated[bool, flag("--json", "Print only JSON objects, one on a line.")] = False,
) -> None:
    """Update the index now and whenever its files change, until Ctrl-C.

    Each update works like `hierindex update`. A failed update is retried at
    the next change, or after 30 seconds. Set WATCHFILES_FORCE_POLLING=1 where
    the system does not report changes, as on most network drives.
    """
    from hierindex.jobs.revision import Remembered

    with until_stopped(STOPPED), _changing(index, flags) as (opened, given):
        progress = given["progress"]

        def failed(error: HierindexError) -> None:
            progress.close()
            print_note(f"{error} Still watching.")

        reports = opened.watch(sources or None, failed=failed, purge=purge, **given)
        places = sources or Remembered.of(opened.table.snapshot()).sources
        print_note(f"Watching {shortened(places)}; Ctrl-C stops.")
        generation, known = -1, list[dict[str, str]]()  # `known` files are skipped and printed
        for report in reports:
            progress.close()
            result = report.to_json()
            skipped = result["skipped"]
            new = [each for each in skipped if each not in known]
            if new or report.generation != generation:
                print_result({**result, "skipped": new}, as_json, text.updated, indent=None)
            generation, known = report.generation, skipped


@options.with_settings(WRITING)
def delete(
    documents: Annotated[list[str], argument("DOCUMENT", "Ids, as `hierindex tree` prints them.")],
    index: options.Index,
    *,
    flags: dict[str, Any],
    dry_run: DryRun = False,
    as_json: options.AsJson = False,
) -> None:
    """Delete documents, and everything derived from them, from the index.

    Earlier generations are removed, as they contain the deleted text, so
    `hierindex rollback` cannot undo a deletion. Deleting a mailbox deletes all
    its e-mails; deleting an e-mail deletes its attachments. The files
    themselves are not changed. Later updates skip them until they are named as
    SOURCE. Pass `--llm remembered` as in `hierindex update`.
    """
    from hierindex.read.files import valid_name

    documents = [*map(valid_name, documents)]  # which the shell may have completed
    with _changing(index, flags) as (opened, given):
        report = opened.delete(*documents, dry_run=dry_run, **given)
    print_result(report.to_json(), as_json, text.built)
