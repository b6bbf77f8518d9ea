"""The command that updates an index whenever its files change."""

from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hierindex.cli import options
from hierindex.cli.output import print_note, print_result
from hierindex.cli.stopping import until_stopped
from hierindex.cli.updating import FLAGS

if TYPE_CHECKING:
    from hierindex.errors import HierindexError

STOPPED = "Stopped; the index is as the last update left it."


@options.with_settings(FLAGS)
def watch(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE...]",
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

    Each update is one of `hierindex update`. One that fails is tried again with the next change,
    or after half a minute. Set WATCHFILES_FORCE_POLLING=1 where the system does not report
    changes, as on most network drives.
    """
    from hierindex.cli.choose import as_built
    from hierindex.cli.progress import RepeatedProgress
    from hierindex.cli.text import some
    from hierindex.index import HierarchicalIndex
    from hierindex.indexing.changes import Remembered

    def failed(error: "HierindexError") -> None:
        progress.close()
        print_note(f"{error} Still watching.")

    opened = HierarchicalIndex.open(index)
    _, models = as_built(opened.settings, flags)
    with until_stopped(STOPPED), closing(RepeatedProgress()) as progress:
        given = {"purge": purge, "progress": progress, **models}
        reports = opened.watch(sources or None, failed=failed, **given)
        places = sources or Remembered.of(opened.store.snapshot()).sources
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


def _updated(report: dict[str, Any]) -> str:
    """Format the report of an update as a line, and others for requests and skipped files."""
    from hierindex.cli.text import changed, moved, skipped_files, usage_of

    names = "; ".join([*changed(report["names"]), *moved(report)]) or "Nothing has changed."
    at, seconds = f"{datetime.now():%H:%M:%S}", f"{report['seconds']['total']:.1f} s"
    usage = [usage_of(report["usage"])] if report["usage"]["llm_calls"] else []
    line = f"{at}  Generation {report['generation']}, {seconds}. {names}"
    return "\n".join([line, *usage, *skipped_files(report["skipped"])])
