"""Cached readings of files, and cached places of their chunks."""

import json
import zlib
from collections.abc import Iterable, Set
from typing import Any

from hierindex.cache.database import Database, optional

CREATE = """
CREATE TABLE IF NOT EXISTS readings (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value BLOB NOT NULL
)
"""
# Which documents an entry was used for, by their hashes.
CREATE_USES = """
CREATE TABLE IF NOT EXISTS uses (
    document TEXT, key TEXT, PRIMARY KEY (document, key)
) WITHOUT ROWID
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
        self._recent: set[str] = set()  # used for the document that is being read
        self._uses: set[tuple[str, str]] = set()
        self._documents: set[str] = set()

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
        self._recent.add(key)
        return value

    def keep(self, key: str, value: Any) -> None:
        """Store a JSON value, replacing any other under its key."""
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._recent.add(key)
        with optional(), self._database.transaction(survives=False) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO readings (key, value) VALUES (?, ?)",
                (key, zlib.compress(data, LEVEL)),
            )

    def recent(self) -> set[str]:
        """Return the keys of what was recalled and stored since the last call."""
        recent, self._recent = self._recent, set()
        return recent

    def read_for(self, document: str) -> None:
        """Note that what was recalled and stored of late was read for a document, by its hash."""
        self.note(document, self.recent())

    def note(self, document: str, keys: Set[str]) -> None:
        """Note what was read for a document, as `read_for` does, by keys."""
        self._uses.update((document, key) for key in keys)
        self._used |= keys

    def begin(self, documents: Iterable[str]) -> None:
        """Set the hashes of the documents whose readings `forget_the_rest` keeps."""
        self._documents = {*documents}

    def forget_the_rest(self) -> None:
        """Delete what this build did not use and no document of `begin` was read with."""
        used = json.dumps(sorted(self._used | self._recent))
        staying = json.dumps(sorted(self._documents))
        with optional(), self._database.transaction() as connection:
            connection.executemany("INSERT OR IGNORE INTO uses VALUES (?, ?)", self._uses)
            connection.execute(
                "DELETE FROM uses WHERE document NOT IN (SELECT value FROM json_each(?))",
                (staying,),
            )
            connection.execute(
                "DELETE FROM readings WHERE key NOT IN (SELECT value FROM json_each(?))"
                " AND key NOT IN (SELECT key FROM uses)",
                (used,),
            )
