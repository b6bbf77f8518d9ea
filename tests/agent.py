"""An agent without a language model, which answers questions by the tools of an MCP server."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp_types import CallToolResult

SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?!\s)[^.!?\n]*)*[.!?]?")
MOST_PARTS = 4  # of a search


class Citation(NamedTuple):
    """A sentence of a document, as it was read."""

    document: str
    start: int
    end: int
    text: str


class Agent:
    """A client whose calls wait for the reply, and are counted."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self.client = client
        self._portal = portal
        self.calls = 0

    def result(self, tool: str, **arguments: Any) -> CallToolResult:
        result = self._portal.call(partial(self.client.call_tool, tool, arguments))
        self.calls += 1
        return result

    def started(self, tool: str, **arguments: Any) -> Future[CallToolResult]:
        """A call that is not waited for, nor counted."""
        return self._portal.start_task_soon(partial(self.client.call_tool, tool, arguments))

    def tools(self) -> list[Any]:
        return self._portal.call(self.client.list_tools).tools

    def reply(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self.result(tool, **arguments)
        assert not result.is_error, result.content
        return result.structured_content

    def said(self, tool: str, **arguments: Any) -> str:
        result = self.result(tool, **arguments)
        assert not result.is_error, result.content
        (content,) = result.content
        return content.text

    def sentence(self, tool: str, **arguments: Any) -> str:
        """The error of a call."""
        result = self.result(tool, **arguments)
        assert result.is_error, result.content
        assert result.structured_content is None
        (content,) = result.content
        assert "\n" not in content.text
        assert "Traceback" not in content.text
        return content.text

    def parts(self, tool: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """A reply and those that follow it."""
        cursor = {}
        while True:
            reply = self.reply(tool, **arguments, **cursor)
            yield reply
            if "cursor" not in reply:
                return
            assert reply["cursor"] in reply["next_step"]
            cursor = {"cursor": reply["cursor"]}

    def answer(self, question: str, golds: Sequence[str]) -> Citation | None:
        """The sentence with one of these strings in what a search finds, read at its place."""
        parts = self.parts("search", query=question)
        for _, part in zip(range(MOST_PARTS), parts, strict=False):
            for entry in part["results"]:
                for found in SENTENCE.finditer(entry["text"]):
                    if any(gold in found[0] for gold in golds):
                        return self._cited(entry["citations"][0], found[0].strip(), entry["text"])
        return None

    def _cited(self, place: dict[str, Any], sentence: str, text: str) -> Citation:
        start = place["start"] + text.index(sentence)
        end = start + len(sentence)
        read = self.reply("read", id=f"{place['document']}#char={start},{end}")
        assert read["text"] == sentence
        return Citation(place["document"], start, end, read["text"])


@contextmanager
def agent(server: Any, **options: Any) -> Iterator[Agent]:
    """An agent of a server, a transport or an address."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(server, **options)) as client,
    ):
        yield Agent(client, portal)
