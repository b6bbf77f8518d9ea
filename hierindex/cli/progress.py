"""Progress of long commands: lines on a terminal, otherwise a sentence every half minute."""

import sys
from datetime import timedelta

from rich.console import Console
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TaskID
from rich.text import Text

from hierindex.cli.output import print_note
from hierindex.text.display import counted
from hierindex.unsafe import visible

PERIOD = 30.0  # seconds over which a rate is measured, and between sentences
STAGES = {  # what is done, and to what
    "read": ("Reading", "file"),
    "split": ("Splitting", "document"),
    "embed chunks": ("Embedding", "chunk"),
    "cluster level": ("Grouping similar nodes", ""),
    "summarize level": ("Writing", "summary"),
    "embed level": ("Embedding", "summary"),
    "grow documents": ("Growing trees over", "document"),
    "grow pools": ("Growing trees over", "pool"),
    "write": ("Writing the index", ""),
    "questions": ("Asking", "question"),
}


class ShownProgress:
    """A `Progress` display, shown until it is closed and again from the next call on.

    A terminal shows a line for each stage. Elsewhere a sentence is printed every half minute.

    Parameters
    ----------
    loaded : str
        Text about what is loaded before the first call.
    """

    def __init__(self, loaded: str) -> None:
        self._show()
        self._tasks[""] = self._shown.add_task(f"Loading {visible(loaded)}", total=1)

    def _show(self) -> None:
        console, self._tasks = Console(stderr=True), dict[str, TaskID]()
        self._shown = Progress(
            SpinnerColumn(finished_text="✓"),
            _State(),
            console=console,
            speed_estimate_period=PERIOD,
            transient=True,
            disable=not sys.stderr.isatty() or console.is_dumb_terminal,
        )
        self._shown.start()
        self._told = self._shown.get_time()

    def __call__(self, stage: str, done: int, total: int, cost: str = "", /) -> None:
        """Report progress; see `Progress`."""
        if not total:
            return
        if not self._tasks:
            self._show()
        if "" in self._tasks:
            self._shown.update(self._tasks[""], completed=1)
        name = visible(stage.rstrip(" 0123456789"))  # of all levels
        if name not in self._tasks:
            self._tasks[name] = self._shown.add_task("", total=total)
        task = self._tasks[name]
        if done < self._shown.tasks[task].completed:
            self._shown.reset(task)  # for the next level, or the next part of the documents
        data_set, colon, kind = name.rpartition(": ")
        doing, noun = STAGES.get(kind, (kind, "step"))
        said = f"{data_set}{colon}{doing}"
        if noun:
            said += f" {done:,} of {counted(total, noun)}"
        self._shown.update(task, completed=done, total=total, description=said, cost=visible(cost))
        now = self._shown.get_time()
        if self._shown.disable and now - self._told >= PERIOD:
            self._told = now
            print_note(_state(self._shown.tasks[task]))

    def close(self) -> None:
        """Remove the progress lines."""
        self._shown.stop()
        self._tasks.clear()


class _State(ProgressColumn):
    """The column that shows what a stage does."""

    def render(self, task: Task) -> Text:
        return Text(_state(task), "dim", no_wrap=True, overflow="ellipsis")


def _state(task: Task) -> str:
    """Say what a stage does, how fast it is, how long it still takes, and what it has cost."""
    told = [task.description]
    if task.speed and task.time_remaining:
        rate = f"{task.speed:,.0f}" if task.speed >= 100 else f"{task.speed:.3g}"
        told += [f"{rate}/s", f"{timedelta(seconds=task.time_remaining)} left"]
    elif task.finished and task.finished_time:
        told.append(f"{task.finished_time:.1f} s")
    return ", ".join(filter(None, [*told, task.fields.get("cost")]))
