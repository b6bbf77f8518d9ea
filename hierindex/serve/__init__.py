"""Servers of an index: a web page for people, and an HTTP API for programs.

Both need the extra `serve`. `hierindex mcp` is for agents.
"""

from typing import TYPE_CHECKING

from hierindex.errors import extra
from hierindex.settings import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hierindex.index import HierarchicalIndex
    from hierindex.models.adapters import LLMLike
    from hierindex.serve.explorer.server import Explorer
    from hierindex.serve.http_api import QuestionServer

__all__ = ["explore", "serve"]


def explore(
    index: "HierarchicalIndex",
    port: int | None = None,
    host: str = HOST,
    llm: "LLMLike | None" = None,
) -> "Explorer":
    """Start the explorer, a web page for an index, in a thread; see `Explorer`.

    Parameters
    ----------
    index : HierarchicalIndex
    port : int, optional
        By default 8733, or a free port if it is in use; 0 for a free port.
    host : str
        Address to listen on. By default only this machine can connect, all of its users.
    llm : LLM or callable, optional
        Language model that answers; by default answers quote passages.

    Returns
    -------
    Explorer
        Use it in a `with` block, which closes the server.

    Raises
    ------
    InputError
        If the extra `serve` is not installed, or the address or port cannot be used.
    """
    with extra("serve", "The explorer needs"):
        from hierindex.serve.explorer.server import Explorer
    return Explorer(index, port, host, llm)


def serve(
    index: "HierarchicalIndex | Mapping[str, HierarchicalIndex]",
    port: int | None = None,
    host: str = HOST,
    llm: "LLMLike | None" = None,
) -> "QuestionServer":
    """Start the HTTP API in a thread; see `QuestionServer`.

    Parameters
    ----------
    index : HierarchicalIndex or mapping of str to HierarchicalIndex
        With several indexes, paths begin with the index's name: `/minutes/query`.
    port : int, optional
        By default 8734, or a free port if it is in use; 0 for a free port.
    host : str
        Address to listen on. By default only this machine can connect, all of its users.
    llm : LLM or callable, optional
        Language model that answers; by default answers quote passages.

    Returns
    -------
    QuestionServer
        Use it in a `with` block, which closes the server.

    Raises
    ------
    InputError
        If the extra `serve` is not installed, or the address or port cannot be used, or a name
        contains other characters than letters, digits, underscores, hyphens and dots.
    """
    with extra("serve", "The server needs"):
        from hierindex.serve.http_api import QuestionServer
    return QuestionServer(index, port, host, llm)
