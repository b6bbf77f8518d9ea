"""The server of questions."""

import logging
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hierindex.errors import HierindexError, InputError
from hierindex.respond.answering_tree import AnsweringTree
from hierindex.serve.address import Address
from hierindex.serve.app import application
from hierindex.serve.guard import Guard
from hierindex.serve.questions.client import FOR, reply_to
from hierindex.serve.questions.endpoints import ENDPOINTS, Health, Query
from hierindex.serve.questions.local_socket import identity, listening
from hierindex.serve.server import Server
from hierindex.threads import started

logger = logging.getLogger(__name__)

PORT = 8734
MISDIRECTED = 421


class QuestionServer(Server):
    """A server of questions, which answers until it is closed, as by the end of `with`.

    `hierindex query`, `outline` and `show` of the same user ask it by a socket in the folder of
    the index; others by HTTP, see `/openapi.json`.

    Parameters
    ----------
    tree : AnsweringTree
    port : int, optional
        By default 8734, or a free one if that is taken; 0 for a free one.
    host : str
        Address to serve at. If other machines can reach it, there is a token.

    Attributes
    ----------
    url : str
    token : str or None
        Without it in the header `Authorization: Bearer TOKEN`, nothing is answered by HTTP.

    Raises
    ------
    InputError
        If nothing can be served at the address or port, or another server answers for the index.
    """

    def __init__(
        self, tree: AnsweringTree, port: int | None = None, host: str = "127.0.0.1"
    ) -> None:
        app, uri = application(tree, ENDPOINTS, at="/"), tree.store.uri
        with ExitStack() as opened:
            if "://" not in uri:
                _listen(app, Path(uri).absolute(), opened)
            address = Address.at(host, (PORT, 0) if port is None else (port,))
            self._opened = opened.pop_all()
        self.token = address.token
        self.url = address.url.partition("?")[0]
        super().__init__(Guard(app, address.hosts, address.token), [address.bound])
        started(partial(Query(question="Is all loaded?").answer, tree, {}))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def close(self) -> None:
        """Stop; requests that are being answered are given 2 seconds."""
        super().close()
        self._opened.close()


def _listen(app: ASGIApp, folder: Path, opened: ExitStack) -> None:
    """Answer by the socket in a folder until a stack is closed."""
    try:
        bound = opened.enter_context(listening(folder))
    except BlockingIOError:
        raise InputError(
            f"The index {str(folder)!r} is served by {_other(folder)} already; ask that one, or "
            "stop it."
        ) from None
    except OSError as error:
        logger.warning(
            "No socket can be made in %r (%s), so commands answer questions by themselves.",
            str(folder),
            error.strerror or error,
        )
    else:
        opened.enter_context(Server(_meant_for(app, folder), [bound]))


def _other(folder: Path) -> str:
    """Return the name of the server that answers for a folder."""
    try:
        return f"process {(reply_to(Health(), folder) or {})['process']}"
    except (HierindexError, KeyError):
        return "another process"


def _meant_for(app: ASGIApp, folder: Path) -> ASGIApp:
    """Return an application that refuses requests for another server, see `FOR`."""

    def is_meant(scope: Scope) -> bool:
        try:
            return scope["type"] != "http" or Headers(scope=scope).get(FOR) in (
                None,
                identity(folder),
            )
        except OSError:  # the folder was moved or deleted
            return False

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await (app if is_meant(scope) else refusal)(scope, receive, send)

    refusal = JSONResponse({"error": "The request is for another server."}, MISDIRECTED)

    return answer
