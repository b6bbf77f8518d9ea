"""Which requests the explorer's server answers, and the headers of its answers."""

import secrets
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
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
COOKIE = "hierindex-token"


class Guard:
    """An ASGI application that refuses what another site or a stranger asks of another one.

    Parameters
    ----------
    app : ASGIApp
    hosts : collection of str, optional
        Values of the header Host that are answered; by default all, which needs a token. A page of
        another site that has its name resolved to this address (DNS rebinding) sends its own.
    token : str, optional
        If given, it must be in the URL of the first request and is then kept in a cookie.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None, token: str | None) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with a sentence."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        if scope["type"] == "http":
            answer = self._refusal(scope) or self._app
            await answer(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._hosts is not None and host not in self._hosts:
            return _refused(f"The host {host!r} is not served; open the address that was printed.")
        is_page = scope["path"] == "/" and headers.get("sec-fetch-dest") == "document"
        site = headers.get("sec-fetch-site", "none")
        if origin not in (None, f"http://{host}") or not (
            is_page or site in ("same-origin", "none")
        ):
            return _refused("Requests of other sites are not answered.")
        return None if self._token is None else self._unknown(scope, headers, self._token)

    def _unknown(self, scope: Scope, headers: Headers, token: str) -> Response | None:
        """Return an answer to a request without the token, or with the token in its URL."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and _same(given, token):
            found = RedirectResponse("/", 303)
            found.set_cookie(COOKIE, token, httponly=True, samesite="lax")
            return found
        if _same(_cookie(headers.get("cookie", "")), token):
            return None
        return _refused("Open the address that was printed, with its token.")


def _cookie(header: str) -> str:
    try:
        cookies = SimpleCookie(header)
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())


def _refused(sentence: str) -> Response:
    return JSONResponse({"error": sentence}, 403)
