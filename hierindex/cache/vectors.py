"""Cached vectors of texts."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from hierindex.cache.database import Database, optional
from hierindex.core.membership import Floats1d, Floats2d

CREATE = """
CREATE TABLE IF NOT EXISTS text_vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, UNIQUE (text, model)
)
"""
# The last vector when a build finished; ids grow, so those after it are of builds that have not.
CREATE_FINISHED = "CREATE TABLE IF NOT EXISTS finished (last INTEGER NOT NULL)"
OF_TEXTS = "FROM text_vectors WHERE model = ? AND text IN (SELECT value FROM json_each(?))"
OF_UNUSED = "FROM text_vectors WHERE id NOT IN (SELECT id FROM used)"
IS_UNFINISHED = "id > (SELECT coalesce(max(last), 0) FROM finished)"


class VectorCache:
    """A cache of unit vectors by text and model, which stores digests but not the texts.

    Each batch is written as it arrives, so that a rebuild, or a build after one that was killed,
    gets bit-identical vectors without embedding again. If the cache fails, a warning is logged and
    the build continues without it.

    Parameters
    ----------
    database : Database
        See `open_cache`.
    model : str
        Fingerprint of the embedding model.
    """

    def __init__(self, database: Database, model: str) -> None:
        self._database = database
        self._model = model
        with optional(), database.transaction() as connection:
            connection.execute("CREATE TEMP TABLE used (id INTEGER PRIMARY KEY)")

    def recall(self, texts: Sequence[str]) -> dict[str, Floats1d]:
        """Return the cached vectors of texts by text, each (n_dims,) float32."""
        text_of = {text_digest(text): text for text in texts}
        rows: list[tuple[int, str, bytes]] = []
        with optional(), self._database.transaction() as connection:
            rows = connection.execute(
                f"SELECT id, text, vector {OF_TEXTS}", (self._model, json.dumps([*text_of]))
            ).fetchall()
            _use(connection, (row for row, _, _ in rows))
        return {text_of[digest]: np.frombuffer(v, dtype=np.float32) for _, digest, v in rows}

    def keep(self, texts: Sequence[str], X: Floats2d) -> None:
        """Store the vectors of texts, (n_texts, n_dims)."""
        insert = "INSERT OR REPLACE INTO text_vectors (text, model, vector) VALUES (?, ?, ?)"
        rows = [
            (text_digest(text), self._model, x.astype(np.float32).tobytes())
            for text, x in zip(texts, X, strict=True)
        ]
        with optional(), self._database.transaction(survives=False) as connection:
            _use(connection, [connection.execute(insert, row).lastrowid for row in rows])

    def use(self, digests: Iterable[str]) -> None:
        """Count the vectors of texts as used, though they are not recalled."""
        with optional(), self._database.transaction() as connection:
            connection.execute(
                f"INSERT OR IGNORE INTO used SELECT id {OF_TEXTS}",
                (self._model, json.dumps([*digests])),
            )

    def forget(self, texts: Iterable[str]) -> None:
        """Delete vectors that this build did not use: of these texts, or of unfinished builds."""
        with optional(), self._database.transaction() as connection:
            connection.executemany(
                f"DELETE {OF_UNUSED} AND text = ?", ((text_digest(text),) for text in texts)
            )
            connection.execute(f"DELETE {OF_UNUSED} AND {IS_UNFINISHED}")
            _finish(connection)

    def forget_the_rest(self) -> None:
        """Delete the vectors that this build did not use."""
        with optional(), self._database.transaction() as connection:
            connection.execute(f"DELETE {OF_UNUSED}")
            _finish(connection)


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _use(connection: sqlite3.Connection, ids: Iterable[int | None]) -> None:
    connection.executemany("INSERT OR IGNORE INTO used VALUES (?)", ((row,) for row in ids))


def _finish(connection: sqlite3.Connection) -> None:
    """Record that all vectors are of builds that have finished."""
    connection.execute("DELETE FROM finished")
    connection.execute("INSERT INTO finished SELECT coalesce(max(id), 0) FROM text_vectors")
