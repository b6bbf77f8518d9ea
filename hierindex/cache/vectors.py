"""Cached vectors of texts."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from hierindex.cache.database import Database, optional
from hierindex.core.arrays import Floats1d, Floats2d

CREATE = """
CREATE TABLE IF NOT EXISTS text_vectors (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, UNIQUE (text, model)
)
"""
# The last vector when a build last finished. Vectors with higher ids are of builds that did not.
CREATE_FINISHED = "CREATE TABLE IF NOT EXISTS finished (last INTEGER NOT NULL)"

OF_TEXTS = "FROM text_vectors WHERE model = ? AND text IN (SELECT value FROM json_each(?))"
OF_UNUSED = "FROM text_vectors WHERE id NOT IN (SELECT id FROM used)"
IS_UNFINISHED = "id > (SELECT coalesce(max(last), 0) FROM finished)"
AT_ONCE = 10_000  # texts of a statement


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
        rows: list[tuple[str, bytes]] = []
        with optional(), self._database.transaction() as connection:
            self._use(connection, [*text_of])
            rows = connection.execute(
                f"SELECT text, vector {OF_TEXTS}", (self._model, json.dumps([*text_of]))
            ).fetchall()
        return {text_of[digest]: np.frombuffer(v, dtype=np.float32) for digest, v in rows}

    def keep(self, texts: Sequence[str], X: Floats2d) -> None:
        """Store the vectors of texts, (n_texts, n_dims)."""
        digests = [text_digest(text) for text in texts]
        with optional(), self._database.transaction(survives=False) as connection:
            connection.executemany(
                "INSERT INTO text_vectors (text, model, vector) VALUES (?, ?, ?)"
                " ON CONFLICT (text, model) DO UPDATE SET vector = excluded.vector",
                [
                    (digest, self._model, x.astype(np.float32).tobytes())
                    for digest, x in zip(digests, X, strict=True)
                ],
            )
            self._use(connection, digests)

    def use(self, digests: Iterable[str]) -> None:
        """Count the vectors of texts as used, though they are not recalled."""
        with optional(), self._database.transaction() as connection:
            self._use(connection, [*digests])

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

    def _use(self, connection: sqlite3.Connection, digests: Sequence[str]) -> None:
        for start in range(0, len(digests), AT_ONCE):
            connection.execute(
                f"INSERT OR IGNORE INTO used SELECT id {OF_TEXTS}",
                (self._model, json.dumps(digests[start : start + AT_ONCE])),
            )


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _finish(connection: sqlite3.Connection) -> None:
    """Record that all vectors are of builds that have finished."""
    connection.execute("DELETE FROM finished")
    connection.execute("INSERT INTO finished SELECT coalesce(max(id), 0) FROM text_vectors")
