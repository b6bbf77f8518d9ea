"""Cached readings of files, and cached places of their chunks."""

import json
import zlib
from typing import Any

from hierindex.cache.database import Database, optional

CREATE = """
CREATE TABLE IF NOT EXISTS readings (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value BLOB NOT NULL
)
"""
LEVEL = 1  # of compression; higher ones save little, and take longer than reading some files


class ReadingCache:
    """A cache of JSON values that reading and splitting compute, by a digest of their input.

    If the cache fails, a warning is logged and the build continues without it.

    Parameters
    ----------
    database : Database
        See `open_cache`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._used: set[str] = set()

    def recall(self, key: str) -> Any:
        """Return the value under a key; None if there is none, or if it is damaged."""
        found = None
        with optional(), self._database.transaction() as connection:
            query = "SELECT value FROM readings WHERE key = ?"
            found = connection.execute(query, (key,)).fetchone()
        if found is None:
            return None
        try:
            value = json.loads(zlib.decompress(found[0]).decode("utf-8", "surrogatepass"))
        except (zlib.error, ValueError, TypeError):
            return None
        self._used.add(key)
        return value

    def keep(self, key: str, value: Any) -> None:
        """Store a JSON value, replacing any other under its key."""
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._used.add(key)
        with optional(), self._database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO readings (key, value) VALUES (?, ?)",
                (key, zlib.compress(data, LEVEL)),
            )

    def forget_the_rest(self) -> None:
        """Delete the values that this build neither recalled nor stored."""
        with optional(), self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM readings WHERE key NOT IN (SELECT value FROM json_each(?))",
                (json.dumps(sorted(self._used)),),
            )
