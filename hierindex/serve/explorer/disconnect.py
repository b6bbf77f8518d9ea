"""Requests whose clients have disconnected."""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from hierindex.threads import may_be_given_up


class DisconnectAware:
    """An ASGI application in which `is_given_up` tells whether a request's client is gone.

    For requests without a body, as it reads what comes after them.

    Parameters
    ----------
    app : ASGIApp
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with may_be_given_up() as given_up:

            async def note() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                given_up.set()

            noting = asyncio.create_task(note())
            try:
                await self._app(scope, receive, send)
            finally:
                noting.cancel()
