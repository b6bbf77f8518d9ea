"""Replies of OpenAI's protocol that its client cannot read: lists of parts, and errors as 200."""

import json
from functools import cache, partial
from inspect import isawaitable
from typing import Any

import httpx
from llama_index.core.llms import LLM

from hierindex.llm.failures import reason_in


class Reading:
    """A mixin for models of OpenAI's protocol, whose clients then return plain texts."""

    def _get_client(self, *args: Any) -> Any:
        return _reading(super()._get_client(*args))  # type: ignore[misc]

    def _get_aclient(self, *args: Any) -> Any:
        return _reading(super()._get_aclient(*args))  # type: ignore[misc]

    def __reduce__(self) -> Any:
        return _unpickled, (type(self).__mro__[2], self.__getstate__())


@cache
def reading_class(kind: type[LLM]) -> type[LLM]:
    """Return a class of models, with `Reading` if it has clients of OpenAI's protocol."""
    if issubclass(kind, Reading) or not hasattr(kind, "_get_aclient"):
        return kind
    return type(kind.__name__, (Reading, kind), {"__module__": kind.__module__})


def _unpickled(kind: type[LLM], state: Any) -> LLM:
    llm = kind.__new__(reading_class(kind))
    llm.__setstate__(state)
    return llm


def _reading(client: Any) -> Any:
    """Return a copy of a client, with the same connections."""
    if not hasattr(client, "chat"):
        return client
    copy = client.with_options()
    request = httpx.Request("POST", client.base_url, headers=client.auth_headers)
    completions = copy.chat.completions
    completions.create = partial(_created, completions.create, partial(_plain, request))
    return copy


def _created(create: Any, read: Any, **options: Any) -> Any:
    created = create(**options)
    if isawaitable(created):
        return _acreated(created, read)
    if not hasattr(created, "response"):
        return read(created)
    if "json" in created.response.headers.get("Content-Type", ""):  # no stream
        read(json.loads(created.response.read()))
    return map(read, created)


async def _acreated(creating: Any, read: Any) -> Any:
    created = await creating
    if not hasattr(created, "response"):
        return read(created)
    if "json" in created.response.headers.get("Content-Type", ""):
        read(json.loads(await created.response.aread()))
    return (read(chunk) async for chunk in created)


def _plain(request: httpx.Request, reply: Any) -> Any:
    """Join the parts of a reply or a chunk that are text; raise the error that it is."""
    from openai import APIError

    body = reply if isinstance(reply, dict) else getattr(reply, "model_extra", None)
    choices = getattr(reply, "choices", None) or ()
    if not choices and (reason := reason_in(body)):
        raise APIError(reason, request, body=body)
    for choice in choices:
        said: Any = getattr(choice, "message", None) or getattr(choice, "delta", None)
        if isinstance(getattr(said, "content", None), list):
            parts = [part for part in said.content if part.get("type") in ("text", "output_text")]
            said.content = "".join(part.get("text") or "" for part in parts)
    return reply
