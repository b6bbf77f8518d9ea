"""The command that serves an index to other programs."""

from typing import Annotated

import typer

from hierindex.cli import options
from hierindex.cli.output import print_note
from hierindex.cli.stopping import until_stopped


def serve(
    index: options.Index,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Answer other programs, too, by HTTP at this port, 0 for a free one; every user "
            "of this machine can ask there. By default none; with --host, 8734, or a free one.",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address to answer at; one that other machines can reach needs a token. With "
            "--port, by default 127.0.0.1.",
        ),
    ] = None,
) -> None:
    """Keep an index loaded, so that its `query`, `outline` and `show` take a tenth of the time.

    While it runs, these commands of the same user ask it by a socket in the folder of the index.
    Each request is answered from the newest generation. With --port, /openapi.json describes what
    other programs can ask.
    """
    from hierindex.index import HierarchicalIndex

    opened = HierarchicalIndex.open(index)
    with until_stopped("Stopped."), opened.serve(port, host) as server:
        if server.token is not None:
            print_note(
                "note: Other machines can ask with the header "
                f"'Authorization: Bearer {server.token}', which is the key to the index."
            )
        where = "" if server.url is None else f", at {server.url}openapi.json"
        print_note(f"Answering questions on {index} until Ctrl-C{where}")
        server.wait()
