"""Builds, updates and deletions, and growing the tree again."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hierindex.errors import FormatError, InputError, SourceError
from hierindex.jobs.job import BuildReport, Engine, Job, PartGrower, in_this_process, reported
from hierindex.jobs.revision import (
    Documents,
    ReadFiles,
    Remembered,
    Revision,
    check_losses,
    held_documents,
)
from hierindex.jobs.settings import (
    StoredSettings,
    check_hierarchy,
    check_splitter,
    hierarchy_of,
    settings_in,
)
from hierindex.jobs.sources import Source, built, checked
from hierindex.models.embedder import built_precision, is_same_name
from hierindex.progress import Progress, Stopwatch, silent
from hierindex.store.filters import STALE
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import PURGED, Table
from hierindex.tree.hierarchy import Hierarchy
from hierindex.tree.levels import Growth

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser

    from hierindex.models.adapters import LLMLike
    from hierindex.models.embedder import EmbedLike


LLM_OPTIONS = ("concurrency", "timeout", "token_limit", "record", "strict")

Revise = Callable[[Documents, Remembered, ReadFiles], Revision]
"""Returns the revision of an index, given its documents and stored state."""


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
    folder = table.connection.folder
    for path in (source for source in sources if isinstance(source, str | Path)):
        if folder is not None and folder.exists() and folder.samefile(path):
            raise SourceError(
                f"{str(path)!r} is both a source and the folder of the index; name another folder "
                "for the index, which may be inside the source."
            )
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


@dataclass(frozen=True)
class UpdateOptions:
    """The models and options of an update; None means as stored in the index.

    `llm_options` are limits of `LLMRewriter` and `strict`, see `hierarchy_of`. `may_differ` allows
    another hierarchy than the one of the index. `purge` removes all earlier generations from the
    index.
    """

    hierarchy: Hierarchy | None = None
    embed_model: "EmbedLike | None" = None
    llm: "LLMLike | None" = None
    progress: Progress | None = None
    llm_options: Mapping[str, Any] = field(default_factory=dict)
    splitter: "NodeParser | None" = None
    may_differ: bool = False
    purge: bool = False

    def __post_init__(self) -> None:
        if self.hierarchy and (self.llm or self.llm_options):
            raise InputError(
                "A hierarchy has its own language model and limits; pass either hierarchy= or llm= "
                "and its options, not both."
            )
        for name in self.llm_options:
            if name not in LLM_OPTIONS:
                raise InputError(f"There is no option {name!r}.")

    def checked_hierarchy(self, settings: StoredSettings) -> Hierarchy:
        """Return the hierarchy to grow with; raise InputError if it contradicts `settings`."""
        hierarchy = self.hierarchy or hierarchy_of(
            settings, self.embed_model, self.llm, **self.llm_options
        )
        check_hierarchy(settings, hierarchy, may_differ=self.may_differ)
        known = settings.get("embed_settings")
        return hierarchy.in_precision(built_precision(known)) if known else hierarchy


def revise(
    table: Table, what: str, change: Revise, given: UpdateOptions, *, dry_run: bool = False
) -> BuildReport:
    """Change the documents of an index, and publish the updated tree.

    Parameters
    ----------
    table : Table
    what : str
        Kind of the change, shown to other writers while the lock is held.
    change : callable
        Returns the revision. If it is empty, no model is loaded.
    given : UpdateOptions
    dry_run : bool
        Whether only to estimate the cost.

    Raises
    ------
    IndexNotFoundError
        If the store holds no index.
    InputError
        If the options contradict the settings stored in the index.
    """
    table.snapshot().require()
    watch = Stopwatch()
    with nullcontext() if dry_run else table.writing(what):
        with watch("load"):
            snapshot = table.snapshot()
            before, was = held_documents(snapshot), Remembered.of(snapshot)
            settings = settings_held(snapshot)
            hierarchy = given.checked_hierarchy(settings) if given.hierarchy else None
        progress = given.progress or (hierarchy.progress if hierarchy else silent)
        with in_this_process(table, progress) as (cache, read, start):
            with watch("read"):
                revision = change(before, was, read)
            if _is_stale(snapshot):
                revision = replace(revision, anew=True)
            is_purged = not given.purge or PURGED in snapshot.details()
            if revision.is_empty and (dry_run or is_purged):
                if not dry_run:
                    table.sweep_cache()  # after a job that was killed, or an edit taken back
                report = reported(revision, Growth(), snapshot.generation, watch)
                return replace(report, dry_run=dry_run)
            with watch("load"):
                hierarchy = hierarchy or given.checked_hierarchy(settings)
                if revision.read:
                    check_splitter(settings, given.splitter)
            chunk_size = settings.get("chunk_size")
            grower = PartGrower(hierarchy, given.splitter, chunk_size, cache, progress)
            job = Job(revision, table, snapshot, grower, watch, start, given.purge)
            return job.estimate() if dry_run else job.publish()


def settings_held(snapshot: Snapshot) -> StoredSettings:
    """Return the settings stored in an index or, if there are none, in its nodes."""
    return Remembered.of(snapshot).settings or settings_in(snapshot.maker())


def _is_stale(snapshot: Snapshot) -> bool:
    """Return whether nodes were deleted, or a pipeline added further trees."""
    if snapshot.count(STALE):
        return True
    return not snapshot.is_built and len(snapshot.roots()) > 1
