"""The explorer's web application: a static page, and endpoints that read an index."""

import logging
from collections.abc import Collection
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

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
) -> Starlette:
    """Return the application; see `Guard` for `hosts` and `token`."""

    async def page(request: Request) -> Response:
        return asset("index.html")

    async def assets(request: Request) -> Response:
        return asset(request.path_params["name"])

    async def api(request: Request) -> Response:
        endpoint = ENDPOINTS.get(request.path_params["name"])
        if endpoint is None:
            raise HTTPException(404)
        asked = endpoint.of(request.query_params)
        return JSONResponse(await in_daemon_thread(partial(asked.answer, tree)))

    return Starlette(
        routes=[
            Route("/", page),
            Route("/assets/{name}", assets),
            Route("/api/{name}", api),
        ],
        middleware=[Middleware(Guard, hosts=hosts, token=token)],
        exception_handlers={HTTPException: _unknown, Exception: _failed, HierindexError: _wrong},
    )


def asset(name: str) -> Response:
    """Return a file of the page."""
    known = {path.name: path for path in PAGE.iterdir()}
    if name not in known:
        raise HTTPException(404)
    path = known[name]
    return Response(path.read_bytes(), media_type=TYPES[path.suffix])


async def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _sentence(f"There is nothing at {request.url.path}.", error.status_code)


async def _wrong(request: Request, error: Exception) -> Response:
    statuses = {IndexNotFoundError: 404, InputError: 400}
    found = (status for kind, status in statuses.items() if isinstance(error, kind))
    return _sentence(str(error), next(found, 500))


async def _failed(request: Request, error: Exception) -> Response:
    return _sentence(str(damage(error) or f"{type(error).__name__}: {error}"), 500)


def _sentence(sentence: str, status: int) -> Response:
    return JSONResponse({"error": sentence}, status)
