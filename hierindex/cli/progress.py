"""Progress of long commands: one line on a terminal, otherwise a sentence every half minute."""

import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from hierindex.cli.output import print_note
from hierindex.text.display import counted
from hierindex.unsafe import visible

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PERIOD = 30.0  # seconds over which a rate is measured, and between sentences
STAGES = {  # what is done, what was done, and to what
    "read": ("Reading", "Read", "file"),
    "split": ("Splitting", "Split", "document"),
    "embed chunks": ("Embedding", "Embedded", "chunk"),
    "cluster level": ("Grouping similar nodes", "Grouped similar nodes", ""),
    "summarize level": ("Writing", "Wrote", "summary"),
    "embed level": ("Embedding", "Embedded", "summary"),
    "grow documents": ("Growing trees over", "Grew trees over", "document"),
    "grow pools": ("Growing trees over", "Grew trees over", "pool"),
    "write": ("Writing the index", "Wrote the index", ""),
    "questions": ("Asking", "Asked", "question"),
}


@dataclass
class _Stage:
    """A stage, which a build goes through once for each level and each part of its documents."""

    doing: str
    did: str
    noun: str
    earlier: int = 0  # steps of levels and parts before
    done: int = 0
    total: int = 0
    cost: str = ""
    seconds: float = 0.0
    steps: deque[tuple[float, int]] = field(default_factory=deque)  # when how many were done

    @classmethod
    def named(cls, name: str) -> Self:
        """Return a stage with the words for its name."""
        data_set, colon, kind = visible(name).rpartition(": ")
        doing, did, noun = STAGES.get(kind, (kind, kind, "step"))
        return cls(f"{data_set}{colon}{doing}", f"{data_set}{colon}{did}", noun)

    def report(self, now: float, done: int, total: int, cost: str) -> None:
        """Count steps."""
        if done < self.done or self.done == self.total:
            self.earlier += self.total
            self.steps.clear()
        self.done, self.total, self.cost = done, total, cost
        self.steps.append((now, done))
        while now - self.steps[0][0] > PERIOD and len(self.steps) > 2:
            self.steps.popleft()

    @property
    def now(self) -> list[str]:
        """What is done now, and how fast."""
        if not self.noun:
            return [self.doing]
        of = counted(self.earlier + self.total, self.noun)
        told = [f"{self.doing} {self.earlier + self.done:,} of {of}"]
        (start, first), (end, last) = self.steps[0], self.steps[-1]
        if last > first and end > start and self.done < self.total:
            rate = (last - first) / (end - start)
            left = duration((self.total - self.done) / rate)
            told += [f"{rate:.2g}/s" if rate < 10 else f"{rate:,.0f}/s", f"{left} left"]
        return [*told, visible(self.cost)] if self.cost else told

    @property
    def ended(self) -> str:
        """What was done, and how long it took."""
        what = f" {counted(self.earlier + self.done, self.noun)}" if self.noun else ""
        return f"✓ {self.did}{what}  {duration(self.seconds, digits=1)}"


class ShownProgress:
    """A `Progress` display, shown until it is closed and again from the next call on.

    A terminal shows the finished steps and, on the last line, the current one. Elsewhere a sentence
    is printed every half minute.

    Parameters
    ----------
    loaded : str
        Text about what is loaded before the first call.
    """

    def __init__(self, loaded: str) -> None:
        self._current = _Stage(f"Loading {visible(loaded)}", f"Loaded {visible(loaded)}", "")
        self._stages = {"": self._current}
        self._since = self._told = time.monotonic()
        self._live = _shown(self)

    def __call__(self, stage: str, done: int, total: int, cost: str = "", /) -> None:
        """Report progress; see `Progress`."""
        if not total:
            return
        now, name = time.monotonic(), stage.rstrip(" 0123456789")
        if was_closed := not self._stages:
            self._since = self._told = now
        self._current.seconds += now - self._since  # it was shown so long
        self._since, self._current = now, self._stages.setdefault(name, _Stage.named(name))
        self._current.report(now, done, total, cost)
        if was_closed:
            self._live = _shown(self)
        if self._live is None and now - self._told >= PERIOD:
            self._told = now
            print_note(", ".join(self._current.now))

    def __rich__(self) -> Group:
        """Draw the lines."""
        others = [each for each in [*self._stages.values()] if each is not self._current]
        lines = [each.ended for each in others if each.done == each.total]
        frame = FRAMES[int(10 * time.monotonic()) % len(FRAMES)]
        lines.append(f"{frame} {' · '.join(self._current.now)}")
        return Group(*(Text(line, "dim", no_wrap=True, overflow="ellipsis") for line in lines))

    def close(self) -> None:
        """Remove the progress lines."""
        self._stages.clear()
        if self._live is not None:
            self._live.stop()


def _shown(progress: ShownProgress) -> Live | None:
    """Start to draw on standard error, if it is a terminal."""
    console = Console(stderr=True)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        return None
    live = Live(progress, console=console, refresh_per_second=10, transient=True)
    live.start(refresh=True)
    return live


def duration(seconds: float, digits: int = 0) -> str:
    """Format a duration in seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.{digits}f} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
