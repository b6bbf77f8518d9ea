"""Models whose HTTP client notes requests, or answers them from batches."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
from llama_index.core.llms import LLM

from hierindex.errors import InputError, ModelError
from hierindex.llm.batch_file import Answer, Line
from hierindex.llm.failures import request_errors, service_errors

if TYPE_CHECKING:
    from openai import OpenAI

# Of the endpoints that the Batch API documents, those that write texts.
ENDPOINTS = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/responses"})


def with_client(llm: LLM) -> LLM:
    """Return a copy of a model that keeps its client of OpenAI's protocol.

    Raises
    ------
    InputError
        If the model has no such client, or sends requests that batches cannot have.
    ModelError
        If the client cannot be created, for example without a key.
    """
    copy = llm.model_copy(update={"reuse_client": True} if hasattr(llm, "reuse_client") else {})
    try:
        getattr(copy, "_get_client", lambda: None)()  # creates it, where that waits for a request
        client = client_of(copy)
    except service_errors() as error:
        raise ModelError(f"LLM {llm.metadata.model_name!r} cannot be used: {error}") from error
    noting = Noting(client)
    line = noting.line(through(copy, noting).complete, "")
    if line is None or line.url not in ENDPOINTS:
        raise _no_protocol(llm)
    return copy


def client_of(llm: LLM) -> "OpenAI":
    """Return the blocking OpenAI client of a model."""
    clients = [held for held in _held(llm).values() if _is_client(held)]
    if not clients:
        raise _no_protocol(llm)
    client: OpenAI = clients[0]
    if type(client).__module__.startswith("openai.lib."):  # of Azure and Bedrock
        raise InputError(
            f"batch (--llm-batch) needs the Batch API as OpenAI has it, which {type(llm).__name__} "
            f"with its {type(client).__name__} client lacks."
        )
    return client


def through(llm: LLM, transport: httpx.BaseTransport) -> LLM:
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


class Noting(_Transport):
    """Keeps requests and sends none."""

    def __init__(self, client: "OpenAI") -> None:
        super().__init__(client)
        self._lines = list[Line]()

    def line(self, ask: Callable[[str], Any], prompt: str) -> Line | None:
        """Return the request that a model makes for a prompt, if it makes one."""
        self._lines.clear()
        with suppress(*request_errors()):  # if it is not ours, the prompt fails again later
            ask(prompt)
        return self._lines[-1] if self._lines else None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Keep the request."""
        self._lines.append(self._line(request))
        raise httpx.TransportError("The request is noted and not sent.")


class Answering(_Transport):
    """Answers each request with what there is for it, once, and sends all others."""

    def __init__(self, client: "OpenAI") -> None:
        super().__init__(client)
        self.answers = dict[str, Answer]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer to a request."""
        answer = self.answers.pop(self._line(request).custom_id, None)
        if answer is None:
            network: httpx.Client = self._client._client
            return network.send(request, stream=True)
        return httpx.Response(answer.status, json=answer.body)


def _no_protocol(llm: LLM) -> InputError:
    return InputError(
        f"batch (--llm-batch) needs a model that speaks OpenAI's protocol, got "
        f"{type(llm).__name__}."
    )


def _held(llm: LLM) -> dict[str, Any]:
    return llm.__pydantic_private__ or {}


def _is_client(held: Any) -> bool:
    openai = sys.modules.get("openai")  # a model with a client of it has imported it
    return openai is not None and isinstance(held, openai.OpenAI)
