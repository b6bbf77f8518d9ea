"""Commands that show an index in a browser."""

from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from hierindex.cli import options
from hierindex.cli.output import print_note, print_result
from hierindex.cli.stopping import until_stopped
from hierindex.errors import InputError


def explore(
    index: options.Index,
    port: Annotated[
        int | None,
        typer.Option(metavar="N", help="Port; by default 8733, or a free one if that is taken."),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to serve at; one that other machines can reach needs a token. Every user "
            "of this machine can open the default, 127.0.0.1.",
        ),
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Serve a page to read, search and ask the tree, until Ctrl-C.

    The page follows the index: each request is answered from its newest generation.
    """
    from hierindex.index import HierarchicalIndex

    opened = HierarchicalIndex.open(index)
    opened.info()  # fails if the index cannot be read
    with until_stopped("Stopped."), opened.explore(port, host) as explorer:
        if explorer.is_public:
            print_note("note: Other machines can open this address, which is the key to the index.")
        print_note(f"Exploring {index} until Ctrl-C, at {explorer.url}")
        if browser:
            explorer.open_browser()
        explorer.wait()


def report(
    index: options.Index,
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="File to create.")],
    of: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Node to show with what is under it. By default all."),
    ] = None,
    max_mb: Annotated[
        float,
        typer.Option(
            metavar="MB", help="Maximum size; texts of the lowest levels are left out first."
        ),
    ] = 5.0,
    as_json: options.AsJson = False,
) -> None:
    """Write the explorer's page as one file, which shows the tree and its sources offline."""
    from hierindex.export.report import to_html
    from hierindex.index import HierarchicalIndex

    if not isfinite(max_mb * 1e6):
        raise InputError(f"--max-mb must be a finite size, got {max_mb}.")
    written = to_html(HierarchicalIndex.open(index), out, of, max_bytes=round(max_mb * 1e6))
    print_result({"path": str(out), **written.to_json()}, as_json, _written)


def _written(written: dict[str, Any]) -> str:
    from hierindex.cli.numbers import counted

    size = f"{written['bytes'] / 1e6:.1f} MB"
    line = f"Wrote {written['path']}: {counted(written['nodes'], 'node')}, {size}."
    return "\n".join([line, *([written["left_out"]] if written["left_out"] else [])])
