"""Connecting to a Ray cluster, the code that runs on its machines, and what these share."""

import logging
import os
import pickle
import platform
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

from hierindex.cache import Cache, Entry, Readings, Texts, open_cache
from hierindex.errors import FallbackWarning, HierindexError, InputError, WindowWarning
from hierindex.jobs.job import PartGrower
from hierindex.jobs.revision import InFile
from hierindex.models.adapters import OpenVinoEmbedding, as_llama_index
from hierindex.models.embedder import Embedder, fingerprint
from hierindex.models.load import load_embed_model
from hierindex.progress import silent
from hierindex.read.documents import each_file
from hierindex.read.files import File
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summarizers import as_summarizer
from hierindex.summarize.summary import Resources, Summarizer
from hierindex.summarize.two_stage import Rewrite
from hierindex.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

PATIENCE = 6.0  # seconds in which an address must answer


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
    try:
        import ray
    except ModuleNotFoundError as error:
        raise InputError("The engine ray needs `pip install 'hierindex[ray]'`.") from error
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


LLM = "llm"  # the concurrency group of what asks the language model

REPORTED = FallbackWarning, WindowWarning


class Shared:
    """The actor that owns the cache of an index and calls the language model.

    Parameters
    ----------
    uri : str
        Address of the index.
    """

    def __init__(self, uri: str) -> None:
        self._opened = open_cache(uri)
        self._cache = self._opened.__enter__()

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
        self._opened.__exit__(None, None, None)


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


Grown = tuple[bytes, list[tuple[type[Warning], str]]]
"""A pickled result, as arrays would else stay in Ray's memory, and what a worker has warned of."""


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
