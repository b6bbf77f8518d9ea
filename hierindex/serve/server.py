"""A server in a thread of this process: where it listens, and who may ask it there."""

import ipaddress
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterable
from concurrent.futures import wait
from dataclasses import dataclass
from threading import Event, Thread
from typing import Self

import uvicorn
from starlette.types import ASGIApp

from hierindex.errors import InputError
from hierindex.serve.guard import Guard, hosts_of
from hierindex.threads import started

PATIENCE = 2  # seconds for the requests that are being answered when it is closed


@dataclass(frozen=True)
class Address:
    """A host and port that are listened at.

    Parameters
    ----------
    bound : socket
    url : str
        Of the root, with the token if there is one.
    hosts : set of str, optional
        Values of the header Host that are answered; None for all.
    token : str, optional
        Which a request needs. Given if other machines can reach the address.
    """

    bound: socket.socket
    url: str
    hosts: set[str] | None
    token: str | None

    @classmethod
    def at(cls, host: str, ports: Iterable[int]) -> Self:
        """Listen at the first port that is free, 0 for any; raise InputError if none is."""
        bound = _bound(host, ports)
        number = bound.getsockname()[1]
        own, every = _is_loopback(host), host in ("0.0.0.0", "::")
        token = None if own else secrets.token_urlsafe(16)
        name = socket.gethostname() if every else f"[{host}]" if ":" in host else host
        names = [name, *(("localhost", "127.0.0.1", "[::1]") if own else ())]
        url = f"http://{name}:{number}/" + (f"?token={token}" if token else "")
        return cls(bound, url, None if every else hosts_of(names, number), token)


def _bound(host: str, ports: Iterable[int]) -> socket.socket:
    """Return a listening socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in ports:
        try:
            bound = socket.create_server((host, number), family=family)
        except OSError as error:
            code = error.errno or 0
            reason = os.strerror(code) if code > 0 else str(error.strerror)
        except OverflowError:
            reason = "a port is a number from 0 to 65535"
        else:  # asyncio sees that the socket is of TCP by its number only, and waits 40 ms
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return bound
    raise InputError(f"Cannot listen on {host}:{number}: {reason}.")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Server:
    """A server that answers until it is closed, as by the end of `with`.

    Parameters
    ----------
    app : ASGIApp
    address : Address
    warm : callable, optional
        Called in a thread at the start, so that the first request need not wait.

    Attributes
    ----------
    url : str
    token : str or None
        Which a request needs.
    """

    def __init__(
        self, app: ASGIApp, address: Address, warm: Callable[[], object] | None = None
    ) -> None:
        config = uvicorn.Config(
            Guard(app, address.hosts, address.token),
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
        self.url: str = address.url
        self.token: str | None = address.token
        self._server = uvicorn.Server(config)
        self._ended = Event()  # as a signal during `Thread.join` ends that, but not the thread
        Thread(target=self._serve, args=([address.bound],), daemon=True).start()
        while not (self._server.started or self._ended.is_set()):
            time.sleep(0.001)  # or a signal before that would end the thread with an error
        self._warming = [] if warm is None else [started(warm)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop; requests that are being answered are given 2 seconds."""
        self._server.should_exit = True
        self._ended.wait()
        wait(self._warming)

    def wait(self) -> None:
        """Wait until the server is closed or this thread is interrupted."""
        while not self._ended.wait(0.5):
            pass

    def _serve(self, bound: list[socket.socket]) -> None:
        try:
            self._server.run(bound)
        finally:
            self._ended.set()
