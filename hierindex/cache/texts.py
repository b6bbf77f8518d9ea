"""Cached completions of models and cached summaries."""

import sqlite3
from collections.abc import Iterable, Mapping, Set

from hierindex.cache.database import Database, optional
from hierindex.cache.vectors import text_digest

CREATE = """
CREATE TABLE IF NOT EXISTS texts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key BLOB NOT NULL UNIQUE, text BLOB NOT NULL, details BLOB
)
"""
# Hashes of the documents that texts may derive from: of all builds since the last clean-up.
CREATE_DOCUMENTS = """
CREATE TABLE IF NOT EXISTS documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT, hash TEXT NOT NULL UNIQUE
)
"""
START = 64  # bytes
# By which completions, and the summary of a text, are found without reading all texts.
CREATE_COMPLETIONS = "CREATE INDEX IF NOT EXISTS completions ON texts (id) WHERE details IS NULL"
CREATE_STARTS = f"CREATE INDEX IF NOT EXISTS starts ON texts (substr(text, 1, {START}))"

CREATE_RECALLED = "CREATE TEMP TABLE IF NOT EXISTS recalled (id INTEGER PRIMARY KEY)"
OF_UNUSED = "FROM texts WHERE id <= ? AND id NOT IN recalled"
UNUSED = "unused"
"""Noted in the place of a document's hash, if texts that no node has are kept."""


class TextCache:
    """A cache of completions and summaries, by a digest of everything that determines them.

    Completions are written as they arrive and summaries level by level, so that a build that is
    killed has to repeat little. It is thread-safe. If the cache fails, a warning is logged and
    the build continues without it.

    Parameters
    ----------
    database : Database
        See `open_cache`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recalled: set[int] = set()
        self._documents: set[str] = set()
        self._last_document = 0
        self._last_before = 0  # ids grow, so later entries have higher ones
        with optional(), database.transaction() as connection:
            ((last,),) = connection.execute("SELECT coalesce(max(id), 0) FROM texts")
            self._last_before = last

    def recall(self, key: str) -> str | None:
        """Return the completion under a key; None if there is none."""
        return next((_decoded(text) for text, _ in self._recall([key]).values()), None)

    def recall_summaries(self, keys: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Return the cached summaries under these keys: the text and details of each."""
        return {
            key: (_decoded(text), _decoded(details))
            for key, (text, details) in self._recall(keys).items()
            if details is not None
        }

    def keep(self, key: str, text: str) -> None:
        """Store a completion, replacing any other under its key."""
        self._keep([(_encoded(key), _encoded(text), None)])

    def keep_summaries(self, summaries: Mapping[str, tuple[str, str]]) -> None:
        """Store the texts and details of summaries by key, in one transaction."""
        self._keep(
            (_encoded(key), _encoded(text), _encoded(details))
            for key, (text, details) in summaries.items()
        )

    def begin(self, hashes: Iterable[str]) -> None:
        """Record the hashes of a build's documents before any of its texts is stored."""
        self._documents = {*hashes}
        with optional(), self._database.transaction() as connection:
            held = connection.execute("SELECT hash FROM documents")
            _note(connection, self._documents.difference(each for (each,) in held))
            query = "SELECT coalesce(max(id), 0) FROM documents"
            ((self._last_document,),) = connection.execute(query)

    def holds_only(self, hashes: Iterable[str]) -> bool:
        """Return whether all documents that texts may derive from have these hashes."""
        noted: list[tuple[str]] = []
        with optional(), self._database.transaction() as connection:
            noted = connection.execute("SELECT hash FROM documents").fetchall()
        return {each for (each,) in noted} <= {*hashes}

    def forget_the_rest(self, *, something_is_gone: bool = True) -> None:
        """Delete the entries that existed when this build began and were not used since.

        Entries that another build stores meanwhile are kept. Nothing is deleted if no document
        is gone, neither according to the caller nor of those recorded by `begin`.
        """
        with optional(), self._database.transaction() as connection:
            before = self._forget_documents(connection) - {UNUSED}
            unused = self._unused(connection)
            if something_is_gone or before:
                connection.execute(f"DELETE {OF_UNUSED}", unused)
            elif connection.execute(f"SELECT id {OF_UNUSED}", unused).fetchone():
                _note(connection, {UNUSED})

    def forget(self, gone: Iterable[str], held: Set[str] | None = None) -> None:
        """Delete summaries and completions of earlier builds that this one did not use.

        Parameters
        ----------
        gone : Iterable[str]
            Texts of summaries to delete.
        held : Set[str], optional
            Digests of the texts of nodes that the index holds, by `text_digest`; then all but
            their summaries are deleted.
        """
        with optional(), self._database.transaction() as connection:
            self._forget_documents(connection)
            unused = self._unused(connection)
            connection.execute(f"DELETE {OF_UNUSED} AND details IS NULL", unused)
            if held is not None:
                _define_stays(connection, held)
                connection.execute(f"DELETE {OF_UNUSED} AND NOT stays(text)", unused)
                return
            connection.executemany(
                f"DELETE {OF_UNUSED} AND substr(text, 1, {START}) = ? AND text = ?",
                ((*unused, text[:START], text) for text in map(_encoded, gone)),
            )

    def _unused(self, connection: sqlite3.Connection) -> tuple[int]:
        """Prepare the table of what was recalled, and return the parameter of `OF_UNUSED`."""
        connection.execute(CREATE_RECALLED)
        connection.executemany(
            "INSERT OR IGNORE INTO recalled VALUES (?)", ((row,) for row in self._recalled)
        )
        return (self._last_before,)

    def _forget_documents(self, connection: sqlite3.Connection) -> set[str]:
        """Delete and return the documents that were recorded when this build began and it lacks."""
        rows = connection.execute(
            "SELECT hash FROM documents WHERE id <= ?", (self._last_document,)
        )
        others = {each for (each,) in rows} - self._documents
        connection.executemany("DELETE FROM documents WHERE hash = ?", ((d,) for d in others))
        return others

    def _recall(self, keys: Iterable[str]) -> dict[str, tuple[bytes, bytes | None]]:
        found = {}
        with optional(), self._database.transaction() as connection:
            for key in keys:
                rows = connection.execute(
                    "SELECT id, text, details FROM texts WHERE key = ?", (_encoded(key),)
                )
                for row, text, details in rows:
                    self._recalled.add(row)
                    found[key] = text, details
        return found

    def _keep(self, rows: Iterable[tuple[bytes, bytes, bytes | None]]) -> None:
        with optional(), self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO texts (key, text, details) VALUES (?, ?, ?)", rows
            )


def _note(connection: sqlite3.Connection, hashes: Iterable[str]) -> None:
    """Record documents as the latest."""
    connection.executemany(
        "INSERT OR REPLACE INTO documents (hash) VALUES (?)", ((each,) for each in hashes)
    )


def forget_all_but(connection: sqlite3.Connection, summaries: Set[str]) -> None:
    """Delete all texts except the summaries whose texts have these digests."""
    _define_stays(connection, summaries)
    connection.execute("DELETE FROM texts WHERE details IS NULL OR NOT stays(text)")


def _define_stays(connection: sqlite3.Connection, held: Set[str]) -> None:
    """Define the SQL function that tells whether a text has one of these digests."""
    connection.create_function("stays", 1, lambda text: text_digest(_decoded(text)) in held)


def _encoded(text: str) -> bytes:
    """Encode as UTF-8, since SQLite's TEXT refuses lone surrogates, which models do write."""
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
