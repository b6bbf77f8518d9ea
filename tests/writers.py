"""Writers in processes of their own, which tell what they do and can be killed at any moment."""

import os
import time
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from processes import process

from hierindex.store import table
from hierindex.tree.hierarchy import Hierarchy

PATIENCE = 60.0  # seconds that a writer may say nothing
STAGES: dict[str, list[tuple[Any, str]]] = {
    "grow": [(Hierarchy, "grow")],
    "write": [(table.Table, name) for name in ("replace", "revise", "rollback", "upsert")],
    "index": [(table, "maintain")],
    "publish": [(table, "publish")],
    "clean up": [(table, "keep_last")],
    "recover": [(table.Table, "_recover")],
    "sweep": [(table, "sweep")],
}
"""Functions that a stage lasts."""


class Told(NamedTuple):
    """What a writer has said until it ended.

    `error` is how it failed, "" if it did not, and `result` is what the function returned.
    """

    error: str
    killed: bool
    result: Any = None


class Writer:
    """A process that calls a function, see `processes.process`."""

    def __init__(self, function: Callable[..., object], *arguments: Any) -> None:
        self._hears, says = Pipe(duplex=False)
        self.process = process(_run, says, function, *arguments)
        says.close()

    def ended(self, at: str | None = None, then: float = 0.0) -> Told:
        """Wait for its end; kill it some seconds after a stage has begun, if one is given.

        Raises
        ------
        TimeoutError
            If it says nothing for a minute.
        """
        stages, error, result, killed, deadline = list[str](), "", None, False, None
        while True:
            left = PATIENCE if deadline is None else deadline - time.monotonic()
            if left <= 0 or not self._hears.poll(left):
                self.process.kill()
                if deadline is None:
                    raise TimeoutError(f"A writer hangs after {stages}.")
                killed, deadline = True, None
                continue
            try:
                kind, what = self._hears.recv()
            except EOFError:
                break
            match kind:
                case "stage":
                    stages.append(what)
                    if what == at and not killed and deadline is None:
                        deadline = time.monotonic() + then
                case "error":
                    error = what
                case "result":
                    result = what
        self.process.join()
        return Told(error, killed and self.process.exitcode != 0, result)


def _run(says: Connection, function: Callable[..., object], *arguments: Any) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _tell_stages(says)
    says.send(("stage", "begin"))
    try:
        says.send(("result", function(*arguments)))
    except Exception as error:  # noqa: BLE001  # told to the one who waits
        says.send(("error", f"{type(error).__name__}: {error}"))
    finally:
        says.close()
        os._exit(0)  # LanceDB's threads


def _tell_stages(says: Connection) -> None:
    outer = ["begin"]

    def begin(stage: str) -> None:
        outer.append(stage)
        says.send(("stage", stage))

    def end() -> None:
        outer.pop()
        says.send(("stage", outer[-1]))

    for stage, functions in STAGES.items():
        for owner, name in functions:
            if hasattr(owner, name):
                setattr(owner, name, _staged(getattr(owner, name), stage, begin, end))


def _staged(function: Any, stage: str, begin: Callable[[str], None], end: Callable[[], None]):
    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        begin(stage)
        result = function(*args, **kwargs)
        end()
        return result

    @wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        begin(stage)
        result = await function(*args, **kwargs)
        end()
        return result

    return awaited if iscoroutinefunction(function) else called
