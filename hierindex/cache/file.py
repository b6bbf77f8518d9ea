"""The cache file of an index, and deletion from it."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Set
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from platformdirs import user_cache_path
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from hierindex.cache import readings, texts, vectors
from hierindex.cache.database import Database, optional
from hierindex.cache.readings import ReadingCache
from hierindex.cache.texts import TextCache
from hierindex.cache.vectors import VectorCache, text_digest
from hierindex.errors import InputError, SourceError

FILE = ".cache.sqlite"
WAIT = 60.0  # seconds to wait for another build's write
CHECKPOINT = 16_000  # pages of 4 KiB that move from the log to the file at once; 1,000 take longer


@dataclass(frozen=True)
class Cache:
    """Cached vectors, texts and readings of an index; None for what cannot be cached."""

    vectors: VectorCache | None = None
    texts: TextCache | None = None
    readings: ReadingCache | None = None
    database: Database | None = None

    def of_model(self, model: str | None) -> Self:
        """Return the cache with the vectors of an embedding model, given its fingerprint."""
        if self.database is None or model is None:
            return self
        return replace(self, vectors=VectorCache(self.database, model))

    def begin(self, documents: Collection[str]) -> None:
        """Record what the index will hold, before any of it is written: hashes of documents."""
        if self.texts is not None:
            self.texts.begin(documents)
        if self.readings is not None:
            self.readings.begin(documents)

    def use(self, embedded: Iterable[str]) -> None:
        """Record that the vectors of texts are used, though they are known and not recalled."""
        if self.vectors is not None:
            self.vectors.use(map(text_digest, embedded))

    def holds_only(self, documents: Iterable[str]) -> bool:
        """Return whether no job has begun with other documents since the last clean-up."""
        return self.texts is None or self.texts.holds_only(documents)

    def forget(self, gone: Collection[str], held: Set[str] | None = None) -> None:
        """Delete what this build did not use: of texts that it removes, and of unfinished builds.

        Parameters
        ----------
        gone : Collection[str]
            Texts of chunks and summaries, as they were embedded.
        held : Set[str], optional
            Digests of those of all nodes of the index, by `text_digest`; then all others are
            deleted, too.
        """
        if self.vectors is not None and held is not None:
            self.vectors.use(held)
            self.vectors.forget_the_rest()
        elif self.vectors is not None:
            self.vectors.forget(gone)
        if self.texts is not None:
            self.texts.forget(gone, held)
        if self.readings is not None:
            self.readings.forget_the_rest()

    def forget_the_rest(self, *, something_is_gone: bool) -> None:
        """Delete the entries that this build did not use, so that nothing remains of deleted text.

        Texts are costly, so they are kept for a later return to another prompt or model, unless
        a document of the index, or of a build that did not finish, was changed or removed.
        """
        if self.vectors is not None:
            self.vectors.forget_the_rest()
        if self.texts is not None:
            self.texts.forget_the_rest(something_is_gone=something_is_gone)
        if self.readings is not None:
            self.readings.forget_the_rest()


@contextmanager
def open_cache(uri: str, model: str | None = None) -> Iterator[Cache]:
    """Open the cache of an index for the `with` block.

    A damaged file is replaced by an empty one. If the file cannot be used, a warning is logged
    and nothing is cached. A new file is removed again, with its new folders, if the block finds
    that there is nothing to index.

    Parameters
    ----------
    uri : str
        Of the index.
    model : str, optional
        Fingerprint of the embedding model; if None, vectors are not cached, see `Cache.of_model`.
    """
    connection, file = None, cache_file(uri)
    new = [path for path in (file, *file.parents) if not path.exists()]
    with optional():
        connection = _connected(file)
    if connection is None:
        yield Cache()
        return
    try:
        with closing(Database(connection)) as database:
            cache = Cache(None, TextCache(database), ReadingCache(database), database)
            yield cache.of_model(model)
    except SourceError:
        if file in new:
            remove(file)
        with suppress(OSError):  # another build may use the folder
            for folder in new[1:]:
                folder.rmdir()
        raise


def forget(uri: str, gone: Iterable[str], summaries: Set[str]) -> None:
    """Delete the cached texts and vectors of what an index no longer holds, if it has a cache.

    Completions, readings, and summaries that are not in the index, are all deleted, because the
    cache does not record their documents. The next build reads and splits all files again; else
    only the work of a build that was killed has to be repeated.

    Parameters
    ----------
    uri : str
        Of the index.
    gone : Iterable[str]
        Deleted texts, as they were embedded; their vectors of all models are deleted.
    summaries : Set[str]
        Digests of the texts of the summaries that stay in the index, by `text_digest`.

    Raises
    ------
    InputError
        If the file cannot be written, as deleted text would then remain in it.
    """
    if not (file := cache_file(uri)).exists():
        return
    try:
        with closing(_connected(file)) as connection:
            with connection:
                digests = [(text_digest(text),) for text in gone]
                connection.executemany("DELETE FROM text_vectors WHERE text = ?", digests)
                texts.forget_all_but(connection, summaries)
                connection.execute("DELETE FROM documents")
                connection.execute("DELETE FROM readings")
                connection.execute("DELETE FROM uses")
            # If another build has the file open, its log would still contain the texts.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"Deleted text cannot be removed from the cache {str(file)!r} ({error}); make the file "
            "writable, or remove it."
        ) from error


def cache_file(uri: str) -> Path:
    """Return the path of an index's cache: in its folder, or in the user's cache if remote."""
    if "://" not in uri:
        return Path(uri) / FILE
    return user_cache_path("hierindex", appauthor=False) / "indexes" / text_digest(uri) / FILE


def remove(file: Path) -> None:
    """Delete a cache file and its write-ahead log."""
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _connected(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    # SQLite refuses to switch a file to WAL twice at once, without waiting for its timeout.
    retrying = Retrying(
        retry=retry_if_exception(_is_busy),
        stop=stop_after_delay(WAIT),
        wait=wait_random(0.01, 0.1),
        reraise=True,
    )
    try:
        return retrying(_prepared, file)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked or read-only
            raise
        remove(file)
        return retrying(_prepared, file)


def _prepared(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=WAIT, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")  # concurrent readers and one writer
        connection.execute("PRAGMA synchronous = FULL")  # survives a power cut
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
        connection.execute(vectors.CREATE)
        connection.execute(vectors.CREATE_FINISHED)
        connection.execute(texts.CREATE)
        connection.execute(texts.CREATE_COMPLETIONS)
        connection.execute(texts.CREATE_STARTS)
        connection.execute(texts.CREATE_DOCUMENTS)
        connection.execute(readings.CREATE)
        connection.execute(readings.CREATE_USES)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _is_busy(error: BaseException) -> bool:
    code = error.sqlite_errorcode if isinstance(error, sqlite3.OperationalError) else 0
    return code & 0xFF == sqlite3.SQLITE_BUSY  # the low byte is the primary code
