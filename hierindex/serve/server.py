"""A server in a thread of this process."""

import socket
import time
from collections.abc import Sequence
from threading import Event, Thread
from typing import Self

import uvicorn
from starlette.types import ASGIApp

PATIENCE = 2  # seconds for the requests that are being answered when it is closed


class Server:
    """A server that answers until it is closed, as by the end of `with`.

    Parameters
    ----------
    app : ASGIApp
    bound : sequence of socket
        Listening sockets.
    """

    def __init__(self, app: ASGIApp, bound: Sequence[socket.socket]) -> None:
        config = uvicorn.Config(
            app,
            access_log=False,
            http="h11",
            lifespan="on",
            log_config=None,
            log_level="critical",
            loop="asyncio",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=PATIENCE,
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._ended = Event()  # as a signal during `Thread.join` ends that, but not the thread
        Thread(target=self._serve, args=([*bound],), daemon=True).start()
        while not (self._server.started or self._ended.is_set()):
            time.sleep(0.001)  # or a signal before that would end the thread with an error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop; requests that are being answered are given 2 seconds."""
        self._server.should_exit = True
        self._ended.wait()

    def wait(self) -> None:
        """Wait until the server is closed or this thread is interrupted."""
        while not self._ended.wait(0.5):
            pass

    def _serve(self, bound: list[socket.socket]) -> None:
        try:
            self._server.run(bound)
        finally:
            self._ended.set()
