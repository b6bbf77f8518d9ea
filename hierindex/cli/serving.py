"""Commands that serve an index: to a browser, to other programs and to agents."""

import re
import signal
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import hierindex
from hierindex.cli import options
from hierindex.cli.asking import answering_llm
from hierindex.cli.options import flag, option
from hierindex.cli.output import print_note, until_stopped
from hierindex.errors import InputError, extra, without_password
from hierindex.settings import EXPLORER_PORT, HOST, MCP_PORT, QUESTIONS_PORT, Settings

if TYPE_CHECKING:
    from llama_index.core.llms import LLM


ANSWERING = "llm llm_base_url llm_concurrency llm_timeout llm_completion_tokens"
"""Settings of the servers that answer questions."""
PORT = "Port; by default {}, or a free one if that is taken."
NAMED = re.compile(r"([^/=]+)=(.+)", re.DOTALL)
Indexes = Annotated[
    list[str],
    option(
        "[NAME=]DIR",
        "Folder of the index, or its URI in an object store. To serve several, repeat it with "
        "a name for each; requests then name one.",
    ),
]
Host = Annotated[
    str,
    option(
        "ADDRESS",
        "Address to listen on. By default, every user of this machine can connect. If other "
        "machines can reach the address, clients need the printed token.",
    ),
]


@options.with_settings(ANSWERING)
def explore(
    index: options.Index,
    port: Annotated[int | None, option("N", PORT.format(EXPLORER_PORT))] = None,
    host: Host = HOST,
    browser: Annotated[bool, flag("--browser/--no-browser", "Open the page in a browser.")] = True,
    *,
    settings: Settings,
) -> None:
    """Serve a web page for browsing, searching and querying the index, until Ctrl-C.

    Each request is answered from the newest generation of the index. With
    --llm, the model writes the answers.
    """
    opened, llm = hierindex.HierarchicalIndex.open(index), _llm_of(settings)
    with until_stopped("Stopped."), hierindex.serve.explore(opened, port, host, llm) as explorer:
        if explorer.token is not None:
            print_note("note: Other machines can open this address. Keep its token secret.")
        print_note(f"Exploring {index} until Ctrl-C, at {explorer.page}")
        opened.info()  # fails if the index cannot be read
        if browser:
            webbrowser.open(explorer.page)
        explorer.wait()


@options.with_settings(ANSWERING)
def serve(
    index: Indexes,
    port: Annotated[int | None, option("N", PORT.format(QUESTIONS_PORT))] = None,
    host: Host = HOST,
    *,
    settings: Settings,
) -> None:
    """Serve queries of other programs over HTTP, until Ctrl-C.

    The page at the root describes the endpoints, as /openapi.json does for
    programs. Each request is answered from the newest generation of its index.
    With --llm, everyone who can connect can use the model.
    """
    places = _by_name(index)
    llm = _llm_of(settings)
    opened = {name: hierindex.HierarchicalIndex.open(place) for name, place in places.items()}
    with until_stopped("Stopped."), hierindex.serve.serve(opened, port, host, llm) as server:
        if server.token is not None:
            print_note(
                "note: Other machines can connect. Requests need the header "
                f"'Authorization: Bearer {server.token}'."
            )
        print_note(f"Answering questions on {', '.join(index)} until Ctrl-C, at {server.page}")
        server.wait()


def mcp(
    index: Indexes,
    http: Annotated[
        bool,
        flag("--http", "Serve over HTTP, until Ctrl-C. Every user of this machine can connect."),
    ] = False,
    port: Annotated[int | None, option("N", f"With --http: port; by default {MCP_PORT}.")] = None,
) -> None:
    """Serve indexes to agents by the Model Context Protocol (MCP).

    A client starts this command and talks to it over standard input and
    output. Each call is answered from the newest generation of its index.
    """
    places = _by_name(index)
    if port is not None and not http:
        raise InputError("--port needs --http.")
    from hierindex.store.table import Table

    with extra("serve", "The MCP server needs"):
        from hierindex.serve.mcp.server import application, run, server_of
        from hierindex.serve.server import Server
    tables = {name: Table.of(place) for name, place in places.items()}
    server = server_of({name: hierindex.HierarchicalIndex(of) for name, of in tables.items()})
    if not http:
        for number in (signal.SIGINT, signal.SIGTERM):  # Python would wait for the next input
            signal.signal(number, signal.SIG_DFL)
        run(server)
        return
    ports = (MCP_PORT if port is None else port,)
    with until_stopped("Stopped."), Server(application(server), HOST, ports) as running:
        print_note(f"Serving until Ctrl-C, at {running.url}mcp")
        running.wait()


def _llm_of(settings: Settings) -> "LLM | None":
    """Return the language model of the settings, and print that it writes the answers."""
    llm = answering_llm(settings)
    if llm is not None:
        url = without_password(settings.llm_base_url or "")
        print_note(f"note: {settings.llm} at {url} writes the answers.")
    return llm


def _by_name(indexes: list[str]) -> dict[str, str]:
    """Return the addresses of indexes by name; a single index may have the name ""."""
    places = dict[str, str]()
    for given in indexes:
        found = None if Path(given).exists() else NAMED.fullmatch(given)
        name, place = found.groups() if found else ("", given)
        if not name and len(indexes) > 1:
            raise InputError(f"Several indexes need names: --index NAME=DIR, got {given!r}.")
        if name in places:
            raise InputError(f"The name {name!r} is given twice; each index needs its own.")
        places[name] = options.checked_index(place)
    return places
