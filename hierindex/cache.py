"""The cache file of an index: vectors, completions, summaries, and files as read."""

import json
import logging
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from platformdirs import user_cache_path
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from hierindex.core.arguments import Floats1d, Floats2d, Ints1d
from hierindex.core.identity import digest, hash_text
from hierindex.errors import SourceError

logger: logging.Logger = logging.getLogger(__name__)

FILE = ".cache.sqlite"
WAIT = 60.0  # seconds to wait for another build's write
CHECKPOINT = 16_000  # pages of 4 KiB that move from the log to the file at once; 1,000 take longer
CREATE = """
CREATE TABLE IF NOT EXISTS cache (key TEXT PRIMARY KEY, of INTEGER, value BLOB NOT NULL)
"""
CREATE_OF = "CREATE INDEX IF NOT EXISTS of ON cache (of)"

LEVEL = 1  # of compression; higher ones save little, and take longer than reading some files


class Entry(NamedTuple):
    """A value with its key.

    `of` is the hash of the text that the value was computed from: a node's text, or a document; see
    `sweep`. It is None while that is not known.
    """

    key: str
    value: bytes
    of: int | None = None


class Cache:
    """A key-value store in SQLite; a key is a digest of everything that determines the value.

    Values are written as they arrive, so that a killed build can resume. Threads may share a cache.
    If it fails, a warning is logged and the build continues without it.

    Parameters
    ----------
    connection : sqlite3.Connection, optional
        Created with `check_same_thread=False`; without one, nothing is kept.
    """

    def __init__(self, connection: sqlite3.Connection | None = None) -> None:
        self._connection = connection
        self._lock = Lock()

    def recall(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of the keys that the cache has."""
        if (connection := self._connection) is None:
            return {}
        with tolerated(), self._transaction(connection):
            query = "SELECT key, value FROM cache WHERE key IN (SELECT value FROM json_each(?))"
            return dict(connection.execute(query, (json.dumps([*keys]),)).fetchall())
        return {}

    def keep(self, entries: Iterable[Entry], *, is_costly: bool = False) -> None:
        """Store entries, replacing those with the same keys.

        Costly entries are on disk when this returns. Others may be lost in a power cut, until the
        next costly ones are stored.
        """
        if (connection := self._connection) is None:
            return
        with tolerated(), self._transaction(connection, survives=is_costly):
            connection.executemany(
                "INSERT OR REPLACE INTO cache (key, value, of) VALUES (?, ?, ?)", entries
            )

    def mark(self, keys: Iterable[str], of: int) -> None:
        """Record the hash of the text that the values under these keys were computed from."""
        if (connection := self._connection) is None:
            return
        with tolerated(), self._transaction(connection, survives=False):
            connection.executemany(
                "UPDATE cache SET of = ?1 WHERE key = ?2 AND of IS NOT ?1",
                ((of, key) for key in keys),
            )

    def close(self) -> None:
        """Close the connection once no thread uses it."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    @contextmanager
    def _transaction(
        self, connection: sqlite3.Connection, *, survives: bool = True
    ) -> Iterator[None]:
        """Commit the statements inside, or roll them back if one fails.

        Reads are inside as well, because SQLite refuses a write after a read whose snapshot
        is older than another process's write.
        """
        with self._lock:
            connection.execute(f"PRAGMA synchronous = {'FULL' if survives else 'NORMAL'}")
            with connection:
                yield


@contextmanager
def tolerated() -> Iterator[None]:
    """Log a failure of SQLite or the file system, and continue."""
    try:
        yield
    except (sqlite3.DatabaseError, OSError) as error:
        logger.warning("Results are not cached for later builds: %s.", error)


@contextmanager
def open_cache(uri: str) -> Iterator[Cache]:
    """Open the cache of an index for the `with` block.

    A damaged file is replaced by an empty one. If the file cannot be used, a warning is logged and
    nothing is cached. If the block finds nothing to index, a new file is removed again, with its
    new folders.

    Parameters
    ----------
    uri : str
        Of the index.
    """
    connection, file = None, cache_file(uri)
    new = [path for path in (file, *file.parents) if not path.exists()]
    with tolerated():
        connection = _connected(file)
    try:
        with closing(Cache(connection)) as cache:
            yield cache
    except SourceError:
        if file in new:
            remove(file)
        with suppress(OSError):  # another build may use the folder
            for folder in new[1:]:
                folder.rmdir()
        raise


def sweep(uri: str, held: Ints1d) -> None:
    """Delete values computed from texts that the index no longer holds, such as deleted documents.

    The cache must exist.

    Parameters
    ----------
    uri : str
        Of the index.
    held : Ints1d
        Hashes, by `hash_text`, of the texts of its nodes and of its documents, (n_held,).

    Raises
    ------
    sqlite3.DatabaseError
        If the file is damaged or cannot be written, or its log is being read.
    """
    with closing(_connected(cache_file(uri))) as connection:
        known = connection.execute("SELECT DISTINCT of FROM cache WHERE of IS NOT NULL")
        of = np.fromiter((of for (of,) in known), dtype=np.int64)
        gone = of[~np.isin(of, held)]
        with connection:
            lost = connection.execute("DELETE FROM cache WHERE of IS NULL").rowcount
            rows = ((of,) for of in gone.tolist())
            connection.executemany("DELETE FROM cache WHERE of = ?", rows)
        if lost or len(gone):  # if a build has the file open, its log would still contain them
            ((is_busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if is_busy:
                raise sqlite3.OperationalError("another process reads it")


def cache_file(uri: str) -> Path:
    """Return the path of an index's cache.

    It is in the index's folder, or for a remote index in the user's cache folder.
    """
    if "://" not in uri:
        return Path(uri) / FILE
    return user_cache_path("hierindex", appauthor=False) / "indexes" / digest(uri) / FILE


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
        connection.execute(CREATE)
        connection.execute(CREATE_OF)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _is_busy(error: BaseException) -> bool:
    code = error.sqlite_errorcode if isinstance(error, sqlite3.OperationalError) else 0
    return code & 0xFF == sqlite3.SQLITE_BUSY  # the low byte is the primary code


@dataclass(frozen=True)
class Vectors:
    """A cache of unit vectors by text and model, so that a text always gets bit-identical vectors.

    Parameters
    ----------
    cache : Cache
    model : str or None
        Fingerprint of the embedding model; without one, nothing is kept.
    texts : Mapping[str, str]
        The text of a node by its embedded text, if this includes more, such as metadata.
    """

    cache: Cache
    model: str | None
    texts: Mapping[str, str] = field(default_factory=dict)

    def recall(self, embedded: Sequence[str]) -> dict[str, Floats1d]:
        """Return the known vectors by text, each (n_dims,) float32."""
        keys = self._keys(embedded)
        found = self.cache.recall([*keys])
        return {keys[key]: np.frombuffer(x, dtype=np.float32) for key, x in found.items()}

    def keep(self, embedded: Sequence[str], X: Floats2d) -> None:
        """Store the vectors of texts, (n_texts, n_dims)."""
        self.cache.keep(
            Entry(key, x.astype(np.float32).tobytes(), hash_text(self.texts.get(text, text)))
            for (key, text), x in zip(self._keys(embedded).items(), X, strict=False)
        )

    def _keys(self, embedded: Sequence[str]) -> dict[str, str]:
        if self.model is None:
            return {}
        return {digest("vector", self.model, text): text for text in embedded}


@dataclass(frozen=True)
class Texts:
    """A cache of texts that models wrote: completions by prompt, and the summaries made of them."""

    cache: Cache

    def recall(self, key: str) -> str | None:
        """Return the completion under a key, or None."""
        found = self.cache.recall([key]).get(key)
        return None if found is None else found.decode("utf-8", "surrogatepass")

    def keep(self, key: str, text: str) -> None:
        """Store a completion."""
        entry = Entry(key, text.encode("utf-8", "surrogatepass"))  # lone ones occur
        self.cache.keep([entry], is_costly=True)

    def assign(self, keys: Sequence[str], summary: str) -> None:
        """Record which completions a summary was made of, so that they are deleted with it."""
        self.cache.mark(keys, hash_text(summary))

    def recall_summaries(self, keys: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return the summaries under these keys: the text and details of each."""
        found = self.cache.recall(keys)
        return {key: tuple(json.loads(value)) for key, value in found.items()}

    def keep_summaries(self, summaries: Mapping[str, tuple[str, str]]) -> None:
        """Store the texts and details of summaries by key, in one transaction."""
        self.cache.keep(
            (
                Entry(key, json.dumps(summary).encode(), hash_text(summary[0]))
                for key, summary in summaries.items()
            ),
            is_costly=True,
        )


@dataclass(frozen=True)
class Readings:
    """A cache of JSON values that are computed when files are read."""

    cache: Cache

    def recall(self, key: str) -> Any:
        """Return the value under a key; None if it is missing or damaged."""
        found = self.cache.recall([key]).get(key)
        if found is None:
            return None
        try:
            return json.loads(zlib.decompress(found).decode("utf-8", "surrogatepass"))
        except (zlib.error, ValueError, TypeError):
            return None

    def keep(self, key: str, value: Any) -> None:
        """Store a JSON value."""
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.cache.keep([Entry(key, zlib.compress(data, LEVEL))])

    def note(self, document: str, key: str) -> None:
        """Record that the value under a key was read for a document with this hash."""
        self.cache.mark([key], hash_text(document))
