"""Progress reports of long operations."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """A callable that receives a stage's name, the steps done and the total number of steps.

    With models that cost money, the fourth argument is the cost of the build so far, as text.
    """

    def __call__(self, stage: str, done: int, total: int, cost: str = "", /) -> None:
        """Report progress."""


def silent(stage: str, done: int, total: int, cost: str = "", /) -> None:
    """Report nothing."""
