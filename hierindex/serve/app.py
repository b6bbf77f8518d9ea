"""A web application of endpoints that read indexes."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from hierindex.index import HierarchicalIndex
from hierindex.serve.endpoint import Endpoint, sentence_on, showing, status_of
from hierindex.threads import Pool, in_daemon_thread

MOST_BYTES = 2**16  # of the body of a request
AT_ONCE = 16  # requests of an endpoint that are answered; more would only wait for each other
EVENTS = "text/event-stream"
GONE = 499  # of a client, as nginx has it


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
