"""A web application of endpoints that read an index."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from hierindex.errors import HierindexError, IndexNotFoundError, InputError
from hierindex.respond.answering_tree import AnsweringTree
from hierindex.serve.endpoint import Endpoint
from hierindex.store.damage import damage
from hierindex.threads import in_daemon_thread

logger = logging.getLogger(__name__)


def application(
    tree: AnsweringTree, endpoints: Mapping[str, type[Endpoint]], pages: Sequence[BaseRoute] = ()
) -> Starlette:
    """Return the application: pages, and at `/api/*` the endpoints by their names.

    Each request is answered from the generation that is the newest then, and the header
    `Hierindex-Generation` has its number. An error is a JSON object `{"error": sentence}`.
    """

    async def api(request: Request) -> Response:
        endpoint = endpoints.get(request.path_params["name"])
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

    routes = [*pages, Route("/api/{name}", api)]
    return Starlette(routes=routes, exception_handlers={HTTPException: _refused})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _sentence(f"{error.detail}: {request.method} {request.url.path}.", error.status_code)


def _status(error: HierindexError) -> int:
    if isinstance(error, IndexNotFoundError):
        return 404
    return 400 if isinstance(error, InputError) else 500


def _sentence(sentence: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence}, status, headers)
