"""A server in a thread of this process, and its protection against other sites."""

import ipaddress
import secrets
import socket
import time
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import wait
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Self
from urllib.parse import parse_qs

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hierindex.errors import InputError
from hierindex.threads import started

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
COOKIE = "hierindex-token-"  # and the port, as a browser sends those of all ports
DEFAULT_PORT = 80  # which browsers leave out

MOST_AT_ONCE = 100  # connections and requests; further requests get the status 503
PATIENCE = 2  # seconds for the requests that are being answered when it is closed


@dataclass(frozen=True)
class Guard:
    """An ASGI middleware that refuses requests from pages of other sites.

    A link to the page from another site is allowed, because the page itself contains no data.

    Parameters
    ----------
    app : ASGIApp
    hosts : collection of str, optional
        Accepted values of the header Host, in lower case, see `hosts_of`. By default all are
        accepted; then a token is needed. This protects against DNS rebinding: a page of another
        site whose name was made to resolve to this address still sends its own name.
    token : str, optional
        If given, a request needs it in the header `Authorization: Bearer TOKEN` or in a cookie. The
        cookie is set by opening the page's address with the token.
    """

    app: ASGIApp
    hosts: Collection[str] | None = None
    token: str | None = field(default=None, repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with a sentence and status 403, or 401 for a token."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            answer = self._other_answer(scope, Headers(scope=scope)) or self.app
            await answer(scope, receive, with_headers)

    def _other_answer(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "").lower()
        if self.hosts is not None and host not in self.hosts:
            return _refused(f"Nothing is answered at {host!r}; use the address that was printed.")
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return _refused("Requests of other sites are not answered.")
        is_page = scope["path"] == "/" and headers.get("sec-fetch-dest") == "document"
        site = headers.get("sec-fetch-site", "none")
        if not is_page and site not in ("same-origin", "none"):
            return _refused("Requests of other sites are not answered.")
        cookie = f"{COOKIE}{scope['server'][1]}"
        cookies = cookie_parser(headers.get("cookie", ""))
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        given = (bearer, cookies.get(cookie, ""))
        if self.token is None or any(_same(each, self.token) for each in given):
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] != "/" or not _same(query.get("token", [""])[0], self.token):
            said = "open the address that was printed, or send the header 'Authorization: Bearer"
            asked = {"WWW-Authenticate": "Bearer"}
            return JSONResponse({"error": f"A token is needed: {said} TOKEN'."}, 401, asked)
        welcome = RedirectResponse("/", 303)  # so that the token is not in the address bar
        welcome.set_cookie(cookie, self.token, httponly=True, samesite="lax")
        return welcome


def hosts_of(names: Iterable[str], port: int) -> set[str]:
    """Return the values of the header Host that browsers send for names of a server.

    >>> sorted(hosts_of(["Desk"], 80))
    ['desk', 'desk:80']
    """
    names = [name.lower() for name in names]
    return {f"{name}:{port}" for name in names} | ({*names} if port == DEFAULT_PORT else set())


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


def _refused(sentence: str) -> Response:
    return JSONResponse({"error": sentence}, 403)


def _listening(host: str, ports: Iterable[int]) -> socket.socket:
    """Return a socket that listens at the first free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in ports:
        try:
            bound = socket.create_server((host, number), family=family)
        except (OSError, OverflowError) as error:
            reason = error
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
    """A server in a thread, which answers until it is closed or at the end of a `with` block.

    Parameters
    ----------
    app : ASGIApp
    host : str
        Address to listen on.
    ports : iterable of int
        The first free one is used; 0 is any.
    warm : iterable of callable
        Called in threads at the start, so that the first request does not wait.

    Attributes
    ----------
    url : str
        URL of the root, without the token.
    page : str
        The same with the token, if there is one, to open in a browser.
    token : str or None
        If other machines can reach `host`, requests need the header `Authorization: Bearer TOKEN`.
        Otherwise None.

    Raises
    ------
    InputError
        If no port is free.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        ports: Iterable[int],
        warm: Iterable[Callable[[], object]] = (),
    ) -> None:
        bound = _listening(host, ports)
        number = bound.getsockname()[1]
        is_own, is_every = _is_loopback(host), host in ("0.0.0.0", "::")
        self.token: str | None = None if is_own else secrets.token_urlsafe(16)
        name = socket.gethostname() if is_every else f"[{host}]" if ":" in host else host
        names = [name, *(("localhost", "127.0.0.1", "[::1]") if is_own else ())]
        self.url: str = f"http://{name}:{number}/"
        self.page: str = f"{self.url}?token={self.token}" if self.token else self.url
        config = uvicorn.Config(
            Guard(app, None if is_every else hosts_of(names, number), self.token),
            limit_concurrency=MOST_AT_ONCE,
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
        Thread(target=self._serve, args=([bound],), daemon=True).start()
        while not (self._server.started or self._ended.is_set()):
            time.sleep(0.001)  # or a signal before that would end the thread with an error
        self._warming = [*map(started, warm)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server; running requests are given 2 seconds."""
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
