"""Building the tree of sources."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hierindex.errors import FormatError, InputError
from hierindex.jobs.changes import Remembered, Revision, check_losses, held_documents
from hierindex.jobs.engine import Engine, in_this_process
from hierindex.jobs.job import Job
from hierindex.jobs.report import BuildReport, nothing_changed
from hierindex.jobs.revisions import Source, built, checked
from hierindex.models.model_identity import is_same_name
from hierindex.models.record import Usage
from hierindex.progress import Progress, Stopwatch
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser

T = TypeVar("T")


def build_tree(
    sources: Source | Sequence[Source],
    table: Table,
    hierarchy: Hierarchy,
    *,
    splitter: "NodeParser | None",
    chunk_size: int | None,
    replace: bool,
    progress: Progress | None,
    engine: Engine = in_this_process,
    writing: AbstractContextManager[None] | None = None,
    then: Callable[[Job], T],
) -> T:
    """Do something with the job of building a tree over sources; see `HierarchicalIndex`.

    `writing` excludes other writers, and `then` is called with the job.

    Raises
    ------
    SourceError
        If there is nothing to index, or two documents have the same id.
    InputError
        If the index is not to be replaced, and the build would lose much of what it holds, or
        another version of hierindex wrote it.
    """
    progress, watch = progress or hierarchy.progress, Stopwatch()
    sources = checked(sources)
    with ExitStack() as opened:
        with watch("load"):
            opened.enter_context(writing or nullcontext())
            _ = hierarchy.embedder  # a model that cannot be loaded leaves no cache
            cache, read, start = opened.enter_context(engine(table, progress))
            snapshot = held_by(table) if replace else table.snapshot()
            before, was = held_documents(snapshot), Remembered.of(snapshot)
            if snapshot.exists and not replace:
                _check_models(snapshot, hierarchy)
        with watch("read"):
            revision = built(sources, before, was, read)
        if not replace:
            check_losses(
                "build",
                revision.changes.removed,
                before,
                "pass --replace (in Python replace=True) to do so, or use `hierindex update` to "
                "add documents",
            )
        job = Job(
            revision=revision,
            table=table,
            snapshot=snapshot,
            hierarchy=hierarchy,
            splitter=splitter,
            chunk_size=chunk_size,
            cache=cache,
            progress=progress,
            watch=watch,
            start=start,
        )
        return then(job)


def publish_moved(revision: Revision, table: Table, watch: Stopwatch) -> BuildReport:
    """Publish the new paths of sources, if any have moved, and the tree as it is."""
    generation = table.snapshot().generation
    if revision.moved:
        with watch("write"):
            report = revision.report(revision.was.settings, Usage())
            generation = table.revise(None, (), report, moved=revision.moved)
    else:
        table.sweep_cache()  # after a job that was killed, or an edit taken back
    return nothing_changed(revision, generation, watch)


def held_by(table: Table) -> Snapshot:
    """Return what an index holds: nothing if another version of hierindex wrote it."""
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


def check_writable(uri: str) -> None:
    """Raise InputError before any work if the folder is not writable."""
    if "://" in uri:
        return
    folder = Path(uri).absolute()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise InputError(
            f"The index folder {uri!r} cannot be written: {nearest} is not a writable folder."
        )
