"""What workers need to grow a tree, without what only one machine has."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from hierindex.cache.cache import Cache
from hierindex.errors import InputError
from hierindex.jobs.job import Job
from hierindex.models.embedder import Embedder
from hierindex.models.load import load_embed_model
from hierindex.models.model_identity import fingerprint
from hierindex.models.openvino_embedding import OpenVinoEmbedding, as_llama_index
from hierindex.progress import Progress, silent
from hierindex.scale.cluster import host
from hierindex.scale.shared import SharedProgress, SharedRewriter
from hierindex.store.fragments import Place
from hierindex.summarize.choice import as_summarizer
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Summarizer
from hierindex.summarize.two_stage import Rewriter
from hierindex.tree.hierarchy import Hierarchy

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding

T = TypeVar("T")


@dataclass(frozen=True)
class Setup:
    """A hierarchy in parts that can be sent, and where its workers read and write.

    Attributes
    ----------
    hierarchy : Hierarchy
        Without its models.
    load_model : callable
        Returns the embedding model.
    model : str or None
        Its fingerprint.
    load_summarizer : callable
        Returns the summariser.
    chunk_size : int or None
    part : int
        Number of chunks, about, that are grown at once.
    cache : Cache
        That the workers share.
    place : Place
        Of the rows.
    progress : Progress
        Reports to the process that builds.
    """

    hierarchy: Hierarchy
    load_model: "Callable[[], BaseEmbedding]"
    model: str | None
    load_summarizer: Callable[[], Summarizer]
    chunk_size: int | None
    part: int
    cache: Cache
    place: Place
    progress: Progress

    @classmethod
    def of(cls, job: Job, place: Place, actor: Any) -> Self:
        """Describe the hierarchy of a job; `actor` asks its language model."""
        unset = dict.fromkeys(("embed_model", "summarizer", "store", "cache"))
        fields = {**unset, "progress": silent}
        bare = job.hierarchy.model_copy(update=fields)
        model = as_llama_index(job.hierarchy.embedder.embed_model)
        bare._embedder, bare._summarizer = None, as_summarizer(None)
        return cls(
            hierarchy=bare,
            load_model=_loading(model),
            model=fingerprint(model),
            load_summarizer=_made_by(job.hierarchy._summarizer, actor),
            chunk_size=job.chunk_size,
            part=job.part,
            cache=job.cache,
            place=place,
            progress=SharedProgress(actor),
        )

    def loaded(self) -> Hierarchy:
        """Return the hierarchy with its models.

        Raises
        ------
        InputError
            If the embedding model is not the one of the build.
        """
        model = self.load_model()
        if (found := fingerprint(model)) != self.model:
            raise InputError(
                f"The embedding model {model.model_name!r} on {host()} differs from that of the "
                f"build in its weights, precision or runtime ({found} instead of {self.model}); "
                "use machines with the same models and the same kind of processor."
            )
        loaded = self.hierarchy.model_copy()
        loaded._embedder, loaded._summarizer = Embedder(model), self.load_summarizer()
        return loaded


def language_model(summarizer: Summarizer) -> LLMRewriter | None:
    """Return what asks the language model of a summariser; None if it has none."""
    rewriter = getattr(summarizer, "rewriter", None)
    return rewriter if isinstance(rewriter, LLMRewriter) else None


def _loading(model: "BaseEmbedding") -> "Callable[[], BaseEmbedding]":
    """Return what loads a model on another machine, whose folders and devices may differ."""
    if isinstance(model, OpenVinoEmbedding):
        return partial(load_embed_model, model.model_name, precision=model.precision)
    if model.class_name() == "HuggingFaceEmbedding":
        return partial(load_embed_model, model.model_name)
    return partial(_same, model)


def _made_by(summarizer: Summarizer, actor: Any) -> Callable[[], Summarizer]:
    """Return what makes a summariser elsewhere; its language model is asked by the actor."""
    from hierindex.summarize.seq2seq import Seq2SeqRewriter

    if model := language_model(summarizer):
        return partial(_same, _rewritten_by(SharedRewriter(model, actor), summarizer))
    rewriter = getattr(summarizer, "rewriter", None)
    if not isinstance(rewriter, Seq2SeqRewriter):
        return partial(_same, summarizer)
    load = partial(Seq2SeqRewriter, rewriter.name, num_beams=rewriter.num_beams)
    return partial(_with_loaded, load, _rewritten_by(None, summarizer))


def _with_loaded(load: Callable[[], Rewriter], summarizer: Summarizer) -> Summarizer:
    return _rewritten_by(load(), summarizer)


def _rewritten_by(rewriter: Rewriter | None, summarizer: Summarizer) -> Summarizer:
    changed = copy(summarizer)
    vars(changed)["rewriter"] = rewriter
    return changed


def _same(value: T) -> T:
    return value
