"""What LanceDB raises if files of a table are missing or damaged."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from hierindex.errors import HierindexError

LANCEDB = (OSError, RuntimeError, ValueError)  # errors that it raises
PANIC = "RustPanic"  # another one, which cannot be imported
NAMED = re.compile("lance error|LanceError|Lance file|rust future panicked")
MISSING = re.compile(r"Not found: (?:[^,]*?/)?([^,/]+\.lance/[^,]+)")
RUST = re.compile(r"lance error: |,? /\S+\.rs:[\d:]+")  # also places in its source code


class DamagedError(HierindexError):
    """A file of the index is missing, truncated or overwritten.

    `file` is its path in the folder of the index if it is missing, else empty. `reason` is
    LanceDB's message.
    """

    def __init__(self, error: Exception) -> None:
        missing = MISSING.search(str(error))
        self.file = missing[1] if missing else ""
        self.reason = RUST.sub("", (str(error).splitlines() or [""])[0])
        what = f"the file {self.file} is missing" if self.file else f"LanceDB says {self.reason!r}"
        super().__init__(
            f"The index is damaged: {what}. Run `hierindex verify`; it lists all damage and what "
            "repairs it."
        )


def damage(error: Exception) -> DamagedError | None:
    """Return the error of LanceDB as one of a damaged index; None if it is another one."""
    if not isinstance(error, LANCEDB) and type(error).__name__ != PANIC:
        return None
    return DamagedError(error) if NAMED.search(str(error)) else None


@contextmanager
def damages() -> Iterator[None]:
    """Raise DamagedError for any error of LanceDB; use it around calls of LanceDB alone."""
    try:
        yield
    except HierindexError:
        raise
    except Exception as error:
        if isinstance(error, LANCEDB) or type(error).__name__ == PANIC:
            raise DamagedError(error) from error
        raise
