"""The report of a verification."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_SHOWN = 10  # problems of a check


class Problem(NamedTuple):
    """What is wrong, and where: a node's id, or a file's path in the folder of the index."""

    where: str
    what: str


@dataclass(frozen=True)
class Check:
    """The outcome of one check.

    `checked` counts the nodes, links, quotes or files that were looked at and `count` the
    problems, of which `problems` holds the first ten.
    """

    name: str
    checked: int
    count: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.count


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
            {
                "name": check.name,
                "ok": check.ok,
                "checked": check.checked,
                "count": check.count,
                "problems": [problem._asdict() for problem in check.problems],
            }
            for check in self.checks
        ]
        rest = {"repaired": [*self.repaired], "left": [*self.left]}
        return {"ok": self.ok, **vars(self), "checks": checks, **rest}


class Findings:
    """The problems of one check, which are counted; the first ten are kept."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checked = 0
        self._count = 0
        self._problems: list[Problem] = []

    def add(self, where: str, what: str) -> None:
        """Add a problem."""
        self._count += 1
        if len(self._problems) < MOST_SHOWN:
            self._problems.append(Problem(where, what))

    def add_all(
        self, wrong: NDArray[np.integer], where: Callable[[int], str], what: Callable[[int], str]
    ) -> None:
        """Add a problem for each of these positions, which are described only if they are kept."""
        room = MOST_SHOWN - len(self._problems)
        self._count += len(wrong)
        self._problems += [Problem(where(i), what(i)) for i in wrong[:room].tolist()]

    def add_nodes(
        self, node_id: Callable[[int], str], wrong: Mapping[str, NDArray[np.bool_]]
    ) -> None:
        """Add a problem for each node that is marked, by what is wrong with it."""
        for what, marked in wrong.items():
            self.add_all(np.flatnonzero(marked), node_id, lambda _, what=what: what)  # type: ignore[misc]

    def check(self) -> Check:
        """Return the outcome."""
        return Check(self.name, self.checked, self._count, tuple(self._problems))
