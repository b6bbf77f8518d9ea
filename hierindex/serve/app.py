"""A web application of endpoints that read indexes, with an OpenAPI description."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from html import escape
from inspect import getdoc
from itertools import chain, starmap
from typing import Any

from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from typing_extensions import TypedDict  # before Python 3.12, pydantic reads no other

from hierindex import __version__
from hierindex.index import HierarchicalIndex
from hierindex.serve.endpoint import Endpoint, sentence_on, showing, status_of
from hierindex.threads import Pool, in_daemon_thread

MOST_BYTES = 2**16  # of the body of a request
AT_ONCE = 16  # requests of an endpoint that are answered; more would only wait for each other
EVENTS = "text/event-stream"
GONE = 499  # of a client, as nginx has it
STREAMS = (
    "With the header `Accept: text/event-stream`, the text of an answer comes as it is written, in "
    "events `text` before the event `answer`."
)
TOKEN = {"type": "http", "scheme": "bearer"}


PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<meta name="viewport" content="width=device-width">
<title>hierindex</title>
</head>
<body>
<h1>hierindex</h1>
<p>Requests and replies are JSON; <a href="/openapi.json">openapi.json</a> describes all fields.</p>
{}
</body>
</html>
"""


class Error(TypedDict):
    """A request that was refused or failed."""

    error: str


def application(
    indexes: Mapping[str, HierarchicalIndex],
    endpoints: Mapping[str, type[Endpoint]],
    pages: Sequence[BaseRoute],
    at: str = "/",
) -> Starlette:
    """Return the application of pages, and of endpoints by name.

    The path of an endpoint is the name of its index (unless that is empty), `at`, and its own name.
    Each request is answered from the newest generation; the header `Hierindex-Generation` has its
    number. A client that accepts events receives the pieces of an answer's text as events `text`,
    then the whole answer as `answer`, or an `error`. An error is a JSON object
    `{"error": sentence}`.
    """
    above = "" if "" in indexes else "/{index}"
    routes = [
        Route(f"{above}{at}{name}", _answering(each, indexes), methods=[each.method])
        for name, each in endpoints.items()
    ]
    return Starlette(routes=[*pages, *routes], exception_handlers={HTTPException: _refused})


def description(names: Sequence[str], endpoints: Mapping[str, type[Endpoint]]) -> list[BaseRoute]:
    """Return the routes of `described`: `/openapi.json`, and as a page `/` and `/docs`."""
    found = described(endpoints, names)

    async def openapi(request: Request) -> Response:
        return JSONResponse(found)

    async def page(request: Request) -> Response:
        return HTMLResponse(PAGE.format("\n".join(_sections(found))))

    return [Route("/openapi.json", openapi), Route("/", page), Route("/docs", page)]


def _sections(description: Mapping[str, Any]) -> Iterator[str]:
    """Yield the HTML of each endpoint, with its fields."""
    schemas = description["components"]["schemas"]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            if method == "parameters":
                continue
            body = operation.get("requestBody", {"content": {"": {"schema": {}}}})["content"]
            (content,) = body.values()
            fields = schemas.get(content["schema"].get("$ref", "").rpartition("/")[2], {})
            rows = "\n".join(starmap(_row, fields.get("properties", {}).items()))
            yield f"<h2><code>{method.upper()} {path}</code></h2>"
            yield f"<p>{escape(operation['summary'])}</p>"
            yield f"<table><tbody>\n{rows}\n</tbody></table>" if rows else ""


def _row(name: str, field: Mapping[str, Any]) -> str:
    kinds = [each.get("type", "") for each in field.get("anyOf", [field])]
    kind = " or ".join(each for each in kinds if each not in ("", "null"))
    said = escape(field.get("description", ""))
    return f'<tr><th scope="row">{name}</th><td>{kind}</td><td>{said}</td></tr>'


def _answering(
    endpoint: type[Endpoint], indexes: Mapping[str, HierarchicalIndex]
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """Return a function that answers the requests of an endpoint in threads of its own."""
    pool = Pool(AT_ONCE)  # so that quick endpoints do not wait for a language model

    async def answer(request: Request) -> Response:
        index = indexes.get(name := request.path_params.get("index", ""))
        if index is None:
            raise HTTPException(404, f"There is no index {name!r}; there are {', '.join(indexes)}")
        headers = dict[str, str]()
        body = await _body(request) if endpoint.method == "POST" else b""
        loop, pieces = asyncio.get_running_loop(), asyncio.Queue[str | None]()
        streams = EVENTS in request.headers.get("accept", "")

        def answered() -> Mapping[str, Any]:
            if streams:  # in the context of this thread
                showing.set(lambda piece: loop.call_soon_threadsafe(pieces.put_nowait, piece))
            return endpoint.parsed(request.query_params, body).answer(index, headers)

        answering = asyncio.ensure_future(in_daemon_thread(answered, pool))
        answering.add_done_callback(lambda _: pieces.put_nowait(None))
        leaving = asyncio.ensure_future(_left(request, answering))
        first = await pieces.get()
        leaving.cancel()
        try:
            if streams and (first is not None or answering.result()):
                events = _events(first, pieces, answering)
                return StreamingResponse(events, headers=headers, media_type=EVENTS)
            return JSONResponse(answering.result(), headers=headers)
        except asyncio.CancelledError:
            return Response(status_code=GONE)  # which nobody reads
        except Exception as error:  # noqa: BLE001  # a sentence, as on the command line
            return JSONResponse({"error": sentence_on(error)}, status_of(error), headers)

    return answer


async def _left(request: Request, answering: "asyncio.Future[Any]") -> None:
    """Wait until the client has disconnected, and abandon the answer."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    answering.cancel()


async def _events(
    piece: str | None,
    pieces: "asyncio.Queue[str | None]",
    answering: "asyncio.Future[Mapping[str, Any]]",
) -> AsyncIterator[str]:
    """Yield the pieces of an answer's text, and then the answer."""
    try:
        while piece is not None:
            yield _event("text", {"text": piece}) if piece else ""
            piece = await pieces.get()
        yield _event("answer", await answering)
    except Exception as error:  # noqa: BLE001  # which is too late for the status
        yield _event("error", {"error": sentence_on(error)})
    finally:
        answering.cancel()


def _event(name: str, data: Mapping[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


async def _body(request: Request) -> bytes:
    """Return the body of a request; a body that is too long is read but not kept."""
    body, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        body = body + chunk if size <= MOST_BYTES else bytearray()
    if size > MOST_BYTES:
        raise HTTPException(413, f"The body of a request has at most {MOST_BYTES:,} bytes")
    return bytes(body)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = f"{error.detail}: {request.method} {request.url.path}."
    return JSONResponse({"error": said}, error.status_code, error.headers)


def described(endpoints: Mapping[str, type[Endpoint]], names: Sequence[str] = ()) -> dict[str, Any]:
    """Return an OpenAPI 3.1 document that describes the endpoints.

    Their requests are JSON objects, or empty. `names` are the possible values of `{index}`, with
    which a path begins.
    """
    kinds = dict.fromkeys([Error, *chain(*((each, each.reply) for each in endpoints.values()))])
    schemas, definitions = TypeAdapter.json_schemas(
        [(kind, "validation", TypeAdapter(kind)) for kind in kinds],
        ref_template="#/components/schemas/{model}",
    )

    def json_of(kind: Any) -> dict[str, Any]:
        return {"application/json": {"schema": schemas[kind, "validation"]}}

    def operation(endpoint: type[Endpoint]) -> dict[str, Any]:
        answer = {**json_of(endpoint.reply), EVENTS: {"schema": {"type": "string"}}}
        body = {"requestBody": {"required": True, "content": json_of(endpoint)}}
        return {
            "operationId": endpoint.__name__.lower(),
            "summary": (getdoc(endpoint) or "").partition("\n")[0],
            **(body if endpoint.method == "POST" else {}),
            "responses": {
                "200": {"description": "The answer.", "content": answer},
                "default": {"description": "An error.", "content": json_of(Error)},
            },
        }

    index = {"name": "index", "in": "path", "required": True, "schema": {"enum": [*names]}}
    above, shared = ("/{index}/", {"parameters": [index]}) if names else ("/", {})
    paths = {
        f"{above}{name}": {each.method.lower(): operation(each), **shared}
        for name, each in endpoints.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "hierindex", "version": __version__, "description": STREAMS},
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": definitions.get("$defs", {}),
            "securitySchemes": {"token": TOKEN},
        },
    }
