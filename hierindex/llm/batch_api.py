"""The requests of OpenAI's Batch API, `/v1/files` and `/v1/batches`, which block."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from hierindex.errors import ModelError
from hierindex.llm.batch_file import Line, lines_of

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch, FileObject

PAGE = 100  # batches; OpenAI lists no more at once

T = TypeVar("T")


class UnexpectedAnswerError(ValueError):
    """Raised for an answer that is not of the Batch API, such as a web page."""


class BatchApi:
    """The Batch API of a service.

    Parameters
    ----------
    client : openai.OpenAI
        Its own retries are off.
    model : str
        Subject of messages, for example "LLM 'm'".

    Raises
    ------
    OpenAIError
        By all methods, if the request fails.
    UnexpectedAnswerError
        If the answer is none of the Batch API.
    ModelError
        If the service has no Batch API.
    """

    def __init__(self, client: "OpenAI", model: str) -> None:
        self._client = client
        self._model = model

    def files(self) -> "list[FileObject]":
        """Return the input files of batches."""
        return self._all_of(lambda: self._client.files.list(purpose="batch"))

    def batches(self) -> "list[Batch]":
        """Return all batches."""
        return self._all_of(lambda: self._client.batches.list(limit=PAGE))

    def batch(self, batch: str) -> "Batch":
        """Return a batch by its id."""
        return _identified(self._client.batches.retrieve(batch))

    def lines(self, file: str) -> list[dict[str, Any]] | None:
        """Return the lines of a file, or None if it was deleted."""
        content = _unless_gone(lambda: self._client.files.content(file).content)
        if content is None:
            return None
        lines = list(lines_of(content))
        if content and not lines:
            raise UnexpectedAnswerError("The service sent no lines.")
        return lines

    def delete(self, file: str) -> None:
        """Delete a file, if the service has it."""
        _unless_gone(lambda: _identified(self._client.files.delete(file)))

    def upload(self, name: str, lines: Sequence[Line]) -> "Callable[[], FileObject | None]":
        """Return a function that sends a file once, for several attempts.

        It returns None if the file is too large for the service.
        """
        return _once_made(
            partial(self._upload, name, lines),
            lambda: (file for file in self.files() if file.filename == name),
        )

    def create(self, file: str, endpoint: Any) -> "Callable[[], Batch]":
        """Return a function that makes a batch of a file once, for several attempts."""

        def make() -> "Batch":
            return _identified(
                self._client.batches.create(
                    input_file_id=file, endpoint=endpoint, completion_window="24h"
                )
            )

        return _once_made(
            make, lambda: (batch for batch in self.batches() if batch.input_file_id == file)
        )

    def is_missing(self) -> ModelError:
        """Return the error of a service that has no Batch API."""
        return ModelError(
            f"{self._model} has no Batch API at {self._client.base_url}; leave out --llm-batch "
            "(in Python batch=True)."
        )

    def _upload(self, name: str, lines: Sequence[Line]) -> "FileObject | None":
        from openai import APIStatusError

        content = b"".join(map(Line.to_json, lines))
        try:
            file = _unless_gone(
                partial(self._client.files.create, file=(name, content), purpose="batch")
            )
        except APIStatusError as error:
            if error.status_code == 413:
                return None
            raise
        if file is None:
            raise self.is_missing()
        return _identified(file)

    def _all_of(self, first_page: Callable[[], Any]) -> list[Any]:
        """Return all items of a list, page by page.

        Some services send the whole list for every page.
        """
        items = dict[str, Any]()
        try:
            if (first := _unless_gone(first_page)) is None:
                raise self.is_missing()
            for page in first.iter_pages():
                more = {item.id: item for item in page.data}
                if more.keys() <= items.keys():
                    break
                items |= more
        except (AttributeError, TypeError) as error:  # of a web page, or of items without ids
            raise UnexpectedAnswerError("The service sent no list.") from error
        return [*items.values()]


def _once_made(make: Callable[[], T], made: Callable[[], Iterable[T]]) -> Callable[[], T]:
    """Return a function that makes something, unless an attempt that seemed to fail has made it."""
    n_attempts = count()

    def attempt() -> T:
        for each in made() if next(n_attempts) else ():
            return each
        return make()

    return attempt


def _identified(answer: T) -> T:
    """Return an answer that has an id, as all objects of the Batch API do."""
    if not isinstance(getattr(answer, "id", None), str):
        raise UnexpectedAnswerError("The service sent something without an id.")
    return answer


def _unless_gone(call: Callable[[], T]) -> T | None:
    """Return the result of a call, or None if the service does not have what it names."""
    from openai import NotFoundError

    try:
        return call()
    except NotFoundError:
        return None
