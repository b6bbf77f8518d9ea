"""The cache file of an index: vectors, completions, summaries, and files as read."""

import json
import logging
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
from platformdirs import user_cache_path

from hierindex.core.arguments import Floats1d, Floats2d
from hierindex.core.identity import digest, hash_text

T = TypeVar("T")

logger: logging.Logger = logging.getLogger(__name__)

FILE = ".cache.sqlite"
WAIT = 60.0  # seconds to wait for another build's write
PREPARE = """
PRAGMA journal_mode = WAL;  -- concurrent readers and one writer
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS cache (key TEXT PRIMARY KEY, of INTEGER, value BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS of ON cache (of);
"""
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
    file : Path, optional
        Created on first use; without one, nothing is kept.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._connection: sqlite3.Connection | None = None
        self._lock = Lock()

    def recall(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of the keys that the cache has."""
        query = "SELECT key, value FROM cache WHERE key IN (SELECT value FROM json_each(?))"
        asked = (json.dumps([*keys]),)
        found = self._attempt(lambda connection: connection.execute(query, asked).fetchall())
        return dict(found or ())

    def keep(self, entries: Iterable[Entry], *, is_costly: bool = False) -> None:
        """Store entries, replacing those with the same keys.

        Costly entries are on disk when this returns. Others may be lost in a power cut, until the
        next costly ones are stored.
        """

        def insert(connection: sqlite3.Connection) -> None:
            connection.execute(f"PRAGMA synchronous = {'FULL' if is_costly else 'NORMAL'}")
            statement = "INSERT OR REPLACE INTO cache (key, value, of) VALUES (?, ?, ?)"
            connection.executemany(statement, entries)

        self._attempt(insert)

    def mark(self, keys: Iterable[str], of: int) -> None:
        """Record the hash of the text that the values under these keys were computed from."""
        update = "UPDATE cache SET of = ?1 WHERE key = ?2 AND of IS NOT ?1"
        rows = [(of, key) for key in keys]
        self._attempt(lambda connection: connection.executemany(update, rows))

    def close(self) -> None:
        """Close the file once no thread uses it."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def _attempt(self, run: Callable[[sqlite3.Connection], T]) -> T | None:
        """Run a function in a transaction; log a failure of SQLite or the file system."""
        try:
            return self._transaction(run)
        except (sqlite3.DatabaseError, OSError) as error:
            logger.warning("Results are not cached for later builds: %s.", error)
            return None

    def _transaction(self, run: Callable[[sqlite3.Connection], T]) -> T | None:
        """Commit the statements of a function and return its result; None without a file.

        Reads are in a transaction as well, because SQLite refuses a write after a read whose
        snapshot is older than another process's write.
        """
        with self._lock:
            file, self._file = self._file, None  # not tried again if it cannot be opened
            if file is None:
                return None
            self._connection = self._connection or _connected(file)
            self._file = file
            with self._connection:
                return run(self._connection)


def open_cache(uri: str) -> "closing[Cache]":
    """Open the cache of an index for a `with` block.

    A damaged file is replaced by an empty one. If the file cannot be used, a warning is logged and
    nothing is cached.

    Parameters
    ----------
    uri : str
        Of the index.
    """
    return closing(Cache(cache_file(uri)))


def sweep(uri: str, held: Set[int]) -> None:
    """Delete values computed from texts that the index no longer holds, such as deleted documents.

    The cache must exist.

    Parameters
    ----------
    uri : str
        Of the index.
    held : set of int
        Hashes, by `hash_text`, of the texts of its nodes and of its documents.

    Raises
    ------
    sqlite3.DatabaseError
        If the file is damaged or cannot be written, or its log is being read.
    """
    with closing(_connected(cache_file(uri))) as connection:
        known = connection.execute("SELECT DISTINCT of FROM cache WHERE of IS NOT NULL")
        gone = [(of,) for (of,) in known if of not in held]
        with connection:
            lost = connection.execute("DELETE FROM cache WHERE of IS NULL").rowcount
            connection.executemany("DELETE FROM cache WHERE of = ?", gone)
        if lost or gone:  # if a build has the file open, its log would still contain them
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
    try:
        return _prepared(file)
    except sqlite3.OperationalError:  # locked or read-only
        raise
    except sqlite3.DatabaseError:
        remove(file)
        return _prepared(file)


def _prepared(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=WAIT, check_same_thread=False)
    try:
        connection.executescript(PREPARE)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


@dataclass(frozen=True)
class Vectors:
    """A cache of unit vectors by text and model, so that a text always gets bit-identical vectors.

    Parameters
    ----------
    cache : Cache
    model : str or None
        Fingerprint of the embedding model; without one, nothing is kept.
    texts : Mapping[str, str]
        Maps the embedded text of a node to its text, if they differ because of metadata.
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
        entries = [
            Entry(key, json.dumps(summary).encode(), hash_text(summary[0]))
            for key, summary in summaries.items()
        ]
        self.cache.keep(entries, is_costly=True)


@dataclass(frozen=True)
class Readings:
    """A cache of JSON values that are computed when files are read."""

    cache: Cache

    def recall(self, key: str) -> Any:
        """Return the value under a key; None if it is missing or damaged."""
        found = self.cache.recall([key]).get(key, b"")
        with suppress(zlib.error, ValueError):
            return json.loads(zlib.decompress(found).decode("utf-8", "surrogatepass"))
        return None

    def keep(self, key: str, value: Any) -> None:
        """Store a JSON value."""
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self.cache.keep([Entry(key, zlib.compress(data, LEVEL))])

    def note(self, document: str, key: str) -> None:
        """Record that the value under a key was read for a document with this hash."""
        self.cache.mark([key], hash_text(document))
