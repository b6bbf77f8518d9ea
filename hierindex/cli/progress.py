"""Progress bars on a terminal."""

import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from hierindex.progress import Progress, silent
from hierindex.unsafe import visible


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Show a bar for each stage on standard error, if it is a terminal."""
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description:<20}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[cost]}", markup=False),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks, of_stages = dict[str, TaskID](), defaultdict[str, _Stage](_Stage)

        def show(stage: str, done: int, total: int, cost: str = "", /) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(visible(stage), total=total, cost="")
            done, total = of_stages[stage].with_earlier(done, total)
            bars.update(tasks[stage], completed=done, total=total, cost=visible(cost))

        yield show


@dataclass
class _Stage:
    """Steps of a stage, which a large build goes through once for each part of its documents."""

    earlier: int = 0  # steps of the parts before
    done: int = 0
    total: int = 0

    def with_earlier(self, done: int, total: int) -> tuple[int, int]:
        """Return the steps done and their number, with those of earlier parts."""
        if done < self.done or self.done == self.total:
            self.earlier += self.total
        self.done, self.total = done, total
        return self.earlier + done, self.earlier + total


class RepeatedProgress:
    """A `Progress` that shows bars from a call on until it is closed, which may happen often."""

    def __init__(self) -> None:
        self._shown = ExitStack()
        self._show: Progress | None = None

    def __call__(self, stage: str, done: int, total: int, cost: str = "", /) -> None:
        """Show the progress of a stage."""
        if self._show is None:
            self._show = self._shown.enter_context(shown_progress())
        self._show(stage, done, total, cost)

    def close(self) -> None:
        """Remove the bars; the next call shows new ones."""
        self._shown.close()
        self._show = None
