"""Cached vectors of texts."""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence

import numpy as np

from hierindex.cache.database import Database, optional
from hierindex.core.membership import Floats1d, Floats2d

CREATE = """
CREATE TABLE IF NOT EXISTS vectors (
    text TEXT, model TEXT, vector BLOB NOT NULL, PRIMARY KEY (text, model)
)
"""


# Texts whose vectors were stored by builds that have not finished.
CREATE_UNFINISHED = """
CREATE TABLE IF NOT EXISTS unfinished (text TEXT PRIMARY KEY) WITHOUT ROWID
"""


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
            connection.execute("CREATE TEMP TABLE used (text TEXT PRIMARY KEY) WITHOUT ROWID")

    def recall(self, texts: Sequence[str]) -> dict[str, Floats1d]:
        """Return the cached vectors of texts by text, each (n_dims,) float32."""
        text_of = {text_digest(text): text for text in texts}
        rows: list[tuple[str, bytes]] = []
        with optional(), self._database.transaction() as connection:
            _use(connection, text_of)
            rows = connection.execute(
                "SELECT text, vector FROM vectors"
                " WHERE model = ? AND text IN (SELECT value FROM json_each(?))",
                (self._model, json.dumps(list(text_of))),
            ).fetchall()
        return {text_of[digest]: np.frombuffer(v, dtype=np.float32) for digest, v in rows}

    def keep(self, texts: Sequence[str], X: Floats2d) -> None:
        """Store the vectors of texts, (n_texts, n_dims)."""
        digests = [text_digest(text) for text in texts]
        with optional(), self._database.transaction(survives=False) as connection:
            _use(connection, digests)
            connection.executemany(
                "INSERT OR IGNORE INTO unfinished VALUES (?)", ((digest,) for digest in digests)
            )
            connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
                [
                    (digest, self._model, x.astype(np.float32).tobytes())
                    for digest, x in zip(digests, X, strict=True)
                ],
            )

    def use(self, digests: Iterable[str]) -> None:
        """Count the vectors of texts as used, though they are not recalled."""
        with optional(), self._database.transaction() as connection:
            _use(connection, digests)

    def forget(self, texts: Iterable[str]) -> None:
        """Delete vectors that this build did not use: of these texts, or of unfinished builds."""
        with optional(), self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO unfinished VALUES (?)", ((text_digest(t),) for t in texts)
            )
            connection.execute(
                "DELETE FROM vectors WHERE text IN"
                " (SELECT text FROM unfinished WHERE text NOT IN (SELECT text FROM used))"
            )
            connection.execute("DELETE FROM unfinished")

    def forget_the_rest(self) -> None:
        """Delete the vectors that this build did not use."""
        with optional(), self._database.transaction() as connection:
            connection.execute("DELETE FROM unfinished")
            connection.execute(
                "DELETE FROM vectors WHERE model <> ? OR text NOT IN (SELECT text FROM used)",
                (self._model,),
            )


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _use(connection: sqlite3.Connection, digests: Iterable[str]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO used VALUES (?)", ((digest,) for digest in digests)
    )
