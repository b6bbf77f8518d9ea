"""A SQLite connection shared by threads, for a cache that a build can do without."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

logger = logging.getLogger(__name__)


class Database:
    """A SQLite connection for all threads, used by one transaction at a time.

    Parameters
    ----------
    connection : sqlite3.Connection
        Created with `check_same_thread=False`; `close` closes it.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = Lock()

    @contextmanager
    def transaction(self, *, survives: bool = True) -> Iterator[sqlite3.Connection]:
        """Commit the statements inside, or roll them back if one fails.

        Read inside a transaction as well: SQLite refuses a write after a read whose snapshot is
        older than another process's write.

        Parameters
        ----------
        survives : bool
            Whether to wait for the disk, so that the transaction survives a power cut. One that
            does not may be lost then, together with those after it, until one that does.
        """
        with self._lock:
            level = "FULL" if survives else "NORMAL"
            self._connection.execute(f"PRAGMA synchronous = {level}")
            with self._connection:
                yield self._connection

    def close(self) -> None:
        """Close the connection once no thread uses it."""
        with self._lock:
            self._connection.close()


@contextmanager
def optional() -> Iterator[None]:
    """Log a failure of SQLite or the file system, and continue."""
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        logger.warning("Results are not cached for later builds: %s.", error)
