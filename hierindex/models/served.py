"""LlamaIndex models whose requests go through a `Service`."""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial, partialmethod
from math import inf
from typing import Any, cast
from weakref import WeakKeyDictionary

from llama_index.core.llms import LLM
from llama_index.core.llms.structured_llm import StructuredLLM
from pydantic import BaseModel, ConfigDict, Field

from hierindex.core.arguments import is_number
from hierindex.models.client import for_another_loop, lacks_async, make_client, without_retries
from hierindex.models.limits import AdaptiveLimit
from hierindex.models.record import Call, Calls, prompt_of
from hierindex.models.service import WAIT, Service
from hierindex.threads import in_daemon_thread


class Served(BaseModel):
    """A mixin that routes the request methods of an LLM class through its `Service`."""

    model_config = ConfigDict(arbitrary_types_allowed=True, ignored_types=(partialmethod,))
    request_service: Service = Field(exclude=True, repr=False)
    request_records: tuple[Calls, ...] = Field(exclude=True, repr=False)
    loop_clients: WeakKeyDictionary[AbstractEventLoop, Any] = Field(exclude=True, repr=False)

    def _through(self, way: Callable[..., Any], method: str, /, *args: Any, **options: Any) -> Any:
        send = partial(getattr(super(), method), *args, **options)
        if self.request_service.is_asking:
            return send()
        return way(self.request_service, prompt_of(*args, **options), send, self._note)

    async def _aask(self, method: str, /, *args: Any, **options: Any) -> Any:
        model = super(Served, self._of_loop())
        if lacks_async(super(Served, type(self)), method):
            block = partial(getattr(model, method.removeprefix("a")), *args, **options)
            send: Any = partial(in_daemon_thread, block)
        else:
            send = partial(getattr(model, method), *args, **options)
        if self.request_service.is_asking:
            return await send()
        prompt = prompt_of(*args, **options)
        service = self.request_service
        return await service.aask(prompt, send, self._note, partial(service.answer, prompt))

    async def _astream(self, method: str, /, *args: Any, **options: Any) -> Any:
        send = partial(getattr(super(Served, self._of_loop()), method), *args, **options)
        if self.request_service.is_asking:
            return await send()
        return self.request_service.astream(prompt_of(*args, **options), send, self._note)

    complete = partialmethod(_through, Service.ask, "complete")
    chat = partialmethod(_through, Service.ask, "chat")
    stream_complete = partialmethod(_through, Service.stream, "stream_complete")
    stream_chat = partialmethod(_through, Service.stream, "stream_chat")
    acomplete = partialmethod(_aask, "acomplete")
    achat = partialmethod(_aask, "achat")
    astream_complete = partialmethod(_astream, "astream_complete")
    astream_chat = partialmethod(_astream, "astream_chat")

    def _note(self, call: Call) -> None:
        for record in self.request_records:
            record.add(call)

    def _of_loop(self) -> Any:
        """Return a copy with the running loop's clients, which models keep in private attributes.

        Nothing public replaces them.
        """
        loop, clients = asyncio.get_running_loop(), self.loop_clients
        if loop not in clients:
            for ended in [other for other in clients if other.is_closed()]:
                clients.pop(ended, None)  # a client holds a reference to its loop
            clients[loop] = for_another_loop(cast(LLM, self)).__pydantic_private__
        copy = self.model_copy()
        object.__setattr__(copy, "__pydantic_private__", clients[loop])
        return copy


def served(llm: LLM, calls: Calls | None = None, *, concurrency: int | None = None) -> LLM:
    """Return a copy of a model that sends requests through a `Service`, without client retries.

    Parameters
    ----------
    llm : LLM
        A served model keeps its service and shares its limits with the copy.
    calls : Calls, optional
        An additional record of its calls.
    concurrency : int, optional
        Maximum requests in flight; 4 by default.

    Returns
    -------
    LLM
        An instance of a subclass of the model's class. A request that fails for good raises
        `RequestError`, or `ModelError` if no other request would succeed.
    """
    if isinstance(llm, StructuredLLM):  # the model inside it sends the requests
        return llm.model_copy(update={"llm": served(llm.llm, calls, concurrency=concurrency)})
    copy = llm if isinstance(llm, Served) else _first_served(llm)
    service, records = copy.request_service, copy.request_records
    if concurrency not in (None, service.limit.most):
        service = replace(service, limit=AdaptiveLimit(concurrency))
    if calls is not None:
        records = (*records, calls)
    changes = {"request_service": service, "request_records": records}
    return cast(LLM, copy.model_copy(update=changes))


def service_of(llm: LLM) -> Service:
    """Return the service of a served model."""
    return cast(Served, llm.llm if isinstance(llm, StructuredLLM) else llm).request_service


def _first_served(llm: LLM) -> Served:
    copy: Any = without_retries(llm, inf)
    make_client(copy, "_get_client")
    copy.__class__ = _served_class(copy.__class__)
    copy.request_service = Service(llm.metadata.model_name, timeout=_timeout(llm), wait=WAIT)
    copy.request_records, copy.loop_clients = (), WeakKeyDictionary()
    return cast(Served, copy)


def _timeout(llm: LLM) -> float | None:
    """Return the timeout in a model's settings; local models have none."""
    named = (getattr(llm, name, None) for name in ("timeout", "request_timeout"))
    return next((seconds for seconds in named if is_number(seconds)), None)


@cache
def _served_class(kind: type[LLM]) -> type[LLM]:
    return type(kind.__name__, (Served, kind), {"__module__": kind.__module__})
