"""The file beside the index that keeps vectors and texts, and what is deleted from it."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from hierindex.cache import texts, vectors
from hierindex.cache.database import Database, optional
from hierindex.cache.texts import TextCache
from hierindex.cache.vectors import VectorCache, text_digest

FILE = ".cache.sqlite"
WAIT = 60.0  # seconds for another build to end its write


@dataclass(frozen=True)
class Cache:
    """Vectors and texts kept for an index; None what cannot be kept."""

    vectors: VectorCache | None = None
    texts: TextCache | None = None

    def begin(self, documents: Iterable[str]) -> None:
        """Note by their hashes the documents that a build begins with, before it grows."""
        if self.texts is not None:
            self.texts.begin(documents)

    def forget_the_rest(self, *, something_is_gone: bool) -> None:
        """Delete what this build had no use for: nothing stays of a text that is gone.

        Texts are paid for: they stay for another prompt or model to come back to, unless a
        document of the index, or of a build that did not end, was changed or removed.
        """
        if self.vectors is not None:
            self.vectors.forget_the_rest()
        if self.texts is not None:
            self.texts.forget_the_rest(something_is_gone=something_is_gone)


@contextmanager
def open_cache(uri: str, model: str | None) -> Iterator[Cache]:
    """What is kept for an index, while the `with` block lasts.

    A file that is no database any more is begun anew. One that cannot be used is warned of,
    and nothing is kept.

    Parameters
    ----------
    uri : str
        Of the index.
    model : str or None
        What vectors depend on beside their text; where it is not known, they are not kept.
    """
    connection = None
    with optional():
        connection = _connected(cache_file(uri))
    if connection is None:
        yield Cache()
        return
    with closing(Database(connection)) as database:
        trusted = None if model is None else VectorCache(database, model)
        yield Cache(trusted, TextCache(database))


def forget(uri: str, gone: Iterable[str], summaries: Iterable[str]) -> None:
    """Delete what is known of texts that an index no longer has; there need be no cache.

    Completions go, and so do all summaries but those that the index still has: neither knows on
    which documents it stands. So only what a killed build left is paid for again.

    Parameters
    ----------
    uri : str
        Of the index.
    gone : Iterable[str]
        Texts as they were embedded; their vectors go, of any model.
    summaries : Iterable[str]
        Texts of the summaries that stay in the index.

    Raises
    ------
    sqlite3.DatabaseError
        If the file cannot be written: what it holds would outlive the deletion.
    """
    if not (file := cache_file(uri)).exists():
        return
    with closing(_connected(file)) as connection:
        with connection:
            digests = [(text_digest(text),) for text in gone]
            connection.executemany("DELETE FROM vectors WHERE text = ?", digests)
            texts.forget_all_but(connection, summaries)
        # Another build may hold the file open, and with it the log that still has the texts.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def cache_file(uri: str) -> Path:
    """Inside the index's folder; in the user's cache folder for an index that is elsewhere."""
    if "://" not in uri:
        return Path(uri) / FILE
    return user_cache_path("hierindex", appauthor=False) / "indexes" / text_digest(uri) / FILE


def remove(file: Path) -> None:
    """Delete a cache, with what a killed build may have left of its writing."""
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _connected(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    # Of two that turn a new file to WAL at once, SQLite refuses one, whatever its timeout.
    patient = Retrying(
        retry=retry_if_exception(_is_busy),
        stop=stop_after_delay(WAIT),
        wait=wait_random(0.01, 0.1),
        reraise=True,
    )
    try:
        return patient(_prepared, file)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked, or not to be written
            raise
        remove(file)
        return patient(_prepared, file)


def _prepared(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=WAIT, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")  # readers and a writer at once
        connection.execute("PRAGMA synchronous = FULL")  # what is paid for outlives a power cut
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(vectors.CREATE)
        connection.execute(texts.CREATE)
        connection.execute(texts.CREATE_DOCUMENTS)
        connection.execute("DROP TABLE IF EXISTS completions")  # of an older version
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _is_busy(error: BaseException) -> bool:
    code = error.sqlite_errorcode if isinstance(error, sqlite3.OperationalError) else 0
    return code & 0xFF == sqlite3.SQLITE_BUSY  # the low byte; the others say why
