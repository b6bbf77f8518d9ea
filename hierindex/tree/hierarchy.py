"""The three hierarchies, each usable as the last step of an `IngestionPipeline`."""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib.metadata import version
from itertools import chain
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn, Self
from uuid import uuid4

from llama_index.core.bridge.pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_serializer,
    field_validator,
)
from llama_index.core.schema import BaseNode, TransformComponent

from hierindex.cache import Cache, open_cache
from hierindex.core.bounds import Caps
from hierindex.core.identity import digest
from hierindex.core.mixture import DEFAULT, Mixture
from hierindex.core.segments import RULES, Optimal, Rule
from hierindex.core.tree import ByMixture, BySegment, Grouper, by_document
from hierindex.errors import InputError
from hierindex.models.adapters import LLMLike
from hierindex.models.embedder import (
    Embedder,
    EmbedLike,
    as_embed_model,
    check_same_model,
    fingerprint,
    folder_state,
)
from hierindex.models.load import DEFAULT_EMBED_MODEL, load_embed_model
from hierindex.models.openvino import Precision
from hierindex.node import Node
from hierindex.progress import Progress, silent
from hierindex.settings import TreeSettings
from hierindex.store.filters import STALE
from hierindex.store.snapshot import Snapshot
from hierindex.store.vector_store import HierarchyStore
from hierindex.summarize.summarizers import (
    SummarizerLike,
    as_summarizer,
    check_estimable,
    summarizer_from_dict,
)
from hierindex.summarize.summary import Summarizer
from hierindex.text_node import chunk_of, to_text_node
from hierindex.threads import threaded
from hierindex.tree.earlier import EarlierTree
from hierindex.tree.growth import Parts, grow_above, grow_documents
from hierindex.tree.levels import Growth
from hierindex.tree.recipe import Merge, ParentEmbedding, Recipe

SUMMARY_TOKENS = 200  # fits all-MiniLM-L6-v2's 256; RAPTOR's summaries average 131
MAX_TOKENS = 3500  # sum over a group's children, as in RAPTOR
MAX_CHILDREN = 12  # RAPTOR's groups average 6.7 children
SEGMENTS = Optimal(rows=6)
NOTHING_KEPT = Cache()


class Hierarchy(TransformComponent):
    """Base class of the transforms that grow a tree of summaries over chunks.

    Parameters
    ----------
    embed_model : BaseEmbedding, callable or str, optional
        Model that embeds the summaries, and the chunks that have no embedding. Pass the model
        that embedded the chunks; the bundled all-MiniLM-L6-v2 by default. A function maps a list
        of texts to an array (n_texts, n_dims); an index knows it by its name.
    summarizer : Summarizer, LLM, callable or str, optional
        Extractive by default. An LLM, a sequence-to-sequence model (by name or folder) or a
        function `summarize(text, max_tokens) -> str` rewrites the sentences that the extractive
        stage selects.
    parent_embedding : {"text", "mean"}
        Vector of a parent: the embedding of its text ("text", the default), or the mean of its
        children's vectors.
    summary_tokens : int
        Maximum number of tokens in a summary, counted by the embedding model's tokenizer; 200 by
        default.
    max_tokens : int
        Maximum sum of the tokens of a group's children; 3,500 by default.
    max_children : int
        Maximum number of a group's children, at least 2; 12 by default.
    mixture : Mixture
        Settings of the Gaussian mixtures that group nodes across documents.
    max_levels : int, optional
        Maximum number of levels above the chunks; no limit by default.
    seed : int
        Random seed, 0 by default.
    namespace : str
        Hashed into every node id, so that one store can hold two trees of the same document. "" by
        default.
    metadata_rules : dict[str, Merge]
        For a metadata key, a function that maps the list of the children's values to the parent's
        value, or to None to omit the key. Keys without a function: a value that all children share
        is inherited, pages and times become [min, max], and other values a list of at most 10
        distinct ones.
    store : HierarchyStore, optional
        The vector store of an `IngestionPipeline`. Each run then replaces its tree by one over the
        given chunks and over the store's chunks of all other documents. Without a store, the tree
        is built over the given chunks only. `HierarchicalIndex` does not need it.
    cache : str or Path, optional
        Folder where a pipeline caches vectors, summaries and completions; by default the folder of
        `store`, if given. Deletions from an index also clear a cache in the folder of the index.
    progress : Progress
        Callback, see `Progress`; none by default.

    Raises
    ------
    InputError
        If a parameter is unknown, out of range or of a wrong type.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    embed_model: Any = Field(default=None, exclude=True, repr=False)
    summarizer: Any = Field(default=None, exclude=True, repr=False)
    parent_embedding: ParentEmbedding = "text"
    summary_tokens: int = Field(default=SUMMARY_TOKENS, ge=16)
    max_tokens: int = MAX_TOKENS
    max_children: int = MAX_CHILDREN
    mixture: Mixture = DEFAULT
    max_levels: int | None = Field(default=None, ge=1)
    seed: int = Field(default=TreeSettings.seed, ge=0, lt=2**32)
    namespace: str = ""
    metadata_rules: dict[str, Merge] = Field(default_factory=dict, exclude=True, repr=False)
    store: HierarchyStore | None = Field(default=None, exclude=True, repr=False)
    cache: str | Path | None = Field(default=None, exclude=True)
    progress: Progress = Field(default=silent, exclude=True, repr=False)

    method: ClassVar[str]
    _summarizer: Summarizer = PrivateAttr()
    _embedder: Embedder | None = PrivateAttr(default=None)

    def __init__(
        self,
        embed_model: EmbedLike | str | None = None,
        summarizer: SummarizerLike = None,
        **fields: Any,
    ) -> None:
        model = embed_model if isinstance(embed_model, str | None) else as_embed_model(embed_model)
        try:
            super().__init__(embed_model=model, summarizer=summarizer, **fields)  # type: ignore[call-arg]
        except ValidationError as error:
            raise InputError.of_field(error) from None
        self._caps()  # fails now instead of after the embedding
        self._summarizer = as_summarizer(summarizer)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        ForkingPickler.register(cls, _refuse_slice)  # leaves `pickle` and `copy` as they are

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex serialises it."""
        return cls.__name__

    @property
    def embedder(self) -> Embedder:
        """Embedding model with its window and tokenizer; loaded on first use if given by name."""
        if self._embedder is None:
            given = self.embed_model or DEFAULT_EMBED_MODEL
            model = load_embed_model(given) if isinstance(given, str) else given
            self._embedder = Embedder(model)
        return self._embedder

    @property
    def summarizer_name(self) -> str:
        """Name of the model that writes the summaries, or "extractive"."""
        return self._summarizer.name

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Grow a tree over chunks.

        Parameters
        ----------
        nodes : Sequence[BaseNode]
            Chunks of all documents; not modified.

        Returns
        -------
        list[BaseNode]
            Copies of the chunks, and the summaries above them, level by level, all embedded. With
            `store`, all nodes of the new tree, or [] if nothing changes.

        Raises
        ------
        InputError
            If nodes are not chunks with text, or the store has embeddings of another model. A
            pipeline with num_workers is refused, too.
        """
        chunks, snapshot = [*map(chunk_of, nodes)], self.store and self.store.snapshot()
        if snapshot and snapshot.exists:
            chunks = self._with_held(chunks, snapshot)
        with self._cache() as cache:
            grown = self.grow([chunks], cache)
        if self.store and snapshot:
            self.store.expect_tree(snapshot.generation, {node.id for node in grown.nodes})
        return [*map(to_text_node, grown.nodes)]

    acall = threaded(__call__)  # type: ignore[arg-type]  # returns a list

    def grow(
        self,
        parts: Parts,
        cache: Cache = NOTHING_KEPT,
        progress: Progress | None = None,
        earlier: EarlierTree | None = None,
        *,
        is_rehearsal: bool = False,
    ) -> Growth:
        """Build a tree like `__call__`, and also return its usage, statistics and seconds.

        Parameters
        ----------
        parts : Parts
            Chunks, some documents at a time. The trees of documents are built part by part, then
            the levels above all of them; the result does not depend on the division into parts.
            With `earlier`, only the chunks of new and changed documents.
        cache : Cache
            Vectors and texts of earlier builds; new ones are added.
        progress : Progress, optional
            Replaces the hierarchy's own callback.
        earlier : EarlierTree, optional
            The tree to update.
        is_rehearsal : bool
            Whether to estimate the cost: requests to the model that rewrites extracts are counted
            instead of sent, and the extracts stay, except where a rewrite is cached.
        """
        recipe = self.recipe(cache, progress)
        if is_rehearsal:
            check_estimable(self._summarizer)
            recipe = replace(recipe, is_rehearsal=True)
        documents = (grow_documents(recipe, chunks, finish=False) for chunks in parts)
        return grow_above(recipe, documents, earlier)

    def recipe(self, cache: Cache, progress: Progress | None) -> Recipe:
        """Return the recipe of a growth; its caches are in `cache`."""
        within, across = self._groupers()
        reports = progress or self.progress
        return Recipe(self, within, across, self._summarizer, cache, reports)

    def in_precision(self, precision: Precision) -> Self:
        """Return the hierarchy with another precision of its embedding model, if supported."""
        model = self.embedder.embed_model
        if getattr(model, "precision", precision) == precision:
            return self
        copy = self.model_copy()
        copy._embedder = Embedder(load_embed_model(self.embedder.name, precision=precision))
        return copy

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return everything that determines the tree; a pipeline uses it as its cache key.

        It has the `settings` and, as `shaped_by`, a digest of the models' weights and the version
        of hierindex. `shaped_by` is random, so that nothing is cached, in three cases: the weights
        are unknown, rules are functions or custom classes, or the store has nodes.
        """
        model, writer = self.embedder.embed_model, self.summarizer_name
        weights = fingerprint(model) or folder_state(model.model_name)
        is_held = self.store is not None and self.store.snapshot().exists
        is_known = weights and not self._has_own_rules and not is_held
        once = "" if is_known else uuid4().hex
        shaped_by = digest(version("hierindex"), weights, folder_state(writer), once)
        return {**self.settings(**kwargs), "shaped_by": shaped_by}

    def settings(self, **kwargs: Any) -> dict[str, Any]:
        """Return the settings as a dict: models by name, without addresses and API keys."""
        return {
            **super().to_dict(**kwargs),
            "embed_model": self.embedder.name,
            "summarizer": self._summarizer.to_dict(),
            "metadata_rules": sorted(self.metadata_rules),
        }

    @classmethod
    def from_dict(
        cls,
        data: dict[str, Any],
        *,
        embed_model: EmbedLike | None = None,
        summarizer: SummarizerLike = None,
        llm: LLMLike | None = None,
        metadata_rules: dict[str, Merge] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Restore a hierarchy from `to_dict` or `settings`.

        Models that cannot be loaded by name, LLMs, functions and metadata rules must be passed.

        Raises
        ------
        InputError
            If an LLM or a metadata rule is missing; the message names it.
        """
        data = {**data, **kwargs}
        rules = data.pop("metadata_rules", [])
        if missing := set(rules) - set(metadata_rules or {}):
            raise InputError(f"Pass metadata_rules= with rules for {sorted(missing)}.")
        name, described = data.pop("embed_model", None), data.pop("summarizer", {})
        data = {k: v for k, v in data.items() if k not in ("class_name", "shaped_by")}
        if summarizer is None:
            summarizer = summarizer_from_dict(described, llm)
        return cls(embed_model or name, summarizer, metadata_rules=metadata_rules or {}, **data)

    @abstractmethod
    def _groupers(self) -> tuple[Sequence[Grouper], Sequence[ByMixture]]:
        """Return the groupers of nodes of one document, and those of nodes of any document.

        Each is applied level after level until it is done.
        """

    @property
    def _has_own_rules(self) -> bool:
        """Whether custom code affects the tree, of which only the name is known."""
        return bool(self.metadata_rules)

    def _caps(self) -> Caps:
        return Caps(self.max_tokens, self.max_children)

    def _by_mixture(self) -> ByMixture:
        return ByMixture(self.seed, self._caps(), self.mixture)

    def _cache(self) -> AbstractContextManager[Cache]:
        folder = self.cache or (self.store and self.store.uri)
        return open_cache(str(folder)) if folder else nullcontext(NOTHING_KEPT)

    def _with_held(self, given: list[Node], snapshot: Snapshot) -> list[Node]:
        """Return chunks with the stored chunks of other documents; none if no chunk is new."""
        if not (given or snapshot.count(STALE)):
            return []
        was = snapshot.maker()
        check_same_model(self.embedder.embed_model, was.embed_model, was.embed_settings)
        held, new = snapshot.chunks(), {chunk.documents[0] for chunk in given}
        by_document = {chunk.documents[0]: list[Node]() for chunk in (*held, *given)}
        for chunk in (*(c for c in held if c.documents[0] not in new), *given):
            by_document[chunk.documents[0]].append(chunk)
        return [*chain.from_iterable(by_document.values())]


def _refuse_slice(hierarchy: object) -> NoReturn:
    """Raise an error if a pipeline would send the hierarchy to a process with a slice of nodes."""
    raise InputError(
        "A hierarchy needs all nodes at once, and IngestionPipeline with num_workers slices them; "
        "run the pipeline without num_workers, or make the hierarchy in the process that has all "
        "nodes."
    )


class SemanticHierarchy(Hierarchy):
    """A hierarchy that groups similar consecutive chunks until each document is one node.

    Groups tend to end where sections end; see `Optimal`. Documents are then clustered, level by
    level, up to a single root; see `Mixture`. See `Hierarchy` for the other parameters.

    Parameters
    ----------
    rule : Rule
        Rule that chooses where to cut a document: `Optimal` (the default, with six children per
        parent on average), `TargetSize`, `Percentile`, `StandardDeviation`, `Interquartile`,
        `Gradient`, `Cosine` or a custom one.
    """

    method: ClassVar[str] = "semantic"
    rule: Rule = SEGMENTS

    @field_serializer("rule")
    def _described(self, rule: Rule) -> dict[str, Any]:
        kind, fields = type(rule), getattr(rule, "__dict__", {})
        if RULES.get(kind.__name__) is not kind:  # custom: `from_dict` cannot restore it
            return {"class_name": f"{kind.__module__}.{kind.__qualname__}", "fields": repr(fields)}
        return {"class_name": kind.__name__, **fields}

    @field_validator("rule", mode="before")
    @classmethod
    def _made(cls, rule: Any) -> Any:
        if isinstance(rule, Rule) and not isinstance(rule, type):
            return rule
        fields = {**rule} if isinstance(rule, dict) else {}
        name = str(fields.pop("class_name", None))
        if name not in RULES:
            raise InputError(
                f"it must be one of {', '.join(RULES)}, or pass your own as rule=, got {rule!r}."
            )
        return RULES[name](**fields)

    @property
    def _has_own_rules(self) -> bool:
        return super()._has_own_rules or type(self.rule) not in RULES.values()

    def _groupers(self) -> tuple[Sequence[Grouper], Sequence[ByMixture]]:
        return [BySegment(self.rule, self._caps())], [self._by_mixture()]


class RaptorHierarchy(Hierarchy):
    """A hierarchy that groups similar chunks by soft clustering with UMAP and Gaussian mixtures.

    As in RAPTOR, each level is clustered twice: all nodes first, then the nodes of each cluster.
    See `Mixture` for the clustering and `Hierarchy` for the other parameters. Similar chunks share
    a group wherever they are; sections of documents only decide where chunks end.

    Parameters
    ----------
    scope : {"corpus", "document"}
        "corpus" (the default) clusters the chunks of all documents together. "document" first
        clusters the chunks of each document, up to one node per document, and then clusters these
        nodes.
    """

    method: ClassVar[str] = "raptor"
    scope: Literal["corpus", "document"] = "corpus"

    def _groupers(self) -> tuple[Sequence[Grouper], Sequence[ByMixture]]:
        anywhere = self._by_mixture()
        within = [replace(anywhere, per_document=True)] if self.scope == "document" else []
        return within, [anywhere]


class DocumentHierarchy(Hierarchy):
    """A hierarchy with one summary per document, however long the document is.

    See `Hierarchy` for the other parameters.

    Parameters
    ----------
    group_documents : bool
        Whether to cluster the document summaries up to a single root. True by default.
    """

    method: ClassVar[str] = "document"
    group_documents: bool = True

    def _groupers(self) -> tuple[Sequence[Grouper], Sequence[ByMixture]]:
        return [by_document], [self._by_mixture()] if self.group_documents else []
