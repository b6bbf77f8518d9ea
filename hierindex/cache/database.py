"""A SQLite file that a build can do without."""

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

logger = logging.getLogger(__name__)


class Database:
    """One connection for all threads, a transaction at a time.

    Parameters
    ----------
    connection : sqlite3.Connection
        Made with `check_same_thread=False`; `close` closes it.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = Lock()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit what is done inside, or undo it where it fails.

        Reading belongs inside as well: a snapshot that stayed open would forbid the next
        write as soon as another process has written.
        """
        with self._lock, self._connection:
            yield self._connection

    def close(self) -> None:
        """Close the connection, once no thread is at work on it."""
        with self._lock:
            self._connection.close()


@contextmanager
def optional() -> Iterator[None]:
    """Go on without what SQLite or the file system cannot do."""
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        logger.warning("What models gave is not kept between builds: %s.", error)
