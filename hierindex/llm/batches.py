"""Batches of requests at a service with OpenAI's Batch API, `/v1/files` and `/v1/batches`.

A batch is a file of requests, one a line, that the service answers within a day at half the price.
Which batches there are is not stored here: they are found at the service by the names of their
files.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hierindex.errors import HierindexError, ModelError
from hierindex.llm.attempts import LATER
from hierindex.llm.batch_api import BatchApi, UnexpectedAnswerError
from hierindex.llm.batch_file import Answer, Line, answer_in, parts
from hierindex.llm.batch_owner import Owner, is_ours
from hierindex.llm.failures import BusyError, RequestError
from hierindex.llm.service import Service
from hierindex.threads import in_daemon_thread

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types import Batch, FileObject

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two looks at a batch
PATIENCE = 100  # consecutive looks that fail, each after several attempts: about an hour
NO_ROOM = "token_limit_exceeded"  # code of a batch that fails
OVER = frozenset({"completed", "expired", "cancelled", "failed"})

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass
class Sent:
    """A batch as it was last seen, with its input file and the ids of its requests."""

    batch: "Batch"
    file: "FileObject"
    ids: Set[str]

    @property
    def is_over(self) -> bool:
        """Whether the service has ended its work on it."""
        return self.batch.status in OVER

    @property
    def has_no_room(self) -> bool:
        """Whether it failed for more tokens than the account may have in all its batches."""
        faults = (self.batch.errors and self.batch.errors.data) or []
        return self.batch.status == "failed" and any(fault.code == NO_ROOM for fault in faults)

    def progress(self) -> str:
        """Return what the service says of it, for people."""
        counts = self.batch.request_counts
        if not counts or not counts.total:  # as long as it is validated
            return f"batch {self.batch.status}"
        failed = f", {counts.failed:,} failed" if counts.failed else ""
        return (
            f"batch {self.batch.status}, {counts.completed or 0:,} of {counts.total:,} done{failed}"
        )

    def fault(self) -> str:
        """Return the service's words on its first fault, and the number of the others."""
        faults = (self.batch.errors and self.batch.errors.data) or []
        if not faults:
            return "it gives no reason"
        first = faults[0]
        line = "" if first.line is None else f"line {first.line}: "
        others = f" (and {len(faults) - 1:,} more)" if len(faults) > 1 else ""
        return f"{line}{(first.message or first.code or '').rstrip('.')}{others}"


class Batches:
    """The batches of hierindex at a service.

    Parameters
    ----------
    client : openai.OpenAI
        Its own retries are off.
    service : Service
        Repeats what fails.
    owner : Owner
        Of the files that are sent.

    Raises
    ------
    ModelError
        By all methods but `forget` and `sweep`, if the service fails repeatedly, refuses the
        request or has no Batch API.
    """

    def __init__(self, client: "OpenAI", service: Service, owner: Owner) -> None:
        self._model = f"LLM {service.name!r}"
        self._api = BatchApi(client, self._model)
        self._service = service
        self._owner = owner

    async def find(self, ids: Set[str]) -> list[Sent]:
        """Return the batches with any of these requests that run or have ended with answers.

        Files without a batch, or whose batch has failed, are deleted if nobody needs them.
        """
        found = []
        for file, batch in await self._all():
            if batch is None or batch.status == "failed":
                await self._delete(file, batch)
            elif lines := await self._lines(file.id):
                found.append(Sent(batch, file, {line["custom_id"] for line in lines}))
        return [sent for sent in found if sent.ids & ids]

    async def running(self) -> list[Sent]:
        """Return the batches that run, also those of other indexes."""
        found = [Sent(batch, file, set()) for file, batch in await self._all() if batch]
        return [sent for sent in found if not sent.is_over]

    async def send(self, lines: Sequence[Line]) -> list[Sent]:
        """Send requests to one path, as one batch or as several if they are too many for one."""
        sent = []
        for part in await in_daemon_thread(lambda: list(parts(lines))):
            sent += await self._send(part)
        return sent

    async def wait(self, sent: Sequence[Sent], show: Callable[[str], None]) -> None:
        """Wait until batches are over; if this is interrupted, they go on at the service.

        Parameters
        ----------
        sent : sequence of Sent
        show : callable
            Gets at each look what the service says of the first batch that runs.
        """
        pause, n_failed = FIRST_PAUSE, 0
        running = [each for each in sent if not each.is_over]
        for each in running:
            logger.info("%s works on %s.", self._model, each.batch.id)
        try:
            while running:
                show(running[0].progress())
                await asyncio.sleep(pause)
                pause = min(LONGEST_PAUSE, 1.5 * pause)
                try:
                    for each in running:
                        look = partial(self._api.batch, each.batch.id)
                        each.batch = await self._service.reach(look)
                    n_failed = 0
                except (RequestError, BusyError) as error:
                    n_failed += 1
                    if n_failed == 1:
                        logger.warning("A look at the batches failed and is repeated: %s", error)
                    if n_failed == PATIENCE:
                        raise self._given_up(error) from error
                running = [each for each in running if not each.is_over]
        except asyncio.CancelledError:
            logger.warning(
                "%s goes on with %s, which it charges for; the next build with --llm-batch (in "
                "Python batch=True) uses its answers.",
                self._model,
                " and ".join(each.batch.id for each in running),
            )
            raise

    async def check(self, ended: Sequence[Sent]) -> None:
        """Delete the files of failed batches.

        Raises
        ------
        ModelError
            If a batch was cancelled, or has failed but not for want of room.
        """
        failed = [each for each in ended if each.batch.status == "failed"]
        for each in failed:
            await self.forget(each)
        for each in failed:
            if not each.has_no_room:
                raise self.rejection(each)
        if any(each.batch.status == "cancelled" for each in ended):
            raise ModelError(
                f"A batch of {self._model} was cancelled; the next build takes over what was "
                "done and sends the rest."
            )

    def rejection(self, failed: Sent) -> ModelError:
        """Return the error of a batch that failed."""
        return ModelError(f"{self._model} rejected a batch: {failed.fault()}.")

    async def results(self, sent: Sent) -> tuple[dict[str, Answer], Set[str]]:
        """Return the answers of a batch that is over, and which of its requests are finished.

        Returns
        -------
        dict
            Answers by the ids of requests. Some requests may have none.
        set
            Ids of the requests that need not be sent in another batch: of a completed batch all,
            of others those with an answer. If a file of a batch was deleted, those whose answers
            were in it are not finished.
        """
        names = filter(None, (sent.batch.output_file_id, sent.batch.error_file_id))
        contents = [await self._lines(name) for name in names]
        answers = {}
        for line in (line for lines in contents for line in lines or ()):
            if answer := answer_in(line):
                answers[line["custom_id"]] = answer
        is_whole = sent.batch.status == "completed" and None not in contents
        return answers, sent.ids if is_whole else answers.keys()

    async def forget(self, sent: Sent) -> None:
        """Delete the files of a batch at the service, or log that this fails.

        Files that another build may need stay.
        """
        await self._delete(sent.file, sent.batch)

    async def sweep(self) -> None:
        """Delete all files of the index at the service, but those of batches that run."""
        try:
            files = [each for each in await self._all() if self._owner.is_of_index(each[0])]
            over = [each for each in files if each[1] is None or each[1].status in OVER]
            gone = [await self._delete(*each) for each in over]
        except HierindexError as error:
            logger.warning("Files of batches may be left at the service: %s", error)
            return
        if all(gone) and len(gone) == len(files):
            await in_daemon_thread(self._owner.has_sent_nothing)

    async def _delete(self, file: "FileObject", batch: "Batch | None") -> bool:
        """Return whether no file of a batch is left; the input file, which names it, goes last."""
        if not self._owner.may_delete(file):
            return False
        outputs = (batch.output_file_id, batch.error_file_id) if batch else ()
        for name in (*filter(None, outputs), file.id):
            try:
                await self._ask(partial(self._api.delete, name))
            except HierindexError as error:
                logger.warning("The file %s of a batch is left at the service: %s", name, error)
                return False
        return True

    async def _send(self, lines: Sequence[Line]) -> list[Sent]:
        """Send a file as a batch, or its halves if the service calls it too large."""
        name = await in_daemon_thread(self._owner.new_name)
        file = await self._ask(self._api.upload(name, lines))
        if file is None and len(lines) > 1:
            half = len(lines) // 2
            return [*await self._send(lines[:half]), *await self._send(lines[half:])]
        if file is None:
            raise ModelError(
                f"{self._model}: a file of one request, of {len(lines[0].to_json()):,} bytes, is "
                "too large for the Batch API (HTTP status 413)."
            )
        try:
            batch = await self._ask(self._api.create(file.id, lines[0].url))
        except HierindexError:
            await self._delete(file, None)
            raise
        return [Sent(batch, file, {line.custom_id for line in lines})]

    async def _all(self) -> "list[tuple[FileObject, Batch | None]]":
        """Return our input files, each with its batch."""
        files = [file for file in await self._ask(self._api.files) if is_ours(file)]
        batches = await self._ask(self._api.batches) if files else []
        of_file = {batch.input_file_id: batch for batch in batches}
        return [(file, of_file.get(file.id)) for file in files]

    async def _lines(self, file: str) -> list[dict[str, Any]] | None:
        return await self._ask(partial(self._api.lines, file))

    async def _ask(self, send: Callable[[], T]) -> T:
        try:
            return await self._service.reach(send)
        except RequestError as error:
            raise self._given_up(error) from error

    def _given_up(self, error: RequestError | BusyError) -> ModelError:
        if isinstance(error, BusyError):
            return error
        if isinstance(error.__cause__, UnexpectedAnswerError):
            return self._api.is_missing()
        later = "" if error.failure.reason.endswith(LATER) else f"; {LATER}"
        return ModelError(f"{self._model}: the Batch API failed: {error.failure.reason}{later}.")
