"""What the three hierarchies share: their settings, their models, and the way they run."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr, ValidationError
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode, TransformComponent

from hierindex.cache.file import Cache, open_cache
from hierindex.core.bounds import Caps
from hierindex.core.groupers import ByMixture
from hierindex.core.mixture import DEFAULT, Mixture
from hierindex.core.tree import Grouper
from hierindex.embed.embedder import Embedder, fingerprint
from hierindex.embed.load import DEFAULT_EMBED_MODEL, load_embed_model
from hierindex.errors import InputError
from hierindex.hierarchy.driver import Models, adrive, drive
from hierindex.hierarchy.expected import Expected, expected_trees
from hierindex.hierarchy.growth import Grown, Growth, ParentEmbedding, Recipe, grow_nodes
from hierindex.hierarchy.metadata import Merge
from hierindex.progress import Progress, silent
from hierindex.summarize.choice import SummarizerLike, as_summarizer, summarizer_from_dict
from hierindex.summarize.rehearsal import rehearsed
from hierindex.summarize.summary import Resources, Summarizer

dispatcher = get_dispatcher(__name__)

SUMMARY_TOKENS = 200  # fits all-MiniLM-L6-v2's 256; RAPTOR's summaries have 131 on average
MAX_TOKENS = 3500  # of a group's children together (RAPTOR)
MAX_CHILDREN = 12  # RAPTOR's groups have 6.7 children on average
NOTHING_KEPT = Cache()


class Hierarchy(TransformComponent):
    """What the three hierarchies share: summaries, embeddings and links of every level.

    Parameters
    ----------
    embed_model : BaseEmbedding or str, optional
        Embeds the summaries, and chunks that have no embedding yet; the bundled
        all-MiniLM-L6-v2 by default. Use the one that embedded the chunks.
    summarizer : Summarizer, LLM or str, optional
        Extractive by default; a language model or a sequence-to-sequence model (by name or
        folder) rewrites what the extractive stage chose.
    parent_embedding : {"text", "mean", "max"}
        A parent's vector: of its text, or the mean or maximum of its children's vectors.
    summary_tokens : int
        Tokens of a summary at most, as the embedding model counts them.
    max_tokens, max_children : int
        What a group may hold; see `bounded`.
    mixture : Mixture
        How near nodes of any document are found; see `Mixture`.
    max_levels : int, optional
        Levels above the chunks.
    seed : int
        Of everything random.
    namespace : str
        Part of every id: two namespaces may hold the same document.
    metadata_rules : dict[str, Merge]
        Replaces, for single keys, how a parent's metadata is merged; see `merged_metadata`.
    cache : str or Path, optional
        Folder in which a pipeline keeps vectors, summaries and what models wrote, so that they
        are not paid for twice; best that of the index, whose deletions then reach it. `build` has
        its own.
    progress : Progress
        Called with a stage, the steps done and the steps in all.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    embed_model: Any = Field(default=None, exclude=True, repr=False)
    summarizer: Any = Field(default=None, exclude=True, repr=False)
    parent_embedding: ParentEmbedding = "text"
    summary_tokens: int = Field(default=SUMMARY_TOKENS, ge=16)
    max_tokens: int = MAX_TOKENS
    max_children: int = MAX_CHILDREN
    mixture: Mixture = DEFAULT
    max_levels: int | None = Field(default=None, ge=1)
    seed: int = Field(default=0, ge=0, lt=2**32)
    namespace: str = ""
    metadata_rules: dict[str, Merge] = Field(default_factory=dict, exclude=True, repr=False)
    cache: str | Path | None = Field(default=None, exclude=True)
    progress: Progress = Field(default=silent, exclude=True, repr=False)

    method: ClassVar[str]
    _summarizer: Summarizer = PrivateAttr()
    _embedder: Embedder | None = PrivateAttr(default=None)
    _is_rehearsal: bool = PrivateAttr(default=False)

    def __init__(
        self,
        embed_model: BaseEmbedding | str | None = None,
        summarizer: SummarizerLike = None,
        **fields: Any,
    ) -> None:
        if not isinstance(embed_model, BaseEmbedding | str | None):
            raise InputError(
                "embed_model must be a LlamaIndex embedding model, a model's name or None, "
                f"got {type(embed_model).__name__}."
            )
        try:
            super().__init__(embed_model=embed_model, summarizer=summarizer, **fields)  # type: ignore[call-arg]
        except ValidationError as error:
            raise InputError.of_field(error) from None
        self._caps()  # refuses caps that cannot hold, now and not after the embedding
        self._summarizer = as_summarizer(summarizer)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        ForkingPickler.register(cls, _refuse_slices)

    @property
    def embedder(self) -> Embedder:
        """The embedding model, with its window and tokenizer; the bundled one is loaded here."""
        if self._embedder is None:
            given = self.embed_model or DEFAULT_EMBED_MODEL
            model = load_embed_model(given) if isinstance(given, str) else given
            self._embedder = Embedder(model)
        return self._embedder

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """Chunks in; chunks and the summaries of all levels above them out.

        Parameters
        ----------
        nodes : Sequence[BaseNode]
            Chunks of all documents at once; not modified.

        Returns
        -------
        list[BaseNode]
            Level by level, all embedded.

        Raises
        ------
        InputError
            If nodes are not chunks with text. A pipeline with num_workers is refused, too.
        """
        with self._cache() as cache:
            grown = self.grow(nodes, cache)
        return list(grown.nodes)

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[BaseNode]:
        """As `__call__`, without blocking the event loop."""
        with self._cache() as cache:
            grown = await self.agrow(nodes, cache)
        return list(grown.nodes)

    @dispatcher.span
    def grow(
        self,
        nodes: Sequence[BaseNode],
        cache: Cache = NOTHING_KEPT,
        progress: Progress | None = None,
    ) -> Grown:
        """As `__call__`, and what it cost and how long it took.

        Parameters
        ----------
        nodes : Sequence[BaseNode]
        cache : Cache
            Knows what was embedded and written before, and keeps what is new; see `open_cache`.
        progress : Progress, optional
            In the place of the hierarchy's own.
        """
        return drive(self._begin(nodes, cache), self._models(cache), progress or self.progress)

    @dispatcher.span
    async def agrow(
        self,
        nodes: Sequence[BaseNode],
        cache: Cache = NOTHING_KEPT,
        progress: Progress | None = None,
    ) -> Grown:
        """As `grow`, without blocking the event loop."""
        growth, models = self._begin(nodes, cache), self._models(cache)
        return await adrive(growth, models, progress or self.progress)

    def rehearsal(self) -> Self:
        """The same hierarchy without a rewriting model: it counts what that would be asked."""
        rehearsal = self.model_copy()
        rehearsal._is_rehearsal = True
        rehearsal._summarizer = rehearsed(self._summarizer)
        return rehearsal

    def expected(self, chunks: Sequence[BaseNode]) -> tuple[Expected, Expected]:
        """The smallest and the largest tree that there may be over chunks, one at least.

        Arithmetic from the chunks' tokens; of a rehearsal also what the rewriting model would cost.
        """
        return expected_trees(chunks, self._recipe(), self._summarizer)

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """All that shapes the tree, with the models by name: no object, no address, no key."""
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
        embed_model: BaseEmbedding | None = None,
        summarizer: SummarizerLike = None,
        llm: LLM | None = None,
        metadata_rules: dict[str, Merge] | None = None,
        **kwargs: Any,
    ) -> Self:
        """The hierarchy that `to_dict` described; takes what a description cannot hold.

        Raises
        ------
        InputError
            If a language model or a rule is needed that was not given; names it.
        """
        data = {**data, **kwargs}
        rules = data.pop("metadata_rules", [])
        if missing := set(rules) - set(metadata_rules or {}):
            raise InputError(f"Pass metadata_rules= with rules for {sorted(missing)}.")
        name, described = data.pop("embed_model", None), data.pop("summarizer", {})
        data.pop("class_name", None)
        if summarizer is None:
            summarizer = summarizer_from_dict(described, llm)
        return cls(embed_model or name, summarizer, metadata_rules=metadata_rules or {}, **data)

    @abstractmethod
    def _groupers(self) -> list[Grouper]:
        """How levels are grouped, each until it is done."""

    def _caps(self) -> Caps:
        return Caps(self.max_tokens, self.max_children)

    def _by_mixture(self) -> ByMixture:
        return ByMixture(self.seed, self._caps(), self.mixture)

    def _begin(self, nodes: Sequence[BaseNode], cache: Cache) -> Growth:
        known = not self._compares_vectors or self.embedder.fingerprint is not None
        return grow_nodes(nodes, self._recipe(), cache.texts if known else None)

    def _cache(self) -> AbstractContextManager[Cache]:
        if self.cache is None:
            return nullcontext(NOTHING_KEPT)
        return open_cache(str(self.cache), fingerprint(self.embedder.embed_model))

    def _models(self, cache: Cache) -> Models:
        # Sentences are embedded without a memory, which would not know whose they are.
        resources = Resources(completions=cache.texts, embed=self.embedder.embed)
        return Models(self.embedder, self._summarizer, resources, cache.vectors)

    @property
    def _compares_vectors(self) -> bool:
        """Whether a summary's grounding may depend on the embedding model's vectors."""
        grounding = self._summarizer.to_dict().get("grounding")
        return grounding is not None and grounding.get("type") != "nli"

    def _recipe(self) -> Recipe:
        shaped_by: dict[str, Any] = {
            "summarizer": self._summarizer.to_dict(),
            "summary_tokens": self.summary_tokens,
            "counted_by": self.embedder.name,
        }
        if self._compares_vectors:
            shaped_by["compared_by"] = self.embedder.fingerprint
        return Recipe(
            method=self.method,
            groupers=self._groupers(),
            embedder=self.embedder,
            summarizer=self._summarizer.name,
            shaped_by=json.dumps(shaped_by, sort_keys=True),
            summary_tokens=self.summary_tokens,
            parent_embedding=self.parent_embedding,
            max_levels=self.max_levels,
            summarize_single_documents=self.method == "document",
            namespace=self.namespace,
            metadata_rules=self.metadata_rules,
            is_rehearsal=self._is_rehearsal,
        )


def _refuse_slices(hierarchy: Hierarchy) -> NoReturn:
    """Refuse to be sent to another process, as `IngestionPipeline.run(num_workers=2)` does.

    Each process would make one tree of its slice of the nodes. Only `multiprocessing` asks here;
    `pickle` and `copy` do not.
    """
    raise InputError(
        "A hierarchy needs all nodes at once, and IngestionPipeline with num_workers slices them; "
        "run the pipeline without num_workers, or make the hierarchy in the process that has all "
        "nodes."
    )
