"""The explorer's web application: a static page, and endpoints that read an index."""

import logging
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from hierindex.errors import HierindexError, IndexNotFoundError, InputError
from hierindex.respond.answering_tree import AnsweringTree
from hierindex.serve.endpoints import ENDPOINTS
from hierindex.serve.guard import Guard
from hierindex.store.damage import damage
from hierindex.threads import in_daemon_thread

logger = logging.getLogger(__name__)

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


def explorer_app(
    tree: AnsweringTree, hosts: Collection[str] | None = None, token: str | None = None
) -> ASGIApp:
    """Return the application; see `Guard` for `hosts` and `token`.

    `/` is the page, `/assets/*` are its files, and `/api/*` are the `ENDPOINTS`. Each request is
    answered from the generation that is the newest then, and the header `Hierindex-Generation` has
    its number. An error is a JSON object `{"error": sentence}`.
    """

    async def api(request: Request) -> Response:
        endpoint = ENDPOINTS.get(request.path_params["name"])
        if endpoint is None:
            raise HTTPException(404)
        headers = dict[str, str]()
        try:
            asked = endpoint.parsed(request.query_params)
            answer = await in_daemon_thread(partial(asked.answer, tree, headers))
            return JSONResponse(answer, headers=headers)
        except HierindexError as error:
            return _sentence(str(error), _status(error), headers)
        except Exception as error:  # a sentence, as on the command line
            known = damage(error)
            if known is None:
                logger.error("%s failed.", request.url.path, exc_info=True)
            return _sentence(str(known or f"{type(error).__name__}: {error}"), 500, headers)

    routes = [Route("/", _page), Route("/assets/{name}", _page), Route("/api/{name}", api)]
    handlers = {HTTPException: _refused}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), hosts, token)


async def _page(request: Request) -> Response:
    name = request.path_params.get("name", "index.html")
    files = {path.name: path for path in PAGE.iterdir() if path.suffix in TYPES}
    if name not in files:
        raise HTTPException(404)
    return Response(files[name].read_bytes(), media_type=TYPES[files[name].suffix])


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _sentence(f"{error.detail}: {request.method} {request.url.path}.", error.status_code)


def _status(error: HierindexError) -> int:
    if isinstance(error, IndexNotFoundError):
        return 404
    return 400 if isinstance(error, InputError) else 500


def _sentence(sentence: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence}, status, headers)
