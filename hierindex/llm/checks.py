"""What services and models say in the place of an answer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse

from hierindex.errors import ModelError

if TYPE_CHECKING:
    from hierindex.llm.record import Call


class UnusableError(Exception):
    """What a model wrote is of no use; another attempt may be if `again`."""

    def __init__(self, reason: str, *, again: bool = True) -> None:
        super().__init__(reason)
        self.again = again


def check_said(model: str, calls: Sequence["Call"]) -> None:
    """Refuse calls to which nothing was answered, or nothing but their prompts.

    Parameters
    ----------
    model : str
        How the sentence names the model.
    calls : sequence of Call

    Raises
    ------
    ModelError
    """
    said = [call for call in calls if call.completion.strip()]
    if calls and not said:
        raise ModelError(f"{model} answered nothing.")
    if said and all(call.prompt.strip() in call.completion for call in said):
        raise ModelError(f"{model} repeated what it was asked and answered nothing.")


def finish_reason(response: CompletionResponse | ChatResponse) -> str | None:
    """Why the model stopped, as its service says; None where it does not."""
    raw = response.raw
    choices = _get(raw, "choices")
    ends = choices[0] if choices else raw
    if choices and _get(_get(ends, "message"), "refusal"):
        return "refusal"
    reasons = (_get(ends, key) for key in ("finish_reason", "stop_reason", "done_reason"))
    return next((reason for reason in reasons if isinstance(reason, str)), None)


def _get(raw: Any, key: str) -> Any:
    return raw.get(key) if isinstance(raw, dict) else getattr(raw, key, None)
