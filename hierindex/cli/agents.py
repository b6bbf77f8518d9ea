"""The command that serves an index to agents."""

import signal
from typing import TYPE_CHECKING, Annotated

import typer

from hierindex.cli import options
from hierindex.cli.output import print_note
from hierindex.cli.stopping import until_stopped
from hierindex.errors import InputError
from hierindex.extras import extra

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from hierindex.serve.mcp.reader import Reader

LOOPBACK, PORT = "127.0.0.1", 8735


def mcp(
    index: options.Index,
    http: Annotated[
        bool,
        typer.Option(
            "--http",
            help="Serve over HTTP, until Ctrl-C; every user of this machine can ask there.",
        ),
    ] = False,
    port: Annotated[
        int | None, typer.Option(metavar="N", help=f"With --http: port; by default {PORT}.")
    ] = None,
) -> None:
    """Serve an index to agents by the Model Context Protocol (MCP).

    A client starts this command and talks to it over standard input and output. Each call is
    answered from the newest generation of the index.
    """
    if port is not None and not http:
        raise InputError("--port needs --http.")

    def open_reader() -> "Reader":
        from hierindex.serve.mcp.reader import Reader
        from hierindex.store.vector_store import HierarchyStore

        return Reader(HierarchyStore(index))

    with extra("serve", "The MCP server needs"):
        from hierindex.serve.mcp.server import server_of
    server = server_of(open_reader)
    if http:
        _over_http(server, PORT if port is None else port)
    else:
        for number in (signal.SIGINT, signal.SIGTERM):  # Python would wait for the next input
            signal.signal(number, signal.SIG_DFL)
        server.run()


def _over_http(server: "MCPServer[None]", port: int) -> None:
    from hierindex.serve.address import Address
    from hierindex.serve.guard import Guard
    from hierindex.serve.mcp.server import application
    from hierindex.serve.server import Server

    address = Address.at(LOOPBACK, (port,))
    app = Guard(application(server), address.hosts)
    with until_stopped("Stopped."), Server(app, [address.bound]) as running:
        print_note(f"Serving until Ctrl-C, at {address.url}mcp")
        running.wait()
