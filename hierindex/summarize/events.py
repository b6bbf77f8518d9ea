"""What LlamaIndex's instrumentation hears of a build, beside its own events of each model call."""

from typing import Self

from llama_index.core.instrumentation.events import BaseEvent

from hierindex.record import Span


class LevelSummarized(BaseEvent):
    """A level's summaries are written.

    `usage` has what they cost: requests, prompt and completion tokens, those of earlier builds,
    and those that fell back on their extracts.
    """

    level: int
    n_groups: int
    usage: dict[str, int]

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "LevelSummarized"


class SummaryFallback(BaseEvent):
    """A rewrite failed for good, and the extract of its group stands in its place.

    `document` and `start`, in characters, tell where the group begins.
    """

    summarizer: str
    reason: str
    document: str | None = None
    start: int | None = None

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "SummaryFallback"

    @classmethod
    def of(cls, summarizer: str, reason: str, source: Span | None) -> Self:
        """The event of a group whose first sentence stands there."""
        if source is None:
            return cls(summarizer=summarizer, reason=reason)
        return cls(
            summarizer=summarizer, reason=reason, document=source.document, start=source.start
        )
