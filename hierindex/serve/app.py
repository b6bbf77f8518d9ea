"""A web application of endpoints that read an index, and its description by OpenAPI."""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from inspect import getdoc
from typing import Any

from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from hierindex import __version__
from hierindex.errors import HierindexError
from hierindex.index import HierarchicalIndex
from hierindex.serve.endpoint import GENERATION, Endpoint, Places, status_of
from hierindex.store.connection import damage
from hierindex.threads import in_daemon_thread

logger: logging.Logger = logging.getLogger(__name__)

MOST_BYTES = 2**16  # of the body of a request
TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "Needed where other machines can ask; the server says it when it starts.",
}
ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string", "description": "A sentence."}},
    "required": ["error"],
}


def application(
    index: HierarchicalIndex,
    endpoints: Mapping[str, type[Endpoint]],
    pages: Sequence[BaseRoute] = (),
    at: str = "/api/",
) -> Starlette:
    """Return the application: pages, the endpoints by their names, and a description of those.

    Each request is answered from the generation that is the newest then, and the header
    `Hierindex-Generation` has its number. An error is a JSON object `{"error": sentence}`. The
    description at `/openapi.json` is that of OpenAPI 3.1.
    """
    by_path = {at + name: endpoint for name, endpoint in endpoints.items()}
    description = described(by_path)

    async def openapi(request: Request) -> Response:
        return JSONResponse(description)

    routes = [
        Route(path, _answering(endpoint, index), methods=[endpoint.method])
        for path, endpoint in by_path.items()
    ]
    routes.append(Route("/openapi.json", openapi))
    return Starlette(routes=[*pages, *routes], exception_handlers={HTTPException: _refused})


def _answering(
    endpoint: type[Endpoint], index: HierarchicalIndex
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """Return a function that answers the requests of an endpoint."""
    places = Places()

    async def answer(request: Request) -> Response:
        headers = dict[str, str]()
        body = await _body(request) if endpoint.method == "POST" else b""
        try:
            with places.one():
                asked = endpoint.parsed(request.query_params, body)
                answer = await in_daemon_thread(partial(asked.answer, index, headers))
                return JSONResponse(answer, headers=headers)
        except HierindexError as error:
            return _sentence(str(error), status_of(error), headers)
        except Exception as error:  # a sentence, as on the command line
            known = damage(error)
            if known is None:
                logger.error("%s failed.", request.url.path, exc_info=True)
            return _sentence(str(known or f"{type(error).__name__}: {error}"), 500, headers)

    return answer


async def _body(request: Request) -> bytes:
    """Return the body; of one that is too long, read all but keep nothing."""
    body, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        body = body + chunk if size <= MOST_BYTES else bytearray()
    if size > MOST_BYTES:
        raise HTTPException(413, f"The body of a request has at most {MOST_BYTES:,} bytes")
    return bytes(body)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _sentence(f"{error.detail}: {request.method} {request.url.path}.", error.status_code)


def _sentence(sentence: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": sentence}, status, headers)


def described(endpoints: Mapping[str, type[Endpoint]]) -> dict[str, Any]:
    """Return the description of endpoints by their paths, as a document of OpenAPI 3.1."""
    schemas: dict[str, Any] = {"Error": ERROR}

    def schema_of(kind: Any) -> dict[str, Any]:
        schema = TypeAdapter(kind).json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        return schema

    def operation(endpoint: type[Endpoint]) -> dict[str, Any]:
        asked = schema_of(endpoint)
        for name, most in endpoint.most.items():
            asked["properties"][name]["maximum"] = most
        found = _response("The answer.", schema_of(endpoint.reply))
        number = {"schema": {"type": "integer"}, "description": "The generation that answers."}
        return {
            "operationId": endpoint.__name__.lower(),
            "summary": (getdoc(endpoint) or "").partition("\n")[0],
            **(_request_body(asked) if endpoint.method == "POST" else _parameters(asked)),
            "responses": {
                "200": {**found, "headers": {GENERATION: number}},
                "default": _response("An error.", {"$ref": "#/components/schemas/Error"}),
            },
        }

    paths = {path: {each.method.lower(): operation(each)} for path, each in endpoints.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "hierindex", "version": __version__},
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": TOKEN}},
    }


def _response(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _request_body(asked: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": asked}}}}


def _parameters(asked: dict[str, Any]) -> dict[str, Any]:
    required = asked.get("required", ())
    return {
        "parameters": [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in asked["properties"].items()
        ]
    }
