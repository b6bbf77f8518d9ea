"""What LlamaIndex's instrumentation hears of a build, beside its own events of each model call."""

from llama_index.core.instrumentation.events import BaseEvent


class _Event(BaseEvent):
    @classmethod
    def class_name(cls) -> str:
        return cls.__name__


class LevelSummarized(_Event):
    """A level's summaries are written.

    `usage` has what they cost: requests, prompt and completion tokens, those of earlier builds,
    and those that fell back on their extracts.
    """

    level: int
    n_groups: int
    usage: dict[str, int]


class SummaryFallback(_Event):
    """A rewrite failed for good, and the extract of its group stands in its place.

    `document` and `start`, in characters, tell where the group begins.
    """

    summarizer: str
    reason: str
    document: str | None = None
    start: int | None = None
