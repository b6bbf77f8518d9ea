"""Which requests a server answers, and with which headers."""

import secrets
from collections.abc import Collection, Iterable
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


class Guard:
    """An ASGI application that answers another one's requests, unless a foreign page sends them.

    A link to the page from elsewhere is answered, as the page has no data.

    Parameters
    ----------
    app : ASGIApp
    hosts : collection of str, optional
        Values of the header Host that are answered, in lower case, see `hosts_of`; by default all,
        which needs a token. A page
        of another site whose name was made to stand for this address, by "DNS rebinding", sends
        its own name.
    token : str, optional
        If given, a request needs it in the header `Authorization: Bearer TOKEN`, or in a cookie,
        which the address of the page with the token sets.
    """

    def __init__(
        self, app: ASGIApp, hosts: Collection[str] | None = None, token: str | None = None
    ) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with a sentence and status 403, or 401 for a token."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            answer = self._other_answer(scope, Headers(scope=scope)) or self._app
            await answer(scope, receive, with_headers)

    def _other_answer(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "").lower()
        if self._hosts is not None and host not in self._hosts:
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
        if self._token is None or any(_same(each, self._token) for each in given):
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] != "/" or not _same(query.get("token", [""])[0], self._token):
            said = "open the address that was printed, or send the header 'Authorization: Bearer"
            asked = {"WWW-Authenticate": "Bearer"}
            return JSONResponse({"error": f"A token is needed: {said} TOKEN'."}, 401, asked)
        welcome = RedirectResponse("/", 303)  # so that the token is not in the address bar
        welcome.set_cookie(cookie, self._token, httponly=True, samesite="lax")
        return welcome


def hosts_of(names: Iterable[str], port: int) -> set[str]:
    """Return what browsers send as the header Host for names of a server.

    >>> sorted(hosts_of(["Desk"], 80))
    ['desk', 'desk:80']
    """
    names = [name.lower() for name in names]
    return {f"{name}:{port}" for name in names} | ({*names} if port == DEFAULT_PORT else set())


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


def _refused(sentence: str) -> Response:
    return JSONResponse({"error": sentence}, 403)
