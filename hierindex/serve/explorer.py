"""The explorer's server, in a thread of this process."""

import ipaddress
import secrets
import socket
import webbrowser
from functools import partial
from threading import Thread
from typing import Self

import uvicorn

from hierindex.errors import InputError
from hierindex.respond.answering_tree import AnsweringTree
from hierindex.serve.app import explorer_app
from hierindex.serve.endpoints import Index
from hierindex.threads import started

PORT = 8733
PATIENCE = 2  # seconds for the requests that are being answered when it is closed


class Explorer:
    """A server of the explorer, which answers until it is closed, as by the end of `with`.

    Parameters
    ----------
    tree : AnsweringTree
    port : int, optional
        By default 8733, or a free one if that is taken; 0 for a free one.
    host : str
        Address to serve at. If other machines can reach it, `url` has a token, without which
        nothing is answered.

    Attributes
    ----------
    url : str

    Raises
    ------
    InputError
        If nothing can be served at the address or port.
    """

    def __init__(
        self, tree: AnsweringTree, port: int | None = None, host: str = "127.0.0.1"
    ) -> None:
        bound = _bound(host, port)
        number = bound.getsockname()[1]
        own, every = _is_loopback(host), host in ("0.0.0.0", "::")
        token = None if own else secrets.token_urlsafe(16)
        name = socket.gethostname() if every else f"[{host}]" if ":" in host else host
        names = [name, *(("localhost", "127.0.0.1", "[::1]") if own else ())]
        hosts = None if every else {f"{each}:{number}" for each in names}
        self.url = f"http://{name}:{number}/" + (f"?token={token}" if token else "")
        config = uvicorn.Config(
            explorer_app(tree, hosts, token),
            access_log=False,
            http="h11",
            lifespan="off",
            log_config=None,
            log_level="critical",
            loop="asyncio",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=PATIENCE,
            ws="none",
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, args=([bound],), daemon=True)
        self._thread.start()
        started(partial(Index().answer, tree, {}))  # so that it is known when a browser asks

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop; requests that are being answered are given 2 seconds."""
        self._server.should_exit = True
        self._thread.join()

    def wait(self) -> None:
        """Wait until the server is closed or this thread is interrupted."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def open_browser(self) -> None:
        """Open the page in the user's browser, if there is one."""
        webbrowser.open(self.url)


def _bound(host: str, port: int | None) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in (PORT, 0) if port is None else (port,):
        try:
            bound = socket.create_server((host, number), family=family)
        except (OSError, OverflowError) as error:
            reason = error
        else:  # asyncio sees that the socket is of TCP by its number only, and waits 40 ms
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return bound
    raise InputError(f"Nothing can be served at {host}:{number}: {reason}.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
