"""What runs on the machines of a cluster: reading of files, and growing of parts of a tree."""

import pickle
import platform
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from hierindex.cache import Cache, Readings
from hierindex.errors import FallbackWarning, InputError, WindowWarning
from hierindex.jobs.engine import PartGrower
from hierindex.jobs.reading import InFile
from hierindex.models.embedder import Embedder
from hierindex.models.load import load_embed_model
from hierindex.models.model_identity import fingerprint
from hierindex.models.openvino_embedding import OpenVinoEmbedding, as_llama_index
from hierindex.progress import silent
from hierindex.read.documents import each_file
from hierindex.read.files import File
from hierindex.scale.cluster import check_code, result_of
from hierindex.scale.shared import SharedCache
from hierindex.summarize.choice import as_summarizer
from hierindex.summarize.summary import Summarizer
from hierindex.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding


REPORTED = FallbackWarning, WindowWarning

Grown = tuple[bytes, list[tuple[type[Warning], str]]]
"""A pickled result, as arrays would else stay in Ray's memory, and what a worker has warned of."""


def sendable(grower: PartGrower, actor: Any) -> Callable[[], PartGrower]:
    """Return what makes a grower on another machine, with the cache of the actor `Shared`.

    It raises InputError if the embedding model of the other machine is not the same.
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
    """Return what loads a model on another machine, whose folders and devices may differ."""
    if isinstance(model, OpenVinoEmbedding):
        return partial(load_embed_model, model.model_name, precision=model.precision)
    if model.class_name() == "HuggingFaceEmbedding":
        return partial(load_embed_model, model.model_name)
    return lambda: model


class Worker:
    """The actor that grows parts of a tree, with models that it loads once."""

    def __init__(self) -> None:
        self._grower: PartGrower | None = None

    def check(self, code: str) -> None:
        """Raise InputError if this process has other code than the one that started a build."""
        check_code(code)

    def grow(self, sent: list[Any], method: Callable[[PartGrower, Any], Any], item: Any) -> Grown:
        """Call a method of the `PartGrower` that a reference in a list makes, on the first call."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            if self._grower is None:  # also after another process has died in its place
                self._grower = result_of(sent[0])()
            grown = method(self._grower, item)
        ours = [each for each in said if issubclass(each.category, REPORTED)]
        told = dict.fromkeys((each.category, str(each.message)) for each in ours)
        return pickle.dumps(grown), [*told]


def read(code: str, files: Mapping[str, File], memory: Readings) -> list[InFile]:
    """Read files by document id; `code` is of the process that started the build."""
    check_code(code)
    return [*each_file(files, memory=memory)]
