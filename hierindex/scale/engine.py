"""The engine that builds an index on a Ray cluster."""

import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from os.path import realpath
from typing import Any, cast

from hierindex.cache.values import Readings
from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError, SourceError
from hierindex.jobs.engine import AtWork, Rows
from hierindex.jobs.job import Job
from hierindex.jobs.reading import ReadDocument, documents_and_skipped
from hierindex.progress import Progress
from hierindex.read.documents import Skipped
from hierindex.read.files import File
from hierindex.scale.cluster import (
    DEATHS,
    cluster,
    code_version,
    each_of,
    elsewhere,
    in_turn,
    result_of,
    task,
)
from hierindex.scale.setup import Setup, language_model
from hierindex.scale.shared import Shared, SharedCache, report_steps, watched
from hierindex.scale.worker import Done, Worker, load_document, read
from hierindex.store.fragments import Fragments, Place
from hierindex.store.table import Table
from hierindex.tree.growth import Grown
from hierindex.tree.hierarchy import Hierarchy

FILES = 64  # that a task reads at most
PARTS = 4  # per worker, so that none is idle for long at the end
CPUS = 2  # per worker
ABOVE = "above"  # beside the other calls of a worker, which may have to grow a lost part again


@dataclass(frozen=True)
class RayEngine:
    """Builds an index on a Ray cluster; pass it as `engine` to `HierarchicalIndex.build`.

    Tasks read files, and actors split, embed and summarise the documents of a part and write its
    rows. The levels above documents grow in one of these actors, with their nodes in its memory;
    if `RaptorHierarchy` divides many chunks into pools, these grow in all actors. A task makes the
    search indices. The tree is the one that this process alone would build, id by id. All machines
    must reach the sources and the index under the same paths, and have the same hierindex and the
    same models.

    What workers compute is kept in the cache of the index as it comes. A part whose worker dies
    is grown again by another, at the cost of what was not yet kept; so is a build that is killed
    and started again. A language model is asked from this machine, within its limits.

    Parameters
    ----------
    address : str, optional
        `host:port` of the cluster's head node. By default the cluster that `RAY_ADDRESS` or `ray
        start` names on this machine, or else one of this machine alone, for this build.
    workers : int, optional
        Number of actors. By default one for each GPU, or if there are none for every two CPUs.
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        valid = self.workers is None or is_whole(self.workers, 1)
        require(valid, "workers", "an integer of at least 1", self.workers)

    @contextmanager
    def __call__(self, table: Table, hierarchy: Hierarchy, progress: Progress) -> Iterator[AtWork]:
        """Start workers for a build; see `Engine`."""
        with (
            cluster(self.address),  # before the model is loaded
            _shared(table.uri) as actor,
        ):
            cache = SharedCache(actor)
            reader = partial(_read, memory=Readings(cache), progress=progress)
            yield AtWork(cache, reader, _OnCluster(actor, self.workers))


@dataclass(frozen=True)
class _OnCluster:
    """Workers on a cluster; see `Workers`. `actor` is `Shared`."""

    actor: Any
    n_workers: int | None

    def rows(self, table: Table) -> AbstractContextManager[Rows]:
        """Return the files of rows that workers write; another process joins and indexes them."""
        return nullcontext(Fragments(Place(*table.connection.parameters), elsewhere))

    def grown(self, job: Job, rows: Rows) -> Grown:
        """Grow trees of documents and pools in workers, and the levels above in one of these."""
        import ray

        if job.splitter is not None:
            raise InputError("A build on a cluster takes no splitter; pass chunk_size instead.")
        assert isinstance(rows, Fragments)  # they are its own
        if rewriter := language_model(job.hierarchy._summarizer):
            result_of(self.actor.begin.remote(rewriter))
        with _workers(self.n_workers) as workers:
            setup = ray.put(Setup.of(job, rows.place, self.actor))
            each_of(worker.load.remote(setup) for worker in workers)
            trees = [*_documents(job, rows, workers, setup, self.actor)]
            above = workers[0].above.options(concurrency_group=ABOVE, num_returns=2)
            grown, done = above.remote(setup, trees, workers)
            _add(rows, watched(done, self.actor, job.progress))
            return cast(Grown, result_of(grown))


def _documents(
    job: Job, rows: Fragments, workers: Sequence[Any], setup: Any, actor: Any
) -> Iterator[Any]:
    """Yield references to the trees of parts in order, and add the rows of finished nodes."""
    documents, n_done = job.revision.read, 0
    n_chunks = sum(each.n_chunks for each in documents)
    most = min(job.part, 1 + n_chunks // (len(workers) * PARTS))
    parts = [*job.parts(most)]
    found = in_turn(
        workers,
        parts,
        lambda worker, part: worker.grow.options(num_returns=2).remote(setup, part),
        meanwhile=partial(report_steps, actor, job.progress),
    )
    for part, (grown, done) in zip(parts, found, strict=True):
        _add(rows, result_of(done))
        n_done += len(part.read)
        job.progress("grow documents", n_done, len(documents))
        yield grown


def _add(rows: Fragments, done: Done) -> None:
    """Add the rows that a worker has written, and repeat its warnings."""
    for category, message in done.warnings:
        warnings.warn(message, category, stacklevel=2)
    rows.add_written(done.written)


@contextmanager
def _shared(uri: str) -> Iterator[Any]:
    """Start the actor `Shared` on this machine."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    remote = ray.remote(Shared).options(num_cpus=0, scheduling_strategy=here)
    actor, error = remote.remote(uri), None
    try:
        yield actor
    except SourceError as failure:
        error = failure
        raise
    finally:
        result_of(actor.close.remote(error))
        ray.kill(actor)


@contextmanager
def _workers(n: int | None) -> Iterator[list[Any]]:
    """Start workers, spread over the machines, that have the code of this process."""
    import ray

    there = ray.cluster_resources()
    n_gpus = int(there.get("GPU", 0))
    # A worker for which no number of CPUs or GPUs is asked, not even 0, occupies none once it has
    # started, so that it can start again on another node. A call fails many times until Ray knows
    # that a node is lost.
    actor = ray.remote(
        scheduling_strategy="SPREAD",
        max_restarts=DEATHS,
        max_task_retries=-1,  # while it can be started again
        concurrency_groups={ABOVE: 1},
        **({"num_gpus": 1} if n_gpus else {}),
    )(Worker)
    n = n or n_gpus or max(1, int(there.get("CPU", 1)) // CPUS)
    workers = [actor.remote() for _ in range(n)]
    try:
        each_of(worker.check.remote(code_version()) for worker in workers)
        yield workers
    finally:
        for worker in workers:
            ray.kill(worker)


def _read(
    files: Mapping[str, File], *, memory: Readings | None, progress: Progress
) -> tuple[list[ReadDocument], list[Skipped]]:
    """Read files in tasks; see `ReadFiles`. The documents stay where they were read."""
    reading = [task(read, batch, memory, n_results=2) for batch in _batches(files)]
    found = dict[str, list[ReadDocument | Skipped]]()
    for described, texts in reading:
        for file, inside in result_of(described).items():
            found[file] = [
                each
                if isinstance(each, Skipped)
                else ReadDocument._make([*each, partial(load_document, texts, each[0])])
                for each in inside
            ]
        progress("read", len(found), len(files))
    return documents_and_skipped(found[file] for file in files)


def _batches(files: Mapping[str, File]) -> Iterator[dict[str, File]]:
    """Yield files in batches, a file and the links to it in one."""
    together = defaultdict[str, dict[str, File]](dict)
    for document_id, file in files.items():
        together[realpath(file.path)][document_id] = file._replace(path=file.path.absolute())
    batch = dict[str, File]()
    for same in together.values():
        batch |= same
        if len(batch) >= FILES:
            yield batch
            batch = {}
    if batch:
        yield batch
