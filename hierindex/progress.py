"""Progress reports of long operations, and the seconds that they take."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Protocol of progress callbacks: `progress(stage, done, total, cost)`.

    `stage` is a name; `done` and `total` are numbers of steps. `cost` is a text, such as the tokens
    spent so far if a language model is used, else "".
    """

    def __call__(self, stage: str, done: int, total: int, cost: str = "", /) -> None:
        """Report progress."""


def silent(stage: str, done: int, total: int, cost: str = "", /) -> None:
    """Report nothing."""


class Timing(NamedTuple):
    """Seconds that a stage took; `level` is the one it made, None if it concerns all levels."""

    stage: str
    level: int | None
    seconds: float


class Stopwatch:
    """Adds up seconds by stage and level.

    >>> watch = Stopwatch()
    >>> with watch("embed", 0):
    ...     pass
    >>> [(timing.stage, timing.level) for timing in watch.timings]
    [('embed', 0)]
    """

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, int | None], float] = {}
        self._started = time.perf_counter()

    @contextmanager
    def __call__(self, stage: str, level: int | None = None) -> Iterator[None]:
        """Measure a `with` block, including the time that a generator is suspended in it."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add([Timing(stage, level, time.perf_counter() - start)])

    def add(self, timings: Iterable[Timing]) -> None:
        """Add timings measured elsewhere."""
        for stage, level, spent in timings:
            self._seconds[stage, level] = self._seconds.get((stage, level), 0.0) + spent

    @property
    def elapsed(self) -> float:
        """Seconds since the stopwatch was made."""
        return time.perf_counter() - self._started

    @property
    def timings(self) -> list[Timing]:
        """Sums by stage and level, in the order in which stages first ended."""
        return [Timing(*key, seconds) for key, seconds in self._seconds.items()]
