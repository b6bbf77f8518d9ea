"""The report of a verification."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_SHOWN = 10  # problems of a check


class Problem(NamedTuple):
    """What is wrong, and where: a node's id, or a file's path in the folder of the index."""

    where: str
    what: str


@dataclass
class Check:
    """The outcome of one check.

    `checked` counts the nodes, links, quotes or files that were looked at and `count` the
    problems, of which `problems` holds the first ten.
    """

    name: str
    checked: int = 0
    count: int = 0
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.count

    def add(self, where: str, what: str) -> None:
        """Add a problem."""
        self.count += 1
        if len(self.problems) < MOST_SHOWN:
            self.problems.append(Problem(where, what))

    def add_all(
        self, wrong: NDArray[np.integer], where: Callable[[int], str], what: Callable[[int], str]
    ) -> None:
        """Add a problem for each of these positions, which are described only if they are kept."""
        room = MOST_SHOWN - len(self.problems)
        self.count += len(wrong)
        self.problems += [Problem(where(i), what(i)) for i in wrong[:room].tolist()]


@dataclass(frozen=True)
class Verification:
    """The outcome of all checks of an index.

    `stale` counts nodes that lost a parent or a child to a deletion, which is no error. `repaired`
    says what was repaired, and `left` what to do about the rest.
    """

    generation: int
    nodes: int
    stale: int
    checks: tuple[Check, ...]
    repaired: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all checks hold."""
        return not self.failed

    @property
    def failed(self) -> list[str]:
        """The names of the checks that do not hold."""
        return [check.name for check in self.checks if not check.ok]

    def to_json(self) -> dict[str, Any]:
        """Return the report as dicts, lists and numbers."""
        checks = [
            {**vars(check), "ok": check.ok, "problems": [p._asdict() for p in check.problems]}
            for check in self.checks
        ]
        rest = {"repaired": [*self.repaired], "left": [*self.left]}
        return {"ok": self.ok, **vars(self), "checks": checks, **rest}
