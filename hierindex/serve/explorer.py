"""The explorer's server, which runs in a thread of this process."""

import ipaddress
import secrets
import socket
import webbrowser
from threading import Thread
from types import TracebackType
from typing import Self

import uvicorn

from hierindex.errors import InputError
from hierindex.respond.answering_tree import AnsweringTree
from hierindex.serve.app import explorer_app

PORT = 8733
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Explorer:
    """A server of the explorer, which answers until it is closed.

    Parameters
    ----------
    tree : AnsweringTree
    port : int, optional
        By default 8733, or a free one if that is taken; 0 for a free one.
    host : str
        Address to serve at. One that other machines reach needs a token, which `url` has.
    """

    def __init__(
        self, tree: AnsweringTree, port: int | None = None, host: str = "127.0.0.1"
    ) -> None:
        bound = _bound(host, port)
        self.port: int = bound.getsockname()[1]
        local = _is_loopback(host)
        self.token = None if local else secrets.token_urlsafe(16)
        named = f"[{host}]" if ":" in host else host
        self.url = f"http://{named}:{self.port}/"
        self.address = self.url + (f"?token={self.token}" if self.token else "")
        names = [*LOOPBACK, named] if local else [named]
        hosts = None if _is_any(host) else [f"{name}:{self.port}" for name in names]
        app = explorer_app(tree, hosts, self.token)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                loop="asyncio",
                http="h11",
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=2,
            )
        )
        self._thread = Thread(target=self._server.run, args=([bound],), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Answer the requests that came in, for up to 2 seconds, and stop."""
        self._server.should_exit = True
        self._thread.join()

    def open_browser(self) -> None:
        """Open the page in the user's browser."""
        webbrowser.open(self.address)

    def wait(self) -> None:
        """Wait until the server is closed, or this thread is interrupted."""
        while self._thread.is_alive():
            self._thread.join(0.5)


def _bound(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for each in (PORT, 0) if port is None else (port,):
        try:
            bound = socket.create_server((host, each), family=family)
        except OSError as error:
            reason = error
        else:  # asyncio sets it for sockets of another make alone; else each answer waits 40 ms
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return bound
    raise InputError(f"{host}:{port} cannot be served: {reason.strerror}; choose another --port.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
