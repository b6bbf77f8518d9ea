"""The explorer's server."""

from functools import partial
from typing import TYPE_CHECKING

from hierindex.errors import extra
from hierindex.index import HierarchicalIndex
from hierindex.models.record import llm_tokenizer
from hierindex.serve.endpoint import written_by
from hierindex.serve.explorer import PAGE
from hierindex.serve.explorer.endpoints import ENDPOINTS, Ask, Overview, file_of
from hierindex.settings import EXPLORER_PORT, HOST
from hierindex.threads import in_daemon_thread

with extra("serve", "The explorer needs"):
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import FileResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    from hierindex.serve.app import application
    from hierindex.serve.server import Server

if TYPE_CHECKING:
    from hierindex.models.adapters import LLMLike

SANDBOX = {"Content-Security-Policy": "default-src 'none'; sandbox"}
BEGINNING = 8192  # bytes of a file


def explore(
    index: HierarchicalIndex,
    port: int | None = None,
    host: str = HOST,
    llm: "LLMLike | None" = None,
) -> Server:
    """Start the explorer, a web page for an index, in a thread.

    Parameters
    ----------
    index : HierarchicalIndex
    port : int, optional
        By default 8733, or a free port if it is in use; 0 for a free port.
    host : str
        Address to listen on; by default 127.0.0.1, which every user of this machine can reach. On
        an address that other machines can reach, requests need the server's token.
    llm : LLM or callable, optional
        Language model that answers; without one, passages are quoted.

    Returns
    -------
    Server
        Use it in a `with` block, which closes the server.

    Raises
    ------
    InputError
        If the extra `serve` is not installed, or the address or port cannot be used.
    """
    ports = (EXPLORER_PORT, 0) if port is None else (port,)
    endpoints = ENDPOINTS if llm is None else {**ENDPOINTS, "ask": written_by(llm, Ask)}
    file = Route("/api/file", partial(_file, index))
    assets = StaticFiles(directory=PAGE)
    pages = [Route("/", _page), Mount("/assets", assets), file]
    app = application({"": index}, endpoints, pages, "/api/")
    return Server(app, host, ports, [partial(_warm, index)])


def _warm(index: HierarchicalIndex) -> None:
    """Read what the page opens with, and then what the first question needs."""
    Overview().answer(index, {})
    llm_tokenizer()


async def _page(request: Request) -> Response:
    return FileResponse(PAGE / "index.html")


async def _file(index: HierarchicalIndex, request: Request) -> Response:
    """Return the file of a document; the browser shows a PDF, and any text as plain text.

    Other files are downloaded. Nothing in a file is executed.
    """
    document = request.query_params.get("document", "")
    path = await in_daemon_thread(lambda: file_of(index.table.snapshot(), document))
    if path is None:
        raise HTTPException(404, f"The index knows no file of {document!r}")
    if path.suffix.lower() == ".pdf":  # which browsers show in no sandbox
        return FileResponse(path, media_type="application/pdf")
    with path.open("rb") as file:
        is_text = b"\0" not in file.read(BEGINNING)
    if is_text:
        return FileResponse(path, media_type="text/plain", headers=SANDBOX)
    return FileResponse(
        path, media_type="application/octet-stream", headers=SANDBOX, filename=path.name
    )
