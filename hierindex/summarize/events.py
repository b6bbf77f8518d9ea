"""Events that a build sends to LlamaIndex's instrumentation."""

from llama_index.core.instrumentation.events import BaseEvent


class _Event(BaseEvent):
    @classmethod
    def class_name(cls) -> str:
        return cls.__name__


class LevelSummarized(_Event):
    """Event sent when all summaries of a level are written.

    `usage` counts requests, prompt and completion tokens, summaries taken from the cache, and
    fallbacks to extracts.
    """

    level: int
    n_groups: int
    usage: dict[str, int]


class SummaryFallback(_Event):
    """Event sent when a rewrite fails permanently and the extract is used instead.

    The group begins at character `start` of `document`.
    """

    summarizer: str
    reason: str
    document: str | None = None
    start: int | None = None
