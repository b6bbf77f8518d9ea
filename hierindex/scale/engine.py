"""The engine that builds an index on a Ray cluster.

In order: the engine, the connection to a cluster, and the code that runs on its machines.
"""

import logging
import os
import pickle
import platform
import subprocess
import sys
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import chain, cycle
from os.path import realpath
from typing import TYPE_CHECKING, Any, cast

from hierindex.cache import Cache, Entry, Readings, Texts, cache_file, open_cache
from hierindex.core.arguments import is_whole, require
from hierindex.errors import FallbackWarning, HierindexError, InputError, WindowWarning, extra
from hierindex.jobs.job import AtWork, PartGrower, Workers
from hierindex.jobs.revision import InFile, file_reader
from hierindex.models.adapters import OpenVinoEmbedding, as_llama_index
from hierindex.models.embedder import Embedder, fingerprint
from hierindex.models.load import load_embed_model
from hierindex.progress import Progress, silent
from hierindex.read.documents import each_file
from hierindex.read.files import File
from hierindex.store.table import Table
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summarizers import as_summarizer
from hierindex.summarize.summary import Resources, Summarizer
from hierindex.summarize.two_stage import Rewrite
from hierindex.tree.growth import parted
from hierindex.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

FILES = 64  # that a task reads at most
PARTS = 4  # per worker, so that none is idle for long at the end
CPUS = 2  # per worker
DEATHS = 3  # of a process that are put up with
AT_ONCE = 2  # calls of a worker; one waits
PATIENCE = 6.0  # seconds in which an address must answer
LLM = "llm"  # the concurrency group of what asks the language model
REPORTED = FallbackWarning, WindowWarning

Grown = tuple[bytes, list[tuple[type[Warning], str]]]
"""A pickled result, as arrays would else stay in Ray's memory, and what a worker has warned of."""


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


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Connect to a cluster for a `with` block, unless this process is already connected.

    Parameters
    ----------
    address : str or None
        `host:port` of the head node. If None, the cluster in `RAY_ADDRESS` or started by `ray
        start` on this machine is used. If there is none, a cluster on this machine is started for
        the block.

    Raises
    ------
    InputError
        If Ray is not installed, or there is no cluster at the address.
    """
    with extra("ray", "The engine ray needs"):
        import ray
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to a server of Ray's
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray will do, and says
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    is_new = not ray.is_initialized()
    try:
        if address not in (None, "auto", "local"):  # Ray itself waits for minutes
            asking = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address"]
            subprocess.run([*asking, address], check=True, timeout=PATIENCE, capture_output=True)
        if is_new:
            ray.init(address, include_dashboard=None if address else False, **options)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        raise InputError(
            f"There is no Ray cluster at {address!r}; start one with `ray start --head`, and name "
            "the address that it prints."
            if address
            else "Ray cannot start on this machine; `ray start --head` says why."
        ) from error
    try:
        yield
    finally:
        if is_new:
            ray.shutdown()


def result_of(reference: Any) -> Any:
    """Return the result of a Ray reference.

    Raises
    ------
    BaseException
        The exception of the task.
    HierindexError
        If the cluster lost the result.
    """
    import ray
    from ray.exceptions import RayError

    try:
        return ray.get(reference)
    except RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, BaseException) and not isinstance(cause, RayError):
            raise cause from None
        reason = str(cause or error).partition("\n")[0].rstrip(".")
        raise HierindexError(
            f"The Ray cluster failed: {reason}. Build again; what was finished is reused."
        ) from error


def in_order(references: Iterable[Any], at_once: int) -> Iterator[Any]:
    """Yield the results of calls in order, with at most `at_once` calls running.

    `references` starts a call with each reference that it yields.
    """
    waiting = deque[Any]()
    for reference in references:
        waiting.append(reference)
        if len(waiting) == at_once:
            yield result_of(waiting.popleft())
    while waiting:
        yield result_of(waiting.popleft())


def check_version(expected: str) -> None:
    """Raise InputError if this machine has another version than the one that started the build."""
    if (own := version("hierindex")) != expected:
        raise InputError(
            f"The build was started by hierindex {expected}, but a worker on {platform.node()} "
            f"has {own}; install the same on all machines."
        )


class Shared:
    """The actor that owns the cache of an index and calls the language model.

    Parameters
    ----------
    uri : str
        Address of the index.
    """

    def __init__(self, uri: str) -> None:
        self._cache = Cache(cache_file(uri))

    def of_cache(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method of the cache and return its result."""
        return getattr(self._cache, method)(*arguments, **options)

    def begin(self, rewriter: LLMRewriter) -> None:
        """Set the language model, and start counting the usage of a build."""
        self._rewriter = rewriter
        self._resources = Resources(completions=Texts(self._cache))

    def of_rewriter(self, method: str, texts: Sequence[Any], **options: Any) -> list[Rewrite]:
        """Call a method of the language model's rewriter; one call after the other."""
        call = getattr(self._rewriter, method)
        return cast(list[Rewrite], call(texts, resources=self._resources, **options))

    def close(self) -> None:
        """Close the cache."""
        self._cache.close()


class SharedCache(Cache):
    """The cache of the actor, for any process of the cluster."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def recall(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of the keys that the cache has."""
        return cast(dict[str, bytes], result_of(self._actor.of_cache.remote("recall", keys)))

    def keep(self, entries: Iterable[Entry], *, is_costly: bool = False) -> None:
        """Store entries."""
        result_of(self._actor.of_cache.remote("keep", [*entries], is_costly=is_costly))

    def mark(self, keys: Iterable[str], of: int) -> None:
        """Record the hash of the text that the values under these keys were computed from."""
        result_of(self._actor.of_cache.remote("mark", [*keys], of))


class SharedRewriter:
    """A rewriter that sends texts to the actor, which rewrites them; see `Rewriter`.

    Parameters
    ----------
    rewriter : LLMRewriter
        The rewriter of the actor.
    actor : Shared
    """

    def __init__(self, rewriter: LLMRewriter, actor: Any) -> None:
        self.name: str = rewriter.name
        self._described = rewriter.to_dict()
        self._actor = actor

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine a rewrite."""
        return self._described

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """Return one rewrite for each text, in order."""
        return self._asked("rewrite", texts, max_tokens=max_tokens)

    def correct(
        self, claims: Sequence[tuple[str, str, Sequence[str]]], resources: Resources
    ) -> list[Rewrite]:
        """Return a correction of each claim; see `LLMRewriter.correct`."""
        return self._asked("correct", claims)

    def _asked(self, method: str, texts: Sequence[Any], **options: Any) -> list[Rewrite]:
        in_turn = self._actor.of_rewriter.options(concurrency_group=LLM)
        return cast(list[Rewrite], result_of(in_turn.remote(method, texts, **options)))


def language_model(grower: PartGrower) -> LLMRewriter | None:
    """Return the rewriter of a grower that uses a language model, or None."""
    rewriter = getattr(grower.hierarchy._summarizer, "rewriter", None)
    return rewriter if isinstance(rewriter, LLMRewriter) else None


def asking(grower: PartGrower, rewriter: SharedRewriter) -> PartGrower:
    """Return a copy of a grower with another rewriter."""
    hierarchy = grower.hierarchy.model_copy()
    hierarchy._summarizer = copy(hierarchy._summarizer)
    vars(hierarchy._summarizer)["rewriter"] = rewriter
    return replace(grower, hierarchy=hierarchy)


def sendable(grower: PartGrower, actor: Any) -> Callable[[], PartGrower]:
    """Return a function that makes a copy of a grower on another machine, with the shared cache.

    The function raises InputError if the embedding model on the other machine differs.
    """
    hierarchy, cache = grower.hierarchy, SharedCache(actor)
    unset = dict.fromkeys(("embed_model", "summarizer", "store", "cache"))
    bare = hierarchy.model_copy(update={**unset, "progress": silent})
    bare._embedder, bare._summarizer = None, as_summarizer(None)
    model, summarizer = as_llama_index(hierarchy.embedder.embed_model), hierarchy._summarizer
    loading = partial(_made, bare, _loading(model), fingerprint(model))
    return partial(loading, summarizer, grower.chunk_size, cache)


def _made(
    bare: Hierarchy,
    load: "Callable[[], BaseEmbedding]",
    expected: str | None,
    summarizer: Summarizer,
    chunk_size: int | None,
    cache: Cache,
) -> PartGrower:
    model = load()
    if (found := fingerprint(model)) != expected:
        raise InputError(
            f"The embedding model {model.model_name!r} on {platform.node()} differs from that "
            f"of the build in its weights, precision or runtime ({found} instead of {expected}); "
            "use machines with the same models and the same kind of processor."
        )
    bare._embedder, bare._summarizer = Embedder(model), summarizer
    return PartGrower(bare, None, chunk_size, cache, silent)


def _loading(model: "BaseEmbedding") -> "Callable[[], BaseEmbedding]":
    """Return a function that loads a model on another machine with other folders and devices."""
    if isinstance(model, OpenVinoEmbedding):
        return partial(load_embed_model, model.model_name, precision=model.precision)
    if model.class_name() == "HuggingFaceEmbedding":
        return partial(load_embed_model, model.model_name)
    return lambda: model


class Worker:
    """The actor that grows parts of a tree, with models loaded once."""

    def __init__(self) -> None:
        self._grower: PartGrower | None = None

    def check(self, version: str) -> None:
        """See `check_version`."""
        check_version(version)

    def grow(self, sent: list[Any], method: Callable[[PartGrower, Any], Any], item: Any) -> Grown:
        """Call a method of a `PartGrower`; the function in `sent` makes it on the first call."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            if self._grower is None:  # also after another process has died in its place
                self._grower = result_of(sent[0])()
            grown = method(self._grower, item)
        ours = [each for each in said if issubclass(each.category, REPORTED)]
        told = dict.fromkeys((each.category, str(each.message)) for each in ours)
        return pickle.dumps(grown), [*told]


def read(version: str, files: Mapping[str, File], memory: Readings) -> list[InFile]:
    """Read files by document id; `version` is that of the process that started the build."""
    check_version(version)
    return [*each_file(files, memory=memory)]
