"""A model whose requests are sent in batches and answered from these."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import httpx
from llama_index.core.llms import LLM

from hierindex.errors import InputError, ModelError
from hierindex.llm.batch_file import Answer, Line
from hierindex.llm.batches import Batches, Sent
from hierindex.llm.failures import request_errors, service_errors
from hierindex.llm.limits import AdaptiveLimit
from hierindex.llm.service import Service
from hierindex.progress import Progress
from hierindex.threads import in_daemon_thread

if TYPE_CHECKING:
    from openai import OpenAI

ROUNDS = 3  # of batches for the same prompts; what expires more often is sent one by one

Ask = Callable[[str], Any]
"""A blocking function that sends a prompt."""


class BatchedModel:
    """A model whose first request for each prompt is answered from a batch.

    It works below the model, in its HTTP client. Each request is first made and not sent, to learn
    its path and its body. When it is made again, the answer in a batch to the same path and body
    is its answer. All other requests are sent as usual.

    Parameters
    ----------
    llm : LLM
        See `with_client`.
    service : Service
        Of the model; its limit of tokens bounds what is sent in batches.
    progress : Progress

    Attributes
    ----------
    llm : LLM
        The copy to send prompts to, after `prepare`.
    """

    def __init__(self, llm: LLM, service: Service, progress: Progress) -> None:
        client = _client_of(llm)
        own = Service(service.name, AdaptiveLimit(1), timeout=service.timeout, wait=service.wait)
        self._noted = _Noted(client)
        self._noting = _through(llm, self._noted)
        self._answered = _Answered(client)
        self.llm = _through(llm, self._answered)
        self._batches = Batches(client, own)
        self._progress = progress
        self._tokens = service.tokens
        self._n_spent = 0  # tokens of the answers in batches
        self._used = list[Sent]()
        self._known = set[str]()  # ids of requests

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
        self._used = await self._batches.holding(left.keys())
        running = [sent for sent in self._used if not sent.is_over]
        await self._read([sent for sent in self._used if sent.is_over], left, is_found=True)
        most, n_rounds = len(left), 0
        while n_rounds < ROUNDS:
            under_way = {each for sent in running for each in sent.ids}
            rest = [left[each] for each in left if each not in under_way]
            awaited = [left[each][0] for each in left if each in under_way]
            sent = await self._batches.send(self._within_limit(rest[:most], awaited))
            self._used += sent
            running += sent
            if not running:
                return
            tell = partial(self._progress, "summarize", 0, len(prompts))
            await self._batches.wait(running, tell)
            await self._read(running, left)
            too_large = [len(sent.ids) for sent in running if sent.is_too_large]
            if too_large:
                most = min(too_large) // 2
            else:
                n_rounds += any(sent.ids & left.keys() for sent in running)  # some have no answer
            running = []

    async def forget(self) -> None:
        """Delete the files of batches at the service, once all answers are kept.

        A batch that runs, or that has requests of other prompts, may be awaited by another build.
        """
        for sent in self._used:
            if sent.is_over and sent.ids <= self._known:
                await self._batches.forget(sent)

    def _lines(self, prompts: Mapping[str, bool], ask: Ask) -> dict[str, Line]:
        """Return the request of each prompt, if it makes one."""
        lines = {}
        for prompt in prompts:
            with suppress(*request_errors()):  # if it is not ours, the prompt fails again later
                ask(prompt)
            if self._noted.lines:
                lines[prompt] = self._noted.lines.pop()
        return lines

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
            answers, settled = await self._batches.results(sent)
            if is_found:
                answers = {each: answers[each] for each in answers if answers[each].is_success}
                settled = answers.keys()
            for each in answers.keys() & left.keys():
                self._answered.answers[each] = answers[each]
                self._n_spent += answers[each].n_tokens
            for each in settled:
                left.pop(each, None)


def with_client(llm: LLM) -> LLM:
    """Return a copy of a model that keeps its client of OpenAI's protocol.

    Raises
    ------
    InputError
        If the model has no such client.
    ModelError
        If the client cannot be created, for example without a key.
    """
    copy = llm.model_copy(update={"reuse_client": True} if hasattr(llm, "reuse_client") else {})
    try:
        getattr(copy, "_get_client", lambda: None)()  # creates it, where that waits for a request
        _client_of(copy)
    except service_errors() as error:
        raise ModelError(f"LLM {llm.metadata.model_name!r} cannot be used: {error}") from error
    return copy


def _client_of(llm: LLM) -> "OpenAI":
    """Return the blocking OpenAI client of a model."""
    clients = [held for held in _held(llm).values() if _is_client(held)]
    if not clients:
        raise InputError(
            f"batch (--llm-batch) needs a model that speaks OpenAI's protocol, got "
            f"{type(llm).__name__}."
        )
    return clients[0]


def _held(llm: LLM) -> dict[str, Any]:
    return llm.__pydantic_private__ or {}


def _is_client(held: Any) -> bool:
    openai = sys.modules.get("openai")  # a model with a client of it has imported it
    return openai is not None and isinstance(held, openai.OpenAI)


def _through(llm: LLM, transport: httpx.BaseTransport) -> LLM:
    """Return a copy of a model whose requests go through a transport."""
    copy = llm.model_copy()
    http = httpx.Client(transport=transport, trust_env=False)  # no proxy in its place
    for name, held in _held(copy).items():
        if _is_client(held):
            setattr(copy, name, held.with_options(http_client=http))
    return copy


class _Transport(httpx.BaseTransport):
    """A transport in the place of that of an OpenAI client."""

    def __init__(self, client: "OpenAI") -> None:
        self._client = client

    def _line(self, request: httpx.Request) -> Line:
        path = request.url.path.removeprefix(self._client.base_url.path.rstrip("/"))
        return Line(f"/v1{path}", json.loads(request.read()))


class _Noted(_Transport):
    """Keeps requests and sends none."""

    def __init__(self, client: "OpenAI") -> None:
        super().__init__(client)
        self.lines = list[Line]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.lines.append(self._line(request))
        raise httpx.TransportError("The request is noted and not sent.")


class _Answered(_Transport):
    """Answers each request with what there is for it, once, and sends all others."""

    def __init__(self, client: "OpenAI") -> None:
        super().__init__(client)
        self.answers = dict[str, Answer]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self.answers.pop(self._line(request).custom_id, None)
        if answer is None:
            network: httpx.Client = self._client._client
            return network.send(request, stream=True)
        return httpx.Response(answer.status, json=answer.body)
