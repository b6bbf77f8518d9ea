"""Progress reports of long operations, and the seconds that they take."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Protocol for progress callbacks: `progress(stage, done, total, cost="")`.

    `stage` is a name; `done` and `total` are numbers of steps. If a language model is used,
    `cost` may be its usage so far, such as "12 calls, 3,456 tokens".
    """

    def __call__(self, stage: str, done: int, total: int, cost: str = "", /) -> None:
        """Report progress."""


def silent(stage: str, done: int, total: int, cost: str = "", /) -> None:
    """Do nothing; the default callback."""


class Stopwatch:
    """Adds up seconds by stage, in the order in which stages first ended.

    >>> watch = Stopwatch()
    >>> with watch("embed"):
    ...     pass
    >>> [*watch.seconds]
    ['embed']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = time.perf_counter()

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Measure a `with` block, including the time that a generator is suspended in it."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add({stage: time.perf_counter() - start})

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add seconds measured elsewhere, by stage."""
        for stage, spent in seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + spent

    @property
    def elapsed(self) -> float:
        """Seconds since the stopwatch was made."""
        return time.perf_counter() - self._started
