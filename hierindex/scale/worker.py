"""Code that runs on the machines of a cluster, and the models that they share."""

import pickle
import platform
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from hierindex.cache import Cache, Entry, Readings, Texts, open_cache
from hierindex.errors import FallbackWarning, InputError, WindowWarning
from hierindex.jobs.job import PartGrower
from hierindex.jobs.reading import InFile
from hierindex.models.embedder import Embedder
from hierindex.models.load import load_embed_model
from hierindex.models.model import fingerprint
from hierindex.models.openvino_embedding import OpenVinoEmbedding, as_llama_index
from hierindex.progress import silent
from hierindex.read.documents import each_file
from hierindex.read.files import File
from hierindex.scale.cluster import check_version, result_of
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summarizers import as_summarizer
from hierindex.summarize.summary import Resources, Summarizer
from hierindex.summarize.two_stage import Rewrite
from hierindex.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding


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

    def recall(self, keys: Sequence[str]) -> dict[str, bytes]:
        """See `Cache.recall`."""
        return self._cache.recall(keys)

    def keep(self, entries: Sequence[Entry]) -> None:
        """See `Cache.keep`."""
        self._cache.keep(entries)

    def mark(self, keys: Sequence[str], of: int) -> None:
        """See `Cache.mark`."""
        self._cache.mark(keys, of)

    def begin(self, rewriter: LLMRewriter) -> None:
        """Set the language model, and start counting the usage of a build."""
        self._rewriter = rewriter
        self._resources = Resources(completions=Texts(self._cache))

    def rewrite(self, texts: Sequence[str], max_tokens: int) -> list[Rewrite]:
        """Rewrite texts with the language model, after the texts of earlier calls."""
        return self._rewriter.rewrite(texts, max_tokens=max_tokens, resources=self._resources)

    def correct(self, claims: Sequence[tuple[str, str, Sequence[str]]]) -> list[Rewrite]:
        """Let the language model correct sentences, each given with its fault and its sources."""
        return self._rewriter.correct(claims, self._resources)

    def close(self) -> None:
        """Close the cache."""
        self._opened.__exit__(None, None, None)


class SharedCache(Cache):
    """The cache of the actor, for any process of the cluster."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def recall(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values of the keys that the cache has."""
        return cast(dict[str, bytes], result_of(self._actor.recall.remote(keys)))

    def keep(self, entries: Iterable[Entry]) -> None:
        """Store entries."""
        result_of(self._actor.keep.remote([*entries]))

    def mark(self, keys: Iterable[str], of: int) -> None:
        """Record the hash of the text that the values under these keys were computed from."""
        result_of(self._actor.mark.remote([*keys], of))


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
        return self._asked(self._actor.rewrite, texts, max_tokens)

    def correct(
        self, claims: Sequence[tuple[str, str, Sequence[str]]], resources: Resources
    ) -> list[Rewrite]:
        """Return a correction of each sentence; see `LLMRewriter.correct`."""
        return self._asked(self._actor.correct, claims)

    def _asked(self, method: Any, *arguments: Any) -> list[Rewrite]:
        called = method.options(concurrency_group=LLM).remote(*arguments)
        return cast(list[Rewrite], result_of(called))


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
