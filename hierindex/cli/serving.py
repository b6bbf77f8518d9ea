"""The command that serves an index to other programs."""

from typing import Annotated

import typer

from hierindex.cli import options
from hierindex.cli.output import print_note
from hierindex.cli.stopping import until_stopped


def serve(
    index: options.Index,
    port: Annotated[
        int | None, typer.Option(help="Port; by default 8734, or a free one if that is taken.")
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="Address to serve at; one that other machines can reach needs a token."),
    ] = "127.0.0.1",
) -> None:
    """Answer questions by HTTP, and those of `hierindex query`, `outline` and `show`.

    These commands ask the server, while one runs for their index, and take a tenth of the time.
    Each request is answered from the newest generation; /openapi.json describes the requests.
    """
    from hierindex.index import HierarchicalIndex

    opened = HierarchicalIndex.open(index)
    with until_stopped("Stopped."), opened.serve(port, host) as server:
        if server.token is not None:
            print_note(
                "note: Other machines can ask with the header "
                f"'Authorization: Bearer {server.token}', which is the key to the index."
            )
        print_note(f"Answering questions on {index} until Ctrl-C, at {server.url}openapi.json")
        server.wait()
