"""What reads the documents of a build and grows their trees: this process, or many machines."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hierindex.cache.cache import Cache, open_cache
from hierindex.cache.values import Readings
from hierindex.jobs.reading import ReadFiles, file_reader
from hierindex.progress import Progress
from hierindex.store.fragments import Fragments
from hierindex.store.table import Table
from hierindex.store.waiting import LeafFile, RowFile
from hierindex.tree.growth import Aside, Grown
from hierindex.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from hierindex.jobs.job import Job


Rows = RowFile | Fragments
"""Rows of nodes that wait until all of a tree is written."""


class Workers(Protocol):
    """Grow the tree of a job."""

    def rows(self, table: Table) -> AbstractContextManager[Rows]:
        """Return where rows wait until all of the tree is written, to be used by `with`."""

    def grown(self, job: "Job", rows: Rows) -> Grown:
        """Grow a tree; the rows of finished nodes are added."""


class AtWork(NamedTuple):
    """The workers of a build, with what reads files and the cache that they share."""

    cache: Cache
    read: ReadFiles
    workers: Workers


Engine = Callable[[Table, Hierarchy, Progress], AbstractContextManager[AtWork]]
"""Starts workers for the build of an index."""


class Here:
    """Workers that are this process."""

    def rows(self, table: Table) -> AbstractContextManager[Rows]:
        """Return a file of rows."""
        return RowFile(table.connection)

    def grown(self, job: "Job", rows: Rows) -> Grown:
        """Grow the parts of a tree one after the other."""
        with LeafFile(job.table.connection) as waiting:
            aside = Aside(rows.add, waiting, job.part)
            return job.hierarchy.grow(job.chunks(), job.cache, job.progress, job.earlier(), aside)


HERE = Here()


@contextmanager
def in_this_process(table: Table, hierarchy: Hierarchy, progress: Progress) -> Iterator[AtWork]:
    """Read and grow in this process; see `Engine`."""
    with (
        open_cache(table.uri) as cache,
        file_reader(table, progress, Readings(cache)) as read,
    ):
        yield AtWork(cache, read, HERE)
