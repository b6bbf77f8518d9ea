"""A request that is answered from the newest generation of an index."""

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.datastructures import QueryParams

from hierindex.errors import InputError
from hierindex.respond.answering_tree import AnsweringTree
from hierindex.store.generations import on_newest
from hierindex.store.snapshot import Snapshot

GENERATION = "Hierindex-Generation"


class Endpoint(BaseModel):
    """A request; its fields are the parameters."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    alone: ClassVar[AbstractContextManager[Any]] = nullcontext()
    """Held by the request that is being answered; a lock if there is work not to do twice."""

    @classmethod
    def parsed(cls, query: QueryParams) -> Self:
        """Return the request with the parameters of a URL; raise InputError if one is invalid."""
        lists = {name for name, field in cls.model_fields.items() if field.default == []}
        given = {name: query.getlist(name) if name in lists else query[name] for name in query}
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise InputError.of_field(error) from None

    def answer(self, tree: AnsweringTree, headers: dict[str, str]) -> dict[str, Any]:
        """Return the answer from the newest generation, whose number the headers are given."""

        @on_newest
        def answered() -> dict[str, Any]:
            snapshot = tree.store.snapshot()
            headers[GENERATION] = str(snapshot.generation)
            snapshot.require()
            return self.answer_from(snapshot, tree)

        with self.alone:
            return answered()

    @abstractmethod
    def answer_from(self, snapshot: Snapshot, tree: AnsweringTree) -> dict[str, Any]:
        """Return the answer from a snapshot of a tree."""
