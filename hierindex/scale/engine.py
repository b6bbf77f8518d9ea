"""The engine that builds an index on a Ray cluster."""

import pickle
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import chain, cycle
from os.path import realpath
from typing import Any

from hierindex.cache import Readings, open_cache
from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError
from hierindex.jobs.job import AtWork, PartGrower, Workers
from hierindex.jobs.revision import InFile, file_reader
from hierindex.progress import Progress
from hierindex.read.files import File
from hierindex.scale.cluster import (
    LLM,
    Shared,
    SharedCache,
    SharedRewriter,
    Worker,
    asking,
    cluster,
    in_order,
    language_model,
    read,
    result_of,
    sendable,
)
from hierindex.store.table import Table
from hierindex.tree.growth import parted

FILES = 64  # that a task reads at most
PARTS = 4  # per worker, so that none is idle for long at the end
CPUS = 2  # per worker
DEATHS = 3  # of a process that are put up with
AT_ONCE = 2  # calls of a worker; one waits


@dataclass(frozen=True)
class RayEngine:
    """Builds an index on a Ray cluster; pass it as `engine` to `HierarchicalIndex.build`.

    Ray tasks read files, and Ray actors split, embed and summarise the documents. With
    many chunks, they also do part of the clustering of a `RaptorHierarchy`. This process
    builds the upper levels and writes the index; it needs as much memory as a build without a
    cluster. The tree is the same, including all ids. All machines need the sources under the same
    paths, the same version of hierindex and the same models.

    Results of workers are cached in the index as soon as they arrive. If a worker dies, another one
    repeats only the work that was not cached; the same holds for a build that is killed and started
    again. Requests to a language model are sent from this machine, for one worker at a time, within
    the model's limits.

    Parameters
    ----------
    address : str, optional
        `host:port` of the cluster's head node. By default the cluster that `RAY_ADDRESS` names or
        that `ray start` has started on this machine; if there is none, one is started on this
        machine for this build.
    workers : int, optional
        Number of actors. By default one per GPU, or without GPUs one per two CPUs.

    Raises
    ------
    InputError
        If `workers` is below 1. `HierarchicalIndex.build` raises it if Ray is not installed, the
        cluster cannot be reached, or a splitter is passed.
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        valid = self.workers is None or is_whole(self.workers, 1)
        require(valid, "workers", "an integer of at least 1", self.workers)

    @contextmanager
    def __call__(self, table: Table, progress: Progress) -> Iterator[AtWork]:
        """Connect to the cluster for a build; see `Engine`."""
        with (
            cluster(self.address),  # before the model is loaded
            open_cache(table.uri) as cache,
            _shared(table.uri) as actor,
            file_reader(table, partial(_each_file, Readings(SharedCache(actor)), progress)) as read,
        ):
            yield AtWork(cache, read, partial(self._start, actor))

    @contextmanager
    def _start(self, actor: Any, grower: PartGrower) -> Iterator[Workers]:
        """Start workers, spread over the machines; see `Start`."""
        import ray

        if grower.splitter is not None:
            raise InputError("A build on a cluster takes no splitter; pass chunk_size instead.")
        have = ray.cluster_resources()
        n_gpus = int(have.get("GPU", 0))
        # A worker for which no number of CPUs or GPUs is asked, not even 0, occupies none once it
        # has started, so that it can start again on another node.
        remote = ray.remote(
            scheduling_strategy="SPREAD",
            max_restarts=DEATHS,
            max_task_retries=-1,  # many calls fail until Ray knows that a node is lost
            **({"num_gpus": 1} if n_gpus else {}),
        )(Worker)
        n = self.workers or n_gpus or max(1, int(have.get("CPU", 1)) // CPUS)
        workers = [remote.remote() for _ in range(n)]
        try:
            for checked in [worker.check.remote(version("hierindex")) for worker in workers]:
                result_of(checked)
            if rewriter := language_model(grower):
                result_of(actor.begin.remote(rewriter))
                grower = asking(grower, SharedRewriter(rewriter, actor))
            mapped = partial(_map, workers, [ray.put(sendable(grower, actor))])
            yield Workers(mapped, grower, PARTS * n, grower.progress)
        finally:
            for worker in workers:
                ray.kill(worker)


def _map(workers: Sequence[Any], sent: Any, method: Any, items: Iterable[Any]) -> Iterator[Any]:
    """Yield the workers' result for each item, in order; see `Map`."""
    calls = (
        worker.grow.remote(sent, method, item)
        for worker, item in zip(cycle(workers), items, strict=False)
    )
    for grown, said in in_order(calls, AT_ONCE * len(workers)):
        for category, message in said:
            warnings.warn(message, category, stacklevel=2)
        yield pickle.loads(grown)  # noqa: S301  # of a worker


@contextmanager
def _shared(uri: str) -> Iterator[Any]:
    """Start the actor `Shared` on this machine."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    remote = ray.remote(num_cpus=0, scheduling_strategy=here, concurrency_groups={LLM: 1})
    actor = remote(Shared).remote(uri)
    try:
        yield actor
    finally:
        result_of(actor.close.remote())
        ray.kill(actor)


def _each_file(memory: Readings, progress: Progress, files: Mapping[str, File]) -> Iterator[InFile]:
    """Read files in tasks, in batches that have a file with the links to it; see `EachFile`."""
    import ray

    together = defaultdict[str, dict[str, File]](dict)
    for document_id, file in files.items():
        together[realpath(file.path)][document_id] = file._replace(path=file.path.absolute())
    task = ray.remote(scheduling_strategy="SPREAD", max_retries=DEATHS)(read)
    n_read, n_cpus = 0, max(1, int(ray.cluster_resources().get("CPU", 1)))
    parts = parted(together.values(), len, FILES)
    batches = (dict(chain.from_iterable(same.items() for same in part)) for part in parts)
    own = version("hierindex")
    calls = (task.remote(own, batch, memory) for batch in batches)
    for found in in_order(calls, AT_ONCE * n_cpus):
        yield from found
        n_read += len(found)
        progress("read", n_read, len(files))
