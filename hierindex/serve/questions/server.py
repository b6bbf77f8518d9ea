"""The server of questions."""

import logging
import os
from concurrent.futures import wait
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Self

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hierindex.errors import InputError
from hierindex.respond.answering_tree import AnsweringTree
from hierindex.serve.app import application
from hierindex.serve.guard import Guard
from hierindex.serve.questions.client import FOR
from hierindex.serve.questions.endpoints import ENDPOINTS, Query
from hierindex.serve.questions.local_socket import identity, listening, process_of
from hierindex.serve.server import Address, Server
from hierindex.threads import started

logger = logging.getLogger(__name__)

LOOPBACK, PORT = "127.0.0.1", 8734
MISDIRECTED = 421


class QuestionServer:
    """A server of questions, which answers until it is closed, as by the end of `with`.

    `hierindex query`, `outline` and `show` of the same user ask it by a socket in the folder of
    the index. With a port or a host, other programs ask it by HTTP, see `/openapi.json`.

    Parameters
    ----------
    tree : AnsweringTree
    port : int, optional
        Every user of this machine can ask there; 0 for a free one. If only a host is given, or the
        index is in an object store, by default 8734, or a free one if that is taken.
    host : str, optional
        Address to serve at, by default 127.0.0.1. If other machines can reach it, there is a token.

    Attributes
    ----------
    url : str or None
        None if there is neither a port nor a host.
    token : str or None
        Without it in the header `Authorization: Bearer TOKEN`, nothing is answered by HTTP.

    Raises
    ------
    InputError
        If nothing can be served at the address or port, or another server answers for the index.
    """

    def __init__(
        self, tree: AnsweringTree, port: int | None = None, host: str | None = None
    ) -> None:
        app, uri = application(tree, ENDPOINTS, at="/"), tree.table.connection.uri
        self.url: str | None = None
        self.token: str | None = None
        with ExitStack() as opened:
            server = None if "://" in uri else _in_folder(app, Path(uri).absolute(), opened)
            if server is None or port is not None or host is not None:
                address = Address.at(host or LOOPBACK, (PORT, 0) if port is None else (port,))
                self.url, self.token = address.url.partition("?")[0], address.token
                guarded = Guard(app, address.hosts, address.token)
                server = opened.enter_context(Server(guarded, [address.bound]))
            self._server = server
            self._warming = started(partial(Query(question="Is all loaded?").answer, tree, {}))
            self._opened = opened.pop_all()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop; requests that are being answered are given 2 seconds."""
        self._opened.close()
        wait([self._warming])

    def wait(self) -> None:
        """Wait until the server is closed or this thread is interrupted."""
        self._server.wait()


def _in_folder(app: ASGIApp, folder: Path, opened: ExitStack) -> Server | None:
    """Answer by the socket in a folder until a stack is closed, if one can be made."""
    try:
        bound = opened.enter_context(listening(folder))
    except BlockingIOError:
        process = process_of(folder)
        raise InputError(
            f"The index {str(folder)!r} is served already by "
            + (
                "this process; close that server first."
                if process == str(os.getpid())
                else f"process {process or 'unknown'}; ask that one, or stop it."
            )
        ) from None
    except OSError as error:
        logger.warning(
            "No socket can be made in %r (%s), so commands answer questions by themselves.",
            str(folder),
            error.strerror or error,
        )
        return None
    return opened.enter_context(Server(_meant_for(app, folder), [bound]))


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
