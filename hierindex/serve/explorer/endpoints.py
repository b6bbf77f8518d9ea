"""The requests that the explorer answers: their parameters, and what they read."""

from abc import abstractmethod
from contextlib import AbstractContextManager
from threading import Lock
from typing import Any, ClassVar

from pydantic import Field

from hierindex.errors import InputError
from hierindex.index import HierarchicalIndex
from hierindex.node import Span
from hierindex.retrieve.conditions import known_filters
from hierindex.retrieve.map import chunk_map
from hierindex.retrieve.reading_order import reading_order
from hierindex.serve.endpoint import Endpoint
from hierindex.serve.explorer import views
from hierindex.settings import load_settings
from hierindex.store.snapshot import Snapshot
from hierindex.threads import is_given_up

_ordering = Lock()


class View(Endpoint):
    """A request for what `hierindex.serve.explorer.views` reads."""

    def answer_from(self, index: HierarchicalIndex) -> dict[str, Any]:
        """Return what is read from a snapshot of the index."""
        snapshot = index.table.snapshot()
        with _ordering:  # a page asks for several things at once
            reading_order(snapshot)
        return self.read(snapshot)

    @abstractmethod
    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the answer from a snapshot."""


class Index(View):
    """What the index is, and what it cost."""

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_index`."""
        return views.of_index(snapshot)


class Nodes(View):
    """Children of a node, or roots: those from a number on, or those around one."""

    of: str | None = None
    start: int = Field(default=0, ge=0)
    around: str | None = None
    n: int = Field(default=200, ge=1, le=1000)

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_nodes`."""
        return views.of_nodes(snapshot, self.of, self.start, self.around, self.n)


class Node(View):
    """A node."""

    id: str

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_node`."""
        return views.of_node(snapshot, self.id)


class Source(View):
    """A passage of a document, with up to `context` characters on both sides."""

    document: str
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    context: int = Field(default=2000, ge=0, le=100_000)

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_source`."""
        span = Span(self.document, self.start, self.end)
        return views.of_source(snapshot, span, self.context)


class Icicle(View):
    """Cells of the icicle."""

    of: str | None = None
    start: float = Field(default=0.0, alias="from", ge=0, le=1)
    end: float = Field(default=1.0, alias="to", ge=0, le=1)
    n: int = Field(default=2000, ge=1, le=10_000)

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_icicle`."""
        return views.of_icicle(snapshot, self.of, self.start, self.end, self.n)


class Search(View):
    """Nodes that match words."""

    q: str
    n: int = Field(default=50, ge=1, le=500)

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `of_search`."""
        return views.of_search(snapshot, self.q, self.n)


class Map(View):
    """Chunks on a plane."""

    alone: ClassVar[AbstractContextManager[Any]] = Lock()
    level: int = Field(default=1, ge=0)
    n: int = Field(default=2000, ge=1, le=2000)

    def read(self, snapshot: Snapshot) -> dict[str, Any]:
        """See `chunk_map`."""
        return chunk_map(snapshot, self.level, self.n)


class Ask(Endpoint):
    """A question, with options of `hierindex query`; others are as that command has them."""

    alone: ClassVar[AbstractContextManager[Any]] = Lock()
    q: str
    mode: str | None = None
    level: list[str] = Field(default=[])
    by: str | None = None
    where: list[str] = Field(default=[])
    token_budget: str | None = None
    top_k: str | None = None

    def answer_from(self, index: HierarchicalIndex) -> dict[str, Any]:
        """Return what `hierindex query --json` prints, each path from the root down.

        Raises
        ------
        InputError
            If the client is gone; another question may have been answered first.
        """
        if is_given_up():
            raise InputError("The client has disconnected.")
        given = self.model_dump(exclude={"q", "where"})
        settings = load_settings(**given)
        answer = index.ask(
            self.q,
            filters=known_filters(self.where, index.table.snapshot()),
            synthesizer={"min_score": settings.min_score},
            **settings.chosen(" ".join(given)),
        ).to_json()
        for source in answer["sources"]:
            source["path"].reverse()
        return answer


KINDS: tuple[type[Endpoint], ...] = (Index, Nodes, Node, Source, Icicle, Search, Map, Ask)
ENDPOINTS = {kind.__name__.lower(): kind for kind in KINDS}
