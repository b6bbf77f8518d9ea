"""Generations: versions of a table that are published by a tag, and their cleanup.

A generation is a LanceDB version with a tag. Readers open the newest tagged version. They never see
versions without a tag.
"""

import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from hierindex.errors import GenerationError

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import Table

logger: logging.Logger = logging.getLogger(__name__)

Ask = TypeVar("Ask", bound=Callable[..., Any])

TAG = "generation-"
ADDED = "added"  # entry of details: nodes were added beside the tree of the last build
DETAILS = "hierindex"  # key in the metadata of the column `id`, which every write carries on
CLAIMED = "hierindex-claimed"  # another, of a version that its writer goes on from
FRAGMENT_ROWS = 1_048_576  # LanceDB's maximum
SLACK = (0.01, 0.3, 10.0)  # seconds that LanceDB may take until it compares times
A_MOMENT = timedelta(milliseconds=1)
TRIES = 5
MISSING = re.compile("not found|no longer exists", re.IGNORECASE)  # as LanceDB writes it


def published(table: "Table") -> dict[int, int]:
    """Return the LanceDB version of each published generation, in ascending order."""
    with removals():
        tags = table.tags.list()
    numbers = {name: name.removeprefix(TAG) for name in tags if name.startswith(TAG)}
    versions = {int(n): int(tags[name]["version"]) for name, n in numbers.items() if n.isdecimal()}
    return dict(sorted(versions.items()))


def publish(table: "Table", generation: int, details: dict[str, Any]) -> None:
    """Publish the table's current version as a generation, with details stored in it.

    Raises
    ------
    RuntimeError
        If another writer has published this generation; the message contains "conflict".
    """
    text = json.dumps(details, ensure_ascii=False)
    table.update_field_metadata({"path": "id", "metadata": {DETAILS: text}})
    table.tags.create(f"{TAG}{generation}", table.version)


def claim(table: "Table") -> None:
    """Commit a change to the table's newest version; only one writer can do so per version.

    Raises
    ------
    RuntimeError
        If another writer has done so before; the message contains "conflict".
    """
    table.update_field_metadata({"path": "id", "metadata": {CLAIMED: now()}})


def details_of(schema: "pa.Schema") -> dict[str, Any]:
    """Return the details that a version was published with; empty if it was not published."""
    stored = schema.field("id").metadata or {}
    details: dict[str, Any] = json.loads(stored.get(DETAILS.encode(), b"{}"))
    return details


def now() -> str:
    """Return the current time in ISO format and UTC, for a generation."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def keep_last(table: "Table", n: int, *, alone: bool) -> None:
    """Remove all but the last n generations, and the files that only the others need.

    LanceDB joins small fragments whenever it removes files. So files are only removed when there
    are no fragments to join: after a build, after a deletion, and after about every 16th addition.

    Parameters
    ----------
    table : Table
        Table at its newest version.
    n : int
        Number of generations to keep.
    alone : bool
        See `prune`.
    """
    held = published(table)
    for generation in [*held][:-n]:
        table.tags.delete(f"{TAG}{generation}")
    stats: Any = table.stats()
    n_fragments = stats["fragment_stats"]["num_fragments"]
    if n_fragments <= 1 + stats["num_rows"] // FRAGMENT_ROWS:
        prune(table, min([*held.values()][-n:]), alone=alone)


def renew(table: "Table") -> None:
    """Copy the generations to new versions, and remove all other versions and their files.

    LanceDB removes no version that is newer than a published one. Data files are not copied.
    """
    new = []
    for generation, version in published(table).items():
        table.checkout(version)
        table.restore()
        new.append(table.version)
        table.tags.update(f"{TAG}{generation}", new[-1])
    prune(table, min(new), alone=True)


def prune(table: "Table", oldest: int, *, alone: bool) -> None:
    """Remove the versions before `oldest`, and the files that only they need.

    A failure is only logged, because the next write tries again.

    Parameters
    ----------
    table : Table
        Table at its newest version.
    oldest : int
        Version of the oldest generation; it and all later versions are kept.
    alone : bool
        Whether no other process can be writing; then files of killed writers are removed, too.
    """
    written = times(table)[oldest]
    time.sleep(2 * A_MOMENT.total_seconds())
    for slack in SLACK:
        age = A_MOMENT  # LanceDB always keeps the newest version
        if table.version != oldest:
            age += max(timedelta(), datetime.now() - written) + timedelta(seconds=slack)
        try:
            table.optimize(cleanup_older_than=age, delete_unverified=alone)
        except RuntimeError as error:  # a generation would be removed, or a file is in use
            reason = error
        else:
            return
    logger.info("The clean-up of the index is postponed to the next write: %s.", reason)


def times(table: "Table") -> dict[int, datetime]:
    """Return the time of each version of a table, as naive local time."""
    versions = table.list_versions()
    return {each["version"]: each["timestamp"] for each in versions}


def is_missing(error: Exception) -> bool:
    """Return whether LanceDB failed because a file does not exist."""
    return MISSING.search(str(error)) is not None


@contextmanager
def removals() -> Iterator[None]:
    """Turn LanceDB's error for files that another writer removed into GenerationError."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if not is_missing(error):
            raise
        raise GenerationError(
            "A generation was removed while it was read; try again. If it happens again, "
            "`hierindex verify` names the missing files."
        ) from error


def on_newest(ask: Ask) -> Ask:
    """Decorate a function to run again if the generation that it reads is removed meanwhile.

    The function must open the newest generation whenever it is called.
    """

    @wraps(ask)
    def asked(*args: Any, **kwargs: Any) -> Any:
        for _ in range(TRIES - 1):
            with suppress(GenerationError):
                return ask(*args, **kwargs)
        return ask(*args, **kwargs)

    return cast(Ask, asked)
