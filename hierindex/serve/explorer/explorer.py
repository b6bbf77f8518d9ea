"""The explorer's server."""

import webbrowser
from functools import partial
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from hierindex.index import HierarchicalIndex
from hierindex.models.record import llm_tokenizer
from hierindex.serve.app import application
from hierindex.serve.endpoint import written_by
from hierindex.serve.explorer.endpoints import ENDPOINTS, Ask, Overview
from hierindex.serve.explorer.files import opened
from hierindex.serve.explorer.inline import PAGE
from hierindex.serve.server import Server
from hierindex.settings import EXPLORER_PORT, HOST

if TYPE_CHECKING:
    from hierindex.models.adapters import LLMLike


class Explorer(Server):
    """The server of the explorer; it runs in a thread until `close` or the end of `with`.

    Parameters
    ----------
    index : HierarchicalIndex
    port : int, optional
        By default 8733, or a free port if it is in use; 0 for a free port.
    host : str
        Address to listen on, "127.0.0.1" by default.
    llm : LLM or callable, optional
        Language model that answers; by default answers quote passages.

    Attributes
    ----------
    url : str
        Address of the page, with the token if there is one.
    token : str or None
        If other machines can reach `host`, requests without this token are refused. Otherwise None.

    Raises
    ------
    InputError
        If the address or port cannot be used.
    """

    def __init__(
        self,
        index: HierarchicalIndex,
        port: int | None = None,
        host: str = HOST,
        llm: "LLMLike | None" = None,
    ) -> None:
        ports = (EXPLORER_PORT, 0) if port is None else (port,)
        endpoints = ENDPOINTS
        if llm is not None:
            endpoints = {**ENDPOINTS, "ask": written_by(llm, Ask)}
        file = Route("/api/file", partial(opened, index))
        assets = StaticFiles(directory=PAGE)
        pages = [Route("/", _page), Mount("/assets", assets), file]
        app = application({"": index}, endpoints, pages, "/api/")
        super().__init__(app, host, ports, [partial(_warm, index)])

    def open_browser(self) -> None:
        """Open the page in the user's browser, if there is one."""
        webbrowser.open(self.url)


def _warm(index: HierarchicalIndex) -> None:
    """Read what the page opens with, and then what the first question needs."""
    Overview().answer(index, {})
    llm_tokenizer()


async def _page(request: Request) -> Response:
    return FileResponse(PAGE / "index.html")
