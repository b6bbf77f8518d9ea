"""Batches of requests at a service with OpenAI's Batch API, `/v1/files` and `/v1/batches`.

A batch is a file of requests, one a line, that the service answers within a day at half the price.
Nothing about batches is stored here: all of them are found at the service by the name of their
file.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from hierindex.errors import HierindexError, ModelError
from hierindex.llm.attempts import LATER
from hierindex.llm.batch_file import Answer, Line, lines_of, parts
from hierindex.llm.failures import RequestError
from hierindex.llm.service import Service

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch

FILE = "hierindex.jsonl"  # name of the input files at the service
PAGE = 100  # batches; OpenAI lists no more at once
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two looks at a batch
PATIENCE = 8  # consecutive looks that fail, each after several attempts
TOO_LARGE = "token_limit_exceeded"  # code of a batch that fails
OVER = frozenset({"completed", "expired", "cancelled", "failed"})

logger = logging.getLogger(__name__)


@dataclass
class Sent:
    """A batch as it was last seen, with the ids of its requests."""

    batch: "Batch"
    ids: Set[str]

    @property
    def is_over(self) -> bool:
        """Whether the service has ended its work on it."""
        return self.batch.status in OVER

    @property
    def is_too_large(self) -> bool:
        """Whether it failed for more tokens than the account may have in all its batches."""
        faults = (self.batch.errors and self.batch.errors.data) or []
        return len(self.ids) > 1 and any(fault.code == TOO_LARGE for fault in faults)

    def told(self) -> str:
        """Return what the service says of it."""
        counts = self.batch.request_counts
        done = f", {counts.completed or 0:,} of {len(self.ids):,} done" if counts else ""
        failed = f", {counts.failed:,} failed" if counts and counts.failed else ""
        return f"batch {self.batch.status}{done}{failed}"


class Batches:
    """The batches of hierindex at a service.

    Parameters
    ----------
    client : openai.OpenAI
        Its own retries are off.
    service : Service
        Repeats what fails.

    Raises
    ------
    ModelError
        By all methods but `forget`, if the service fails repeatedly, refuses the request or has
        no Batch API.
    """

    def __init__(self, client: "OpenAI", service: Service) -> None:
        self._client = client
        self._service = service
        self._model = f"LLM {service.name!r}"

    async def holding(self, ids: Set[str]) -> list[Sent]:
        """Return the batches with any of these requests that run or have ended with answers."""
        files = await self._ask(self._files)
        if not files:
            return []
        listed = await self._ask(lambda: list(self._client.batches.list(limit=PAGE)))
        found = []
        for batch in listed:
            if batch.input_file_id in files and batch.status != "failed":
                lines = lines_of(await self._content(batch.input_file_id))
                found.append(Sent(batch, {line["custom_id"] for line in lines}))
        return [sent for sent in found if sent.ids & ids]

    async def send(self, lines: Sequence[Line]) -> list[Sent]:
        """Send requests to one path, as one batch or as several if they are too many for one."""
        return [await self._send(part) for part in parts(lines)]

    async def wait(self, sent: Sequence[Sent], tell: Callable[[str], None]) -> None:
        """Wait until batches are over; if this is interrupted, they go on at the service.

        Parameters
        ----------
        sent : sequence of Sent
        tell : callable
            Gets at each look what the service says of the first batch that runs.

        Raises
        ------
        ModelError
            If one was cancelled or has failed, unless it is too large.
        """
        pause, n_failed = FIRST_PAUSE, 0
        try:
            while running := [each for each in sent if not each.is_over]:
                tell(running[0].told())
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE, 1.5 * pause)
                try:
                    for each in running:
                        retrieve = partial(self._client.batches.retrieve, each.batch.id)
                        each.batch = await self._service.reach(retrieve)
                    n_failed = 0
                except RequestError as error:
                    n_failed += 1
                    if n_failed == PATIENCE:
                        raise self._given_up(error) from error
        except asyncio.CancelledError:
            logger.warning("%s still works on a batch; the next build waits for it.", self._model)
            raise
        for each in sent:
            if each.batch.status == "cancelled":
                raise ModelError(
                    f"A batch of {self._model} was cancelled; the next build takes over what was "
                    "done and sends the rest."
                )
            if each.batch.status == "failed":
                await self.forget(each)
                if not each.is_too_large:
                    raise ModelError(f"{self._model} rejected a batch: {_faults(each.batch)}.")

    async def results(self, sent: Sent) -> tuple[dict[str, Answer], Set[str]]:
        """Return the answers of a batch that is over, and the requests not to send in another.

        Returns
        -------
        dict
            Answers by the ids of requests. Some requests may have none.
        set
            All requests of a completed batch, of others those with an answer. If a file of a batch
            was deleted, the answers in it are lost.
        """
        names = filter(None, (sent.batch.output_file_id, sent.batch.error_file_id))
        contents = [await self._content(name) for name in names]
        answers = {}
        for line in chain.from_iterable(map(lines_of, contents)):
            response = line.get("response") or {}
            if status := response.get("status_code"):
                answers[line["custom_id"]] = Answer(status, response.get("body"))
        is_whole = sent.batch.status == "completed" and None not in contents
        return answers, sent.ids if is_whole else answers.keys()

    async def forget(self, sent: Sent) -> None:
        """Delete the files of a batch at the service, or log that this fails."""
        batch = sent.batch  # by its input file, the last to be deleted, it is found again
        for name in filter(None, (batch.output_file_id, batch.error_file_id, batch.input_file_id)):
            await self._delete(name)

    async def _delete(self, file: str) -> None:
        try:
            await self._ask(partial(_unless_gone, partial(self._client.files.delete, file)))
        except HierindexError as error:
            logger.warning("The file %s of a batch is left at the service: %s", file, error)

    async def _send(self, lines: Sequence[bytes]) -> Sent:
        upload = partial(self._client.files.create, file=(FILE, b"".join(lines)), purpose="batch")
        file, first = (await self._ask(upload)).id, json.loads(lines[0])
        n_attempts = 0

        def create() -> "Batch":
            nonlocal n_attempts
            n_attempts += 1
            listed = self._client.batches.list(limit=PAGE) if n_attempts > 1 else ()
            for batch in listed:
                if batch.input_file_id == file:  # made by an attempt that seemed to fail
                    return batch
            return self._client.batches.create(
                input_file_id=file, endpoint=first["url"], completion_window="24h"
            )

        try:
            batch = await self._ask(create)
        except HierindexError:
            await self._delete(file)
            raise
        return Sent(batch, {json.loads(line)["custom_id"] for line in lines})

    async def _ask(self, send: Callable[[], Any]) -> Any:
        try:
            return await self._service.reach(send)
        except RequestError as error:
            raise self._given_up(error) from error

    def _given_up(self, error: RequestError) -> ModelError:
        return ModelError(f"{self._model}: the Batch API failed: {error.failure.reason}; {LATER}.")

    def _files(self) -> set[str]:
        """Return the ids of our input files."""
        files = _unless_gone(lambda: list(self._client.files.list(purpose="batch")))
        if files is None:
            raise ModelError(
                f"{self._model} has no Batch API at {self._client.base_url}; leave out --llm-batch "
                "(in Python batch=True)."
            )
        return {file.id for file in files if file.filename == FILE}

    async def _content(self, file: str) -> bytes | None:
        """Return the content of a file, or None if it was deleted."""
        read = partial(_unless_gone, lambda: self._client.files.content(file).content)
        return cast(bytes | None, await self._ask(read))


def _unless_gone(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or None if the service does not have what it names."""
    from openai import NotFoundError

    try:
        return call()
    except NotFoundError:
        return None


def _faults(batch: "Batch") -> str:
    """Return the service's words on the first fault of a batch, and the number of the others."""
    faults = (batch.errors and batch.errors.data) or []
    if not faults:
        return "it gives no reason"
    first = faults[0]
    line = "" if first.line is None else f"line {first.line}: "
    others = f" (and {len(faults) - 1:,} more)" if len(faults) > 1 else ""
    return f"{line}{(first.message or first.code or '').rstrip('.')}{others}"
