"""Building of an index from sources."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from hierindex.errors import FormatError, InputError
from hierindex.jobs.changes import Remembered, check_losses, held_documents
from hierindex.jobs.job import Engine, Job, PartGrower, in_this_process
from hierindex.jobs.report import BuildReport
from hierindex.jobs.revisions import Source, built, checked
from hierindex.models.model import is_same_name
from hierindex.progress import Progress, Stopwatch
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser


def build_tree(
    sources: Source | Sequence[Source],
    table: Table,
    hierarchy: Hierarchy,
    *,
    splitter: "NodeParser | None" = None,
    chunk_size: int | None = None,
    replace: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> BuildReport:
    """Build the tree of the sources; see `HierarchicalIndex.build`."""
    progress, watch = progress or hierarchy.progress, Stopwatch()
    sources, may_replace = checked(sources), replace or dry_run
    with nullcontext() if dry_run else table.writing("build"):
        with watch("load"):
            _ = hierarchy.embedder  # a model that cannot be loaded leaves no cache
        with (engine or in_this_process)(table, progress) as (cache, read, start):
            with watch("load"):
                snapshot = _held_by(table) if may_replace else table.snapshot()
                before, was = held_documents(snapshot), Remembered.of(snapshot)
                if snapshot.exists and not may_replace:
                    _check_models(snapshot, hierarchy)
            with watch("read"):
                revision = built(sources, before, was, read)
            if not may_replace:
                check_losses(
                    "build",
                    len(revision.names.removed),
                    before,
                    "pass --replace (in Python replace=True) to do so, or use `hierindex update` "
                    "to add documents",
                )
            grower = PartGrower(hierarchy, splitter, chunk_size, cache, progress)
            job = Job(revision, table, snapshot, grower, watch, start)
            return job.estimate() if dry_run else job.publish()


def _held_by(table: Table) -> Snapshot:
    """Return the newest snapshot of an index, empty if another version of hierindex wrote it."""
    try:
        return table.snapshot()
    except FormatError:  # the build replaces it
        return Snapshot(table.uri)


def _check_models(snapshot: Snapshot, hierarchy: Hierarchy) -> None:
    """Raise InputError if a build would replace a tree of another method or of other models."""
    was_made = snapshot.maker()
    known = [
        ("method", was_made.method, hierarchy.method),
        ("embedding model", was_made.embed_model, hierarchy.embedder.name),
        ("summariser", was_made.summarizer, hierarchy.summarizer_name),
    ]
    for what, was, now in known:
        if was != now and not (what == "embedding model" and is_same_name(was, now)):
            raise InputError(
                f"The index {snapshot.uri!r} was built with the {what} {was!r}, this build has "
                f"{now!r}; pass --replace (in Python replace=True) to build all of it again."
            )
