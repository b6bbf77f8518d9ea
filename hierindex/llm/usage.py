"""Usage of a language model."""

from dataclasses import astuple, dataclass


@dataclass(frozen=True)
class Usage:
    """Cost of summaries or answers; `llm_calls` are requests sent, retries included."""

    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_summaries: int = 0
    fallbacks: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(sum, zip(astuple(self), astuple(other), strict=True)))
