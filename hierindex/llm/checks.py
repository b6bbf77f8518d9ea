"""Checks for empty, echoed and truncated answers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse

from hierindex.errors import ModelError

if TYPE_CHECKING:
    from hierindex.llm.record import Call

CUT = frozenset({"length", "max_tokens", "MAX_TOKENS"})  # OpenAI, Anthropic, Google


class UnusableError(Exception):
    """An answer that cannot be used; `again` is whether another attempt may help."""

    def __init__(self, reason: str, *, again: bool = True) -> None:
        super().__init__(reason)
        self.again = again


def check_said(model: str, calls: Sequence["Call"]) -> None:
    """Raise ModelError if all answers are empty or repeat their prompts.

    Parameters
    ----------
    model : str
        Subject of the message, for example "The model".
    calls : sequence of Call
    """
    answered = [call for call in calls if call.completion.strip()]
    if calls and not answered:
        raise ModelError(f"{model} answered nothing.")
    if answered and all(call.prompt.strip() in call.completion for call in answered):
        raise ModelError(f"{model} repeated what it was asked and answered nothing.")


def finish_reason(response: CompletionResponse | ChatResponse) -> str | None:
    """Return the service's reason why the model stopped, or None if it gives none."""
    raw = response.raw
    choices = _get(raw, "choices")
    ends = choices[0] if choices else raw
    if choices and _get(_get(ends, "message"), "refusal"):
        return "refusal"
    reasons = (_get(ends, key) for key in ("finish_reason", "stop_reason", "done_reason"))
    return next((reason for reason in reasons if isinstance(reason, str)), None)


def _get(raw: Any, key: str) -> Any:
    return raw.get(key) if isinstance(raw, dict) else getattr(raw, key, None)
