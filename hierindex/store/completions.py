"""What models wrote before, kept beside the index."""

import json

from hierindex.store.database import Database, optional

CREATE = """
CREATE TABLE IF NOT EXISTS completions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, key BLOB NOT NULL UNIQUE, text BLOB NOT NULL
)
"""


class CompletionCache:
    """What models wrote, by key, in one file that is written as each text arrives.

    So a text is paid for once, also by a build that is killed straight after. Any thread may
    call. A cache that fails while a build runs is warned of, and the build goes on without it.

    Parameters
    ----------
    database : Database
        See `open_cache`.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._recalled: set[int] = set()
        self._last_before = 0  # ids grow, so those of all that is kept from now on are higher
        with optional(), database.transaction() as connection:
            ((last,),) = connection.execute("SELECT coalesce(max(id), 0) FROM completions")
            self._last_before = last

    def recall(self, key: str) -> str | None:
        """The text under this key, None if there is none."""
        rows: list[tuple[int, bytes]] = []
        with optional(), self._database.transaction() as connection:
            rows = connection.execute(
                "SELECT id, text FROM completions WHERE key = ?", (_encoded(key),)
            ).fetchall()
            self._recalled.update(row for row, _ in rows)
        return rows[0][1].decode("utf-8", "surrogatepass") if rows else None

    def keep(self, key: str, text: str) -> None:
        """Keep a text for good, at once, in the place of what was under its key."""
        with optional(), self._database.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO completions (key, text) VALUES (?, ?)",
                (_encoded(key), _encoded(text)),
            )

    def forget_the_rest(self) -> None:
        """Delete what was there when this build began and was neither recalled nor kept since.

        What another build keeps meanwhile stays: it has just been paid for.
        """
        with optional(), self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM completions"
                " WHERE id <= ? AND id NOT IN (SELECT value FROM json_each(?))",
                (self._last_before, json.dumps(sorted(self._recalled))),
            )


def _encoded(text: str) -> bytes:
    """As UTF-8; SQLite's own texts refuse lone surrogates, which models do write."""
    return text.encode("utf-8", "surrogatepass")
