"""Servers of an index: a page in the browser, and questions of programs over HTTP.

Both need the extra `serve`. `hierindex mcp` serves agents.
"""

from typing import TYPE_CHECKING

from hierindex.loading import extra
from hierindex.settings import HOST

if TYPE_CHECKING:
    from hierindex.index import HierarchicalIndex
    from hierindex.serve.explorer.explorer import Explorer
    from hierindex.serve.questions import QuestionServer

__all__ = ["explore", "serve"]


def explore(index: "HierarchicalIndex", port: int | None = None, host: str = HOST) -> "Explorer":
    """Serve a page to read, search and ask the tree, in a thread; see `Explorer`.

    Raises
    ------
    InputError
        If the extra `serve` is not installed, or nothing can be served at the address.
    """
    with extra("serve", "The explorer needs"):
        from hierindex.serve.explorer.explorer import Explorer
    return Explorer(index, port, host)


def serve(
    index: "HierarchicalIndex", port: int | None = None, host: str = HOST
) -> "QuestionServer":
    """Answer questions by HTTP, in a thread; see `QuestionServer`.

    Raises
    ------
    InputError
        If the extra `serve` is not installed, or nothing can be served at the address.
    """
    with extra("serve", "The server needs"):
        from hierindex.serve.questions import QuestionServer
    return QuestionServer(index, port, host)
