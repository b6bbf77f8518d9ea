"""Updates of an index whenever its files change."""

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path

from hierindex.errors import HierindexError, InputError, LimitError, SourceError
from hierindex.jobs.build import UpdateOptions, settings_held
from hierindex.jobs.job import BuildReport
from hierindex.jobs.revision import Remembered
from hierindex.jobs.sources import Source, checked
from hierindex.read.files import is_hidden
from hierindex.store.table import Table

REST = 250  # milliseconds without a change after which files are read
NAMELESS = re.compile(r"#\d+")  # as Linux tells of temporary files, such as an update's own
LONGEST = 5000  # milliseconds after which they are read although they still change
TICK = 500  # milliseconds between two looks at what the system does not report
AGAIN = 30.0  # seconds after which an update that failed is tried again

Failed = Callable[[HierindexError], object]


def watched(
    table: Table,
    update: Callable[..., BuildReport],
    sources: Source | Sequence[Source] | None,
    failed: Failed | None,
    given: UpdateOptions,
) -> Iterator[BuildReport]:
    """Update an index whenever its files change; see `HierarchicalIndex.watch`."""
    read = None if sources is None else checked(sources)
    places = Remembered.of(table.snapshot()).sources if read is None else [*map(str, read)]
    if not places:
        raise SourceError("The index has no files to watch; name the sources.")
    update = partial(
        update,
        read,
        hierarchy=given.checked_hierarchy(settings_held(table.snapshot())),
        splitter=given.splitter,
        purge=given.purge,
        progress=given.progress,
    )
    return reports(update, places, failed)


def reports(
    update: Callable[[], BuildReport], sources: Sequence[str], failed: Failed | None = None
) -> Iterator[BuildReport]:
    """Update an index now and whenever its sources change, and yield the report of each update.

    Parameters
    ----------
    update : callable
    sources : sequence of str
        Files and folders.
    failed : callable, optional
        Called with the error of a failed update; by default the error is raised. The update is
        retried at the next change, or after half a minute unless it has reached the token limit. An
        error that repeats without a change is reported once.
    """
    due, said = 0.0, ""  # `due` by time.monotonic
    for changed in changes(sources):
        if not changed and time.monotonic() < due:
            continue
        try:
            report = update()
        except HierindexError as error:
            if failed is None:
                raise
            if changed or str(error) != said:
                failed(error)
            said = str(error)
            due = inf if isinstance(error, LimitError) else time.monotonic() + AGAIN
        else:
            due = inf
            yield report


def changes(sources: Sequence[str]) -> Iterator[bool]:
    """Yield about twice a second whether files of the sources have changed.

    A series of changes is reported when it has ended. Missing sources are waited for. Changes to
    files that would not be read are ignored.

    Raises
    ------
    InputError
        If the system cannot watch the sources.
    """
    import watchfiles

    changed = False
    while True:
        there = [source for source in sources if Path(source).exists()]
        roots = [*map(os.path.realpath, there)]
        watcher = watchfiles.watch(
            *roots,
            watch_filter=None,
            debounce=LONGEST,
            step=REST,
            rust_timeout=TICK,
            yield_on_timeout=True,
            ignore_permission_denied=True,
        )
        try:
            for batch in watcher:
                paths = {path for _, path in batch}
                changed = changed or any(_is_read(path, roots) for path in paths)
                if paths & {*roots} or there != [s for s in sources if Path(s).exists()]:
                    changed = True
                    break  # what has taken the place of a source has to be watched, too
                yield changed
                changed = False
        except (OSError, RuntimeError) as error:
            if all(Path(source).exists() for source in there):  # otherwise, one has just gone
                raise InputError(
                    f"The sources cannot be watched: {error}; set WATCHFILES_FORCE_POLLING=1 to "
                    "compare their files from time to time instead."
                ) from error


def _is_read(path: str, roots: Sequence[str]) -> bool:
    """Return whether a file or folder of a source may be read."""
    if NAMELESS.fullmatch(Path(path).name):
        return False
    inside = (Path(path).relative_to(root) for root in roots if Path(path).is_relative_to(root))
    return not all(any(map(is_hidden, part.parts)) for part in inside)
