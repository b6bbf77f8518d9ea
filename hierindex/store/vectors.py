"""Vectors of texts that were embedded before, kept beside the index."""

import hashlib
import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from platformdirs import user_cache_path

from hierindex.core.membership import Floats1d, Floats2d

FILE = ".cache.sqlite"
WAIT = 60.0  # seconds for another build to end its write
CREATE = """
CREATE TABLE IF NOT EXISTS vectors (
    text TEXT, model TEXT, vector BLOB NOT NULL, PRIMARY KEY (text, model)
) WITHOUT ROWID
"""

logger = logging.getLogger(__name__)


class VectorCache:
    """Unit vectors by text and model, in one file that is written as each batch arrives.

    So a text is embedded once: a rebuild, or a build after one that was killed, finds its
    vector here, the same to the last bit. Texts themselves are not kept, only their digests.
    A cache that fails while a build runs is warned of, and the build goes on without it.

    Parameters
    ----------
    connection : sqlite3.Connection
        See `open_cache`.
    model : str
        What vectors depend on beside their text.
    """

    def __init__(self, connection: sqlite3.Connection, model: str) -> None:
        self._connection = connection
        self._model = model
        connection.execute("CREATE TEMP TABLE used (text TEXT PRIMARY KEY) WITHOUT ROWID")

    def recall(self, texts: Sequence[str]) -> dict[str, Floats1d]:
        """Vectors of those texts that are known, (n_dims,) float32 each."""
        text_of = {_digest(text): text for text in texts}
        rows: list[tuple[str, bytes]] = []
        with _optional():
            self._use(text_of)
            asked = self._model, json.dumps(list(text_of))
            rows = self._connection.execute(
                "SELECT text, vector FROM vectors"
                " WHERE model = ? AND text IN (SELECT value FROM json_each(?))",
                asked,
            ).fetchall()
        return {text_of[digest]: np.frombuffer(v, dtype=np.float32) for digest, v in rows}

    def keep(self, texts: Sequence[str], X: Floats2d) -> None:
        """Keep the vectors of texts, one a row, for good."""
        digests = [_digest(text) for text in texts]
        with _optional(), self._connection:
            self._use(digests)
            self._connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                [
                    (digest, self._model, x.astype(np.float32).tobytes())
                    for digest, x in zip(digests, X, strict=True)
                ],
            )

    def forget_the_rest(self) -> None:
        """Delete what was neither recalled nor kept: nothing stays of a text that is gone."""
        with _optional(), self._connection:
            self._connection.execute(
                "DELETE FROM vectors WHERE model <> ? OR text NOT IN (SELECT text FROM used)",
                (self._model,),
            )

    def _use(self, digests: Iterable[str]) -> None:
        self._connection.executemany(
            "INSERT OR IGNORE INTO used VALUES (?)", ((digest,) for digest in digests)
        )


@contextmanager
def _optional() -> Iterator[None]:
    """Go on without what SQLite cannot do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        logger.warning("Vectors are not kept between builds: %s.", error)


@contextmanager
def open_cache(uri: str, model: str | None) -> Iterator[VectorCache | None]:
    """The vectors kept for an index; None where the model or the file cannot be trusted.

    A file that is no database any more is begun anew.
    """
    connection = None
    with _optional():
        connection = None if model is None else _connected(cache_file(uri))
    if connection is None or model is None:
        yield None
        return
    try:
        yield VectorCache(connection, model)
    finally:
        connection.close()


def forget(uri: str, texts: Sequence[str]) -> None:
    """Delete the vectors of texts, of any model; there need be no cache."""
    if not (file := cache_file(uri)).exists():
        return
    connection = _connected(file)
    try:
        connection.executemany(
            "DELETE FROM vectors WHERE text = ?", ((_digest(text),) for text in texts)
        )
        connection.commit()
    finally:
        connection.close()


def cache_file(uri: str) -> Path:
    """Inside the index's folder; in the user's cache folder for an index that is elsewhere."""
    if "://" not in uri:
        return Path(uri) / FILE
    return user_cache_path("hierindex", appauthor=False) / "indexes" / _digest(uri) / FILE


def remove(file: Path) -> None:
    """Delete a cache, with what a killed build may have left of its writing."""
    for suffix in ("", "-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _connected(file: Path) -> sqlite3.Connection:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _prepared(file)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # locked, or not to be written
            raise
        remove(file)
        return _prepared(file)


def _prepared(file: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(file, timeout=WAIT, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")  # readers and a writer at once
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(CREATE)
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
