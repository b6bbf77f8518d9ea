"""Clients for OpenAI-compatible servers."""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
from llama_index.core.llms import LLM

from hierindex.errors import ModelError
from hierindex.models.failures import reason_in
from hierindex.settings import LLMSettings

KEY = "HIERINDEX_LLM_API_KEY"  # not OpenAI's variable, whose key must not reach other servers
CONTEXT_WINDOW = 8192
SHAPING = ("temperature", "system_prompt", "reasoning_effort", "top_p", "seed", "max_tokens")
SECRET = re.compile("(?i)key|token|secret|password|credential|header|url|base")
TIMEOUT = LLMSettings.llm_timeout


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
        Its client does not retry; `LLMSettings` does.

    Raises
    ------
    ModelError
        If `llama-index-llms-openai-like` is not installed.
    """
    try:
        from llama_index.llms.openai_like import OpenAILike
    except ModuleNotFoundError as error:
        raise ModelError("Language models require `pip install 'hierindex[llm]'`.") from error
    made: Callable[..., LLM] = OpenAILike  # whose parameters type checkers do not see
    return made(
        model=model,
        api_base=base_url,
        api_key=os.environ.get(KEY, "none"),
        is_chat_model=True,
        context_window=max(CONTEXT_WINDOW, 2 * (completion_tokens or 0)),
        timeout=timeout,
        max_tokens=completion_tokens,
        max_retries=0,
        http_client=httpx.Client(
            follow_redirects=True, limits=httpx.Limits(), event_hooks={"response": [show_error]}
        ),
    )


def show_error(response: httpx.Response) -> None:
    """Set an error status if a response with status 200 has an error as body, as from LM Studio."""
    if response.is_success and "json" in response.headers.get("Content-Type", ""):
        response.read()
        with suppress(ValueError, AttributeError):
            if not response.json().get("choices") and reason_in(response.json()):
                response.status_code = 500


def shaping(llm: LLM) -> dict[str, Any]:
    """Return the settings that affect a model's answers, without addresses and secrets."""
    described = {key: getattr(llm, key, None) for key in SHAPING}
    extra = getattr(llm, "additional_kwargs", None) or {}
    described |= {key: value for key, value in extra.items() if not SECRET.search(key)}
    return {key: value for key, value in described.items() if value is not None}
