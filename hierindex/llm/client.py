"""Language models by name, behind any OpenAI-compatible address."""

import os
import re
import sys
from contextlib import suppress
from importlib import import_module
from inspect import unwrap
from typing import Any, Literal

from llama_index.core.llms import LLM, CustomLLM

from hierindex.errors import ModelError
from hierindex.llm.failures import service_errors

KEY = "HIERINDEX_LLM_API_KEY"  # our own: a key of OpenAI's must not go to another's server
CONTEXT_WINDOW = 8192
SHAPING = ("temperature", "system_prompt", "reasoning_effort", "top_p", "seed", "max_tokens")
SECRET = re.compile("(?i)key|token|secret|password|credential|header|url|base")
TIMEOUT = 120.0  # seconds of a request


def load_llm(
    model: str, base_url: str, *, timeout: float = TIMEOUT, completion_tokens: int | None = None
) -> LLM:
    """A model of an OpenAI-compatible server; its key comes from the environment alone.

    Parameters
    ----------
    model : str
    base_url : str
        Such as `http://localhost:8000/v1`.
    timeout : float
        Seconds of a request.
    completion_tokens : int, optional
        Most tokens of an answer, its thinking included; by default the caller's choice.

    Returns
    -------
    LLM
        Without retries of its own, which would be counted nowhere.

    Raises
    ------
    ModelError
        If `llama-index-llms-openai-like` is not installed.
    """
    try:
        from llama_index.llms.openai_like import OpenAILike
    except ModuleNotFoundError as error:
        raise ModelError("Language models need `pip install 'hierindex[llm]'`.") from error
    llm: LLM = OpenAILike(
        model=model,
        api_base=base_url,
        api_key=os.environ.get(KEY, "none"),
        is_chat_model=True,
        context_window=CONTEXT_WINDOW,
        timeout=timeout,
        max_tokens=completion_tokens,
        max_retries=0,
    )
    return llm


def load_client() -> None:
    """Import what OpenAI's client imports at its first request, so that it is not timed with it."""
    if "openai" in sys.modules:
        import_module("openai.resources.chat.completions")


def make_client(llm: LLM, how: Literal["_get_client", "_get_aclient"]) -> None:
    """Make the HTTP client that OpenAI's models make when they are first asked.

    Copies made before would each make their own: a tenth of a second, and a new connection. Why
    there can be none is said when the model is asked.
    """
    if getattr(llm, "reuse_client", False) and hasattr(llm, how):
        with suppress(*service_errors()):
            getattr(llm, how)()


def without_retries(llm: LLM, timeout: float) -> LLM:
    """The model, or a copy whose client neither tries again by itself nor waits longer.

    What a client tries again is counted nowhere, and each of its requests would be several.
    """
    changes: dict[str, Any] = {}
    if getattr(llm, "max_retries", 0):
        changes["max_retries"] = 0
    if (getattr(llm, "timeout", None) or 0) > timeout:
        changes["timeout"] = timeout
    if not changes:
        return llm
    copy = llm.model_copy(update=changes)
    for name, client in (copy.__pydantic_private__ or {}).items():
        if hasattr(client, "with_options"):  # of OpenAI's kind, made before
            setattr(copy, name, client.with_options(**changes))
    return copy


def for_another_loop(llm: LLM) -> LLM:
    """A copy for the running event loop: an async client serves one loop alone."""
    copy = llm.model_copy()
    if getattr(copy, "_async_http_client", None) is None and hasattr(copy, "_aclient"):
        copy._aclient = None  # the original's, of another loop
    make_client(copy, "_get_aclient")
    return copy


def lacks_async(kind: Any, method: str) -> bool:
    """Whether an async method of a class is `CustomLLM`'s, which blocks: it calls the sync one."""
    own, inherited = getattr(kind, method), getattr(CustomLLM, method)
    return unwrap(own) is unwrap(inherited)  # each look-up wraps it anew


def shaping(llm: LLM) -> dict[str, Any]:
    """The settings of a model that shape what it writes; no address and no secret."""
    described = {key: getattr(llm, key, None) for key in SHAPING}
    extra = getattr(llm, "additional_kwargs", None) or {}
    described |= {key: value for key, value in extra.items() if not SECRET.search(key)}
    return {key: value for key, value in described.items() if value is not None}
