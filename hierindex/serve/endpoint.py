"""Requests that are answered from the newest generation of an index, and their errors."""

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from hierindex.errors import HierindexError, InputError, ModelError, NotFoundError
from hierindex.store.generations import on_newest

if TYPE_CHECKING:
    from llama_index.core.llms import LLM
    from starlette.datastructures import QueryParams

    from hierindex.index import HierarchicalIndex
    from hierindex.models.adapters import LLMLike
    from hierindex.store.snapshot import Snapshot

logger: logging.Logger = logging.getLogger(__name__)

GENERATION = "Hierindex-Generation"

showing: ContextVar[Callable[[str], object] | None] = ContextVar("showing", default=None)
"""Called with each piece of an answer's text, if the client takes it as it is written."""


STATUSES = {NotFoundError: 404, InputError: 400, ModelError: 503}


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error.

    >>> status_of(InputError("The question is empty."))
    400
    """
    return next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)


def sentence_on(error: Exception) -> str:
    """Return the message of an error for the client; log unexpected errors."""
    from hierindex.store.connection import damage

    known = error if isinstance(error, HierindexError) else damage(error)
    if known is None:
        logger.error("A request failed.", exc_info=error)
    return str(known or f"{type(error).__name__}: {error}")


class Endpoint(BaseModel):
    """A request; its fields are parameters of a URL or, with POST, keys of a JSON object."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False
    )

    method: ClassVar[Literal["GET", "POST"]] = "GET"
    reply: ClassVar[Any] = dict[str, Any]
    """The type of the answer, for its description."""
    llm: ClassVar["LLM | None"] = None
    """The language model that writes the answer, if any."""

    @classmethod
    def parsed(cls, query: "QueryParams", body: bytes) -> Self:
        """Parse a request from the parameters of a URL and a body.

        Raises
        ------
        InputError
            If the request is malformed.
        """
        try:
            if cls.method == "POST":
                return cls.model_validate_json(body, strict=True)
            lists = {name for name, field in cls.model_fields.items() if field.default == []}
            return cls.model_validate(
                {name: query.getlist(name) if name in lists else query[name] for name in query}
            )
        except ValidationError as error:
            if not error.errors()[0]["loc"]:
                raise InputError("The body of the request must be a JSON object.") from None
            raise InputError.of_field(error) from None

    def answer(self, index: "HierarchicalIndex", headers: dict[str, str]) -> Mapping[str, Any]:
        """Return the answer from the newest generation, and write its number to the headers."""

        @on_newest
        def answered() -> Mapping[str, Any]:
            snapshot = index.table.snapshot()
            headers[GENERATION] = str(snapshot.generation)
            snapshot.require()
            return self.answer_from(index.at(snapshot), snapshot)

        return answered()

    @abstractmethod
    def answer_from(self, index: "HierarchicalIndex", snapshot: "Snapshot") -> Mapping[str, Any]:
        """Return the answer from a snapshot; `index` reads this snapshot, too."""


def written_by(llm: "LLMLike", endpoint: type[Endpoint]) -> type[Endpoint]:
    """Return an endpoint whose answers a language model writes; all requests share its limits."""
    from hierindex.models.adapters import as_llm, with_retries

    shared = with_retries(cast("LLM", as_llm(llm)))
    return type(endpoint.__name__, (endpoint,), {"llm": shared})
