"""The bound of requests that are answered at once, or wait for that."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from hierindex.serve.statuses import RefusedError

MOST_AT_ONCE = 100  # requests of a kind, each of which has a thread
BUSY = 429


class Places:
    """The places of requests of a kind."""

    def __init__(self) -> None:
        self._most = MOST_AT_ONCE
        self._free = BoundedSemaphore(self._most)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Take a place while the block runs; raise RefusedError if all are taken."""
        if not self._free.acquire(blocking=False):
            said = f"The server has {self._most} requests to answer; ask later."
            raise RefusedError(BUSY, said)
        try:
            yield
        finally:
            self._free.release()
