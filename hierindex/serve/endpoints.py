"""The requests that the explorer answers: their parameters, and what they return."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import QueryParams

from hierindex.errors import InputError
from hierindex.record import Span
from hierindex.respond.answering_tree import AnsweringTree
from hierindex.retrieve.conditions import known_filters
from hierindex.serve import views
from hierindex.settings import load_settings
from hierindex.store.generations import on_newest
from hierindex.store.snapshot import Snapshot
from hierindex.threads import wait_for


class Endpoint(BaseModel):
    """A request, whose parameters are the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def of(cls, query: QueryParams) -> Self:
        """Return the request with the parameters of a URL; raise InputError if one is invalid."""
        lists = {name for name, field in cls.model_fields.items() if field.default == []}
        given = {name: query.getlist(name) if name in lists else query[name] for name in query}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise InputError.of_field(error) from None

    def answer(self, tree: AnsweringTree) -> dict[str, Any]:
        """Return the answer from the newest generation."""
        return on_newest(lambda: wait_for(self._read(_existing(tree))))()

    async def _read(self, snapshot: Snapshot) -> dict[str, Any]:
        raise NotImplementedError


def _existing(tree: AnsweringTree) -> Snapshot:
    snapshot = tree.store.snapshot()
    snapshot.require()
    return snapshot


class Index(Endpoint):
    async def _read(self, snapshot: Snapshot) -> dict[str, Any]:
        return await views.of_index(snapshot)


class Nodes(Endpoint):
    of: str | None = None
    start: int = Field(default=0, ge=0)
    n: int = Field(default=200, ge=1, le=1000)

    async def _read(self, snapshot: Snapshot) -> dict[str, Any]:
        return await views.of_nodes(snapshot, self.of, self.start, self.n)


class Node(Endpoint):
    id: str

    async def _read(self, snapshot: Snapshot) -> dict[str, Any]:
        return await views.of_node(snapshot, self.id)


class Source(Endpoint):
    document: str
    start: int = Field(ge=0)
    end: int
    context: int = Field(default=2000, ge=0, le=100_000)

    async def _read(self, snapshot: Snapshot) -> dict[str, Any]:
        span = Span(self.document, self.start, self.end)
        return await views.of_source(snapshot, span, self.context)


class Icicle(Endpoint):
    of: str | None = None
    start: float = Field(default=0.0, alias="from", ge=0, le=1)
    end: float = Field(default=1.0, alias="to", ge=0, le=1)
    n: int = Field(default=2000, ge=1, le=10_000)

    async def _read(self, snapshot: Snapshot) -> dict[str, Any]:
        return await views.of_icicle(snapshot, self.of, self.start, self.end, self.n)


class Search(Endpoint):
    q: str
    n: int = Field(default=50, ge=1, le=500)

    async def _read(self, snapshot: Snapshot) -> dict[str, Any]:
        return await views.of_search(snapshot, self.q, self.n)


class Map(Endpoint):
    level: int = Field(default=1, ge=0)
    n: int = Field(default=5000, ge=1, le=20_000)

    async def _read(self, snapshot: Snapshot) -> dict[str, Any]:
        return await views.of_map(snapshot, self.level, self.n)


class Ask(Endpoint):
    q: str
    mode: str | None = None
    level: list[str] = []
    by: str | None = None
    where: list[str] = []
    token_budget: int | None = None
    top_k: int | None = None

    def answer(self, tree: AnsweringTree) -> dict[str, Any]:
        given = self.model_dump(exclude={"q", "where"})
        settings = load_settings(**{key: value for key, value in given.items() if value != ""})
        answer = tree.ask(
            self.q,
            filters=known_filters(self.where, tree.store.snapshot()),
            **settings.model_dump(include=given.keys()),
        ).to_json()
        for source in answer["sources"]:
            source["path"].reverse()
        return answer


ENDPOINTS = {kind.__name__.lower(): kind for kind in Endpoint.__subclasses__()}
