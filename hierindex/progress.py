"""How long work tells how far it is."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Progress(Protocol):
    """Called with a stage's name, the steps done and the steps in all.

    Where models are paid, a fourth argument tells what the build has cost so far.
    """

    def __call__(self, stage: str, done: int, total: int, cost: str = "", /) -> None:
        """Tell somebody."""


def silent(stage: str, done: int, total: int, cost: str = "", /) -> None:
    """Tell nobody."""
