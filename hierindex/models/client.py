"""Clients of language models: loading by name and preparing a user's LlamaIndex model."""

import json
import os
import re
from contextlib import suppress
from functools import cache, partial
from inspect import isawaitable, unwrap
from typing import Any, Literal

import httpx
from llama_index.core.llms import LLM, CustomLLM

from hierindex.errors import ModelError
from hierindex.models.failures import reason_in, service_errors

KEY = "HIERINDEX_LLM_API_KEY"  # not OpenAI's variable, whose key must not reach other servers
CONTEXT_WINDOW = 8192
SHAPING = ("temperature", "system_prompt", "reasoning_effort", "top_p", "seed", "max_tokens")
SECRET = re.compile("(?i)key|token|secret|password|credential|header|url|base")
TIMEOUT = 120.0  # seconds per request


def load_llm(
    model: str, base_url: str, *, timeout: float = TIMEOUT, completion_tokens: int | None = None
) -> LLM:
    """Load a model of an OpenAI-compatible server, with the key from `HIERINDEX_LLM_API_KEY`.

    Parameters
    ----------
    model : str
    base_url : str
        For example `http://localhost:8000/v1`.
    timeout : float
        Seconds per request.
    completion_tokens : int, optional
        Maximum tokens of an answer, reasoning included; by default the caller chooses. The model's
        window is taken to be at least twice as large.

    Returns
    -------
    LLM
        Its client does not retry; `Service` does.

    Raises
    ------
    ModelError
        If `llama-index-llms-openai-like` is not installed.
    """
    try:
        from llama_index.llms.openai_like import OpenAILike
    except ModuleNotFoundError as error:
        raise ModelError("Language models require `pip install 'hierindex[llm]'`.") from error
    llm: LLM = OpenAILike(
        model=model,
        api_base=base_url,
        api_key=os.environ.get(KEY, "none"),
        is_chat_model=True,
        context_window=max(CONTEXT_WINDOW, 2 * (completion_tokens or 0)),
        timeout=timeout,
        max_tokens=completion_tokens,
        max_retries=0,
    )
    return llm


def make_client(llm: LLM, how: Literal["_get_client", "_get_aclient"]) -> None:
    """Create the HTTP client that OpenAI's models create lazily, so that copies share it.

    If it cannot be created, the first request reports why. It has no public way.
    """
    if getattr(llm, "reuse_client", False) and hasattr(llm, how):
        with suppress(*service_errors()):
            getattr(llm, how)()


def without_retries(llm: LLM, timeout: float) -> LLM:
    """Return a copy of a model whose client does not retry and has at most this timeout.

    A client's own retries are not counted as requests. Replies are read as `Reading` does.
    """
    changes: dict[str, Any] = {}
    if getattr(llm, "max_retries", 0):
        changes["max_retries"] = 0
    if (getattr(llm, "timeout", None) or 0) > timeout:
        changes["timeout"] = timeout
    copy = llm.model_copy(update=changes)
    copy.__class__ = reading_class(type(llm))
    for name, client in (copy.__pydantic_private__ or {}).items():  # clients have no public names
        if changes and hasattr(client, "with_options"):  # an OpenAI client that exists already
            setattr(copy, name, client.with_options(**changes))
    return copy


def for_another_loop(llm: LLM) -> LLM:
    """Return a copy for the running event loop; async clients belong to one loop."""
    copy = llm.model_copy()
    if getattr(copy, "_async_http_client", None) is None and hasattr(copy, "_aclient"):
        copy._aclient = None  # belongs to another loop, and has no public name
    make_client(copy, "_get_aclient")
    return copy


def lacks_async(kind: Any, method: str) -> bool:
    """Return whether a class inherits an async method of `CustomLLM`, which blocks."""
    own, inherited = getattr(kind, method), getattr(CustomLLM, method)
    return unwrap(own) is unwrap(inherited)  # each access wraps it again


def shaping(llm: LLM) -> dict[str, Any]:
    """Return the settings that affect a model's answers, without addresses and secrets."""
    described = {key: getattr(llm, key, None) for key in SHAPING}
    extra = getattr(llm, "additional_kwargs", None) or {}
    described |= {key: value for key, value in extra.items() if not SECRET.search(key)}
    return {key: value for key, value in described.items() if value is not None}


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
