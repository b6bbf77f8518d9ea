"""A request that is answered from the newest generation of an index, and how it is refused."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Required, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from typing_extensions import TypedDict  # before Python 3.12, pydantic reads no other

from hierindex.errors import HierindexError, IndexNotFoundError, InputError, ModelError

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from hierindex.respond.answering_tree import AnsweringTree
    from hierindex.store.snapshot import Snapshot

STATUSES: dict[int, type[HierindexError]] = {
    404: IndexNotFoundError,
    400: InputError,
    503: ModelError,
    500: HierindexError,
}
"""The error that a status stands for; each has the exit status of those that get the status."""

MOST_AT_ONCE = 100  # requests of a kind, each of which has a thread
BUSY = 429
GENERATION = "Hierindex-Generation"
TOO_MUCH = 422  # the status of a number above its bound


class Place(TypedDict, total=False):
    """Characters `start` to `end` (exclusive) of a document; page and section are its start's."""

    document: Required[str]
    start: Required[int]
    end: Required[int]
    page: int
    page_label: str
    section: list[str]
    anchor: str


class RefusedError(HierindexError):
    """A server refuses what a command may answer by itself.

    Parameters
    ----------
    status : int
        None of `STATUSES`.
    message : str
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def status_of(error: HierindexError) -> int:
    """Return the status of an error.

    >>> status_of(InputError("The question is empty."))
    400
    """
    if isinstance(error, RefusedError):
        return error.status
    return next(status for status, kind in STATUSES.items() if isinstance(error, kind))


class Places:
    """The places of requests of a kind."""

    def __init__(self) -> None:
        self._most = MOST_AT_ONCE
        self._free = BoundedSemaphore(self._most)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Take a place while the block runs; raise RefusedError if all are taken."""
        if not self._free.acquire(blocking=False):
            said = f"The server has {self._most} requests to answer; ask later."
            raise RefusedError(BUSY, said)
        try:
            yield
        finally:
            self._free.release()


class Endpoint(BaseModel):
    """A request; its fields are the parameters of a URL, or with POST the keys of a JSON object."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    method: ClassVar[Literal["GET", "POST"]] = "GET"
    alone: ClassVar[AbstractContextManager[Any]] = nullcontext()
    """Held by the request that is being answered; a lock if there is work not to do twice."""
    most: ClassVar[Mapping[str, int]] = {}
    """The highest numbers that a server takes; a command answers others by itself."""

    @classmethod
    def answers(cls) -> Any:
        """Return the type of the answer, for its description."""
        return dict[str, Any]

    @classmethod
    def parsed(cls, query: "QueryParams", body: bytes) -> Self:
        """Return the request of a URL's parameters and a body.

        Raises
        ------
        InputError
            If it is none.
        RefusedError
            If a number is above the bound of a server.
        """
        try:
            asked = cls._read(query, body)
        except ValidationError as error:
            if not error.errors(include_input=False)[0]["loc"]:
                raise InputError("The body of the request must be a JSON object.") from None
            raise InputError.of_field(error) from None
        for name, most in cls.most.items():
            if (getattr(asked, name) or 0) > most:
                raise RefusedError(TOO_MUCH, f"{name} must be at most {most:,}.")
        return asked

    @classmethod
    def _read(cls, query: "QueryParams", body: bytes) -> Self:
        if cls.method == "POST":
            return cls.model_validate_json(body)
        lists = {name for name, field in cls.model_fields.items() if field.default == []}
        return cls.model_validate(
            {name: query.getlist(name) if name in lists else query[name] for name in query}
        )

    def answer(self, tree: "AnsweringTree", headers: dict[str, str]) -> dict[str, Any]:
        """Return the answer from the newest generation, whose number the headers are given."""
        from hierindex.store.generations import on_newest

        @on_newest
        def answered() -> dict[str, Any]:
            snapshot = tree.table.snapshot()
            headers[GENERATION] = str(snapshot.generation)
            snapshot.require()
            return self.answer_from(snapshot, tree)

        with self.alone:
            return answered()

    @abstractmethod
    def answer_from(self, snapshot: "Snapshot", tree: "AnsweringTree") -> dict[str, Any]:
        """Return the answer from a snapshot of a tree."""
