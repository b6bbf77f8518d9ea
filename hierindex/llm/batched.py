"""A model whose requests are sent in batches and answered from these."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Self

from llama_index.core.llms import LLM

from hierindex.llm.batch_client import Answering, Noting, client_of, through, with_client
from hierindex.llm.batch_file import Line
from hierindex.llm.batch_owner import Memory, Owner
from hierindex.llm.batches import Batches, Sent
from hierindex.llm.limits import AdaptiveLimit
from hierindex.llm.service import Service
from hierindex.progress import Progress
from hierindex.threads import in_daemon_thread

ROUNDS = 3  # of batches for the same prompts; what expires more often is sent one by one

Ask = Callable[[str], Any]
"""A blocking function that sends a prompt."""


class BatchedModel:
    """A model whose first request for each prompt is answered from a batch.

    It works below the model, in its HTTP client. Each request is first made and not sent, to learn
    its path and its body. When it is made again, the answer in a batch to the same path and body
    is its answer. All other requests are sent as usual.

    Use it in a `with` block, so that what an interrupted call leaves at the service can be deleted
    by another.

    Parameters
    ----------
    llm : LLM
        See `with_client`.
    service : Service
        Of the model; its limit of tokens bounds what is sent in batches.
    progress : Progress
    memory : Memory, optional
        Of the index.

    Attributes
    ----------
    llm : LLM
        The copy to send prompts to, after `prepare`.
    """

    def __init__(
        self, llm: LLM, service: Service, progress: Progress, memory: Memory | None = None
    ) -> None:
        llm = with_client(llm)
        client = client_of(llm)
        self._notes = Noting(client)
        self._noting = through(llm, self._notes)
        self._answered = Answering(client)
        self.llm = through(llm, self._answered)
        self._owner = Owner(str(client.base_url), memory)
        own = Service(service.name, AdaptiveLimit(1), timeout=service.timeout, wait=service.wait)
        self._batches = Batches(client, own, self._owner)
        self._show = partial(progress, "summarize", 0)
        self._tokens = service.tokens
        self._n_spent = 0  # tokens of the answers in batches
        self._used = list[Sent]()
        self._known = set[str]()  # ids of requests

    def __enter__(self) -> Self:
        self._owner.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._owner.__exit__(*exc_info)

    async def prepare(self, prompts: Mapping[str, bool], ask: Callable[[LLM], Ask]) -> None:
        """Wait for the answers to prompts: in batches that there are, and in one for the rest.

        Parameters
        ----------
        prompts : Mapping
            Whether each prompt needs an answer.
        ask : callable
            Returns the function that sends a prompt to a model.

        Raises
        ------
        ModelError
            If the service fails repeatedly, rejects a batch or has no Batch API, or if a batch is
            cancelled.
        """
        if not any(prompts.values()):
            return
        lines = await in_daemon_thread(partial(self._lines, prompts, ask(self._noting)))
        self._known = {line.custom_id for line in lines.values()}
        left = {line.custom_id: (p, line) for p, line in lines.items() if prompts[p]}
        self._used = await self._batches.find(left.keys())
        running = [sent for sent in self._used if not sent.is_over]
        await self._read([sent for sent in self._used if sent.is_over], left, is_found=True)
        show = partial(self._show, len(prompts))
        size, n_rounds = len(left), 0
        while n_rounds < ROUNDS:
            under_way = {each for sent in running for each in sent.ids}
            rest = [left[each] for each in left if each not in under_way][:size]
            awaited = [left[each][0] for each in left if each in under_way]
            within = await in_daemon_thread(partial(self._within_limit, rest, awaited))
            sent = await self._batches.send(within)
            self._used += sent
            running += sent
            if not running:
                return
            await self._batches.wait(running, show)
            await self._batches.check(running)
            await self._read(running, left)
            refused = [each for each in running if each.has_no_room]
            accepted = [each for each in running if not each.has_no_room]
            if not refused:
                size = 2 * max(size, len(within))
            elif not accepted:
                size = await self._size_after(refused, show)
            n_rounds += any(each.ids & left.keys() for each in accepted)  # some have no answer
            running = []

    async def forget(self) -> None:
        """Delete the files of batches at the service, once all answers are kept.

        A batch that runs, or that has requests of other prompts, may be awaited by another build.
        """
        for sent in self._used:
            if sent.is_over and sent.ids <= self._known:
                await self._batches.forget(sent)

    async def sweep(self) -> None:
        """Delete all that the index has at the service, once it needs no more answers.

        Nothing is asked of a service that got nothing. Batches that run are left for another time.
        """
        if await in_daemon_thread(lambda: self._owner.has_sent):
            await self._batches.sweep()

    async def _size_after(self, refused: Sequence[Sent], show: Callable[[str], None]) -> int:
        """Return how many requests to send after the service had no room for any of these.

        If other batches of hierindex run, they are awaited, and their room is enough for as many.
        """
        if others := await self._batches.running():
            await self._batches.wait(others, show)
            return sum(len(sent.ids) for sent in refused)
        least = min(refused, key=lambda sent: len(sent.ids))
        if len(least.ids) == 1:
            raise self._batches.rejection(least)
        return len(least.ids) // 2

    def _lines(self, prompts: Mapping[str, bool], ask: Ask) -> dict[str, Line]:
        """Return the request of each prompt, if it makes one, with its id computed."""
        noted = {prompt: self._notes.line(ask, prompt) for prompt in prompts}
        return {prompt: line for prompt, line in noted.items() if line and line.custom_id}

    def _within_limit(
        self, rest: Sequence[tuple[str, Line]], awaited: Sequence[str]
    ) -> Sequence[Line]:
        """Return the first requests, as many as the limit of tokens allows."""
        lines, tokens = [line for _, line in rest], self._tokens
        if tokens is None:
            return lines
        left = tokens.left - self._n_spent - sum(map(tokens.at_most, awaited))
        costs = accumulate(tokens.at_most(prompt) for prompt, _ in rest)
        return lines[: sum(cost <= left for cost in costs)]

    async def _read(
        self, ended: Sequence[Sent], left: dict[str, tuple[str, Line]], *, is_found: bool = False
    ) -> None:
        """Read the answers in batches, and remove what need not be sent in another.

        What has failed in a batch of an earlier build is sent in another.
        """
        for sent in ended:
            answers, finished = await self._batches.results(sent)
            if is_found:
                answers = {each: answers[each] for each in answers if answers[each].is_success}
                finished = answers.keys()
            for each in answers.keys() & left.keys():
                self._answered.answers[each] = answers[each]
                self._n_spent += answers[each].n_tokens
            for each in finished:
                left.pop(each, None)
