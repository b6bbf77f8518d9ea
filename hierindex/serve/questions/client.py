"""Questions of a command, which the server of an index answers if one runs."""

import json
from http.client import OK, HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from hierindex.serve.endpoint import STATUSES, Endpoint
from hierindex.serve.questions.local_socket import connected, identity

FOR = "Hierindex-For"
"""The header for which server a request is, see `identity`; another one does not answer it."""


def answer_to(asked: Endpoint, uri: str) -> dict[str, Any]:
    """Return the answer of the server of an index, or of this process if none can be asked."""
    reply = None if "://" in uri else reply_to(asked, Path(uri))
    if reply is not None:
        return reply
    from hierindex.respond.answering_tree import AnsweringTree
    from hierindex.store.table import Table

    return asked.answer(AnsweringTree(Table.of(uri)), {})


def reply_to(asked: Endpoint, folder: Path) -> dict[str, Any] | None:
    """Return the answer of the server of a folder; None if none of this version can be asked.

    Raises
    ------
    HierindexError
        If the request cannot be answered, as it would be in this process.
    """
    connection, path = _Connection(folder), f"/{type(asked).__name__.lower()}"
    try:
        headers = {FOR: identity(folder)}
        connection.request(asked.method, path, asked.model_dump_json().encode(), headers)
        response = connection.getresponse()
        reply = json.loads(response.read())
    except (OSError, HTTPException, ValueError):  # it was stopped or killed, or is another user's
        return None
    finally:
        connection.close()
    match reply:
        case {"error": str(sentence)} if response.status in STATUSES:
            raise STATUSES[response.status](sentence)
        case dict() if response.status == OK:
            return reply
    return None


class _Connection(HTTPConnection):
    """A connection by the socket in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__("localhost")
        self._folder = folder

    def connect(self) -> None:
        self.sock = connected(self._folder)
