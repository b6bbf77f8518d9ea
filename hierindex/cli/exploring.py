"""The commands that show an index in a browser."""

from typing import Annotated

import typer

from hierindex.cli import options
from hierindex.cli.output import print_note
from hierindex.cli.stopping import until_stopped


def explore(
    index: options.Index,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="By default 8733, or a free one if it is taken."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to serve at; any but loopback needs a token.")
    ] = "127.0.0.1",
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Serve a page on which the tree is read, searched and asked, until Ctrl-C."""
    from hierindex.index import HierarchicalIndex

    with until_stopped("Stopped."), HierarchicalIndex.open(index).explore(port, host) as explorer:
        print_note(f"The explorer is at {explorer.url}; Ctrl-C stops it.")
        if browser:
            explorer.open_browser()
        explorer.wait()
