"""Clients of language models: loading by name and preparing a user's LlamaIndex model."""

import os
import re
from contextlib import suppress
from inspect import unwrap
from typing import Any, Literal

from llama_index.core.llms import LLM, CustomLLM

from hierindex.errors import ModelError
from hierindex.llm.failures import service_errors
from hierindex.llm.readable import reading_class

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
