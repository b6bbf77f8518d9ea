"""The settings and models that determine a tree."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from hierindex.cache import Cache, Texts, Vectors
from hierindex.core.arguments import Floats2d
from hierindex.core.tree import ByMixture, Grouper
from hierindex.models.embedder import Embedder, identity
from hierindex.node import Maker, Node
from hierindex.progress import Progress
from hierindex.summarize.summary import Budget, Group, Resources, Summarizer, Summary

if TYPE_CHECKING:
    from hierindex.tree.hierarchy import Hierarchy

ParentEmbedding = Literal["text", "mean"]
Merge = Callable[[list[Any]], Any]
"""Maps the children's values of one key, in order, to the parent's; None omits the key."""


@dataclass(frozen=True)
class Recipe:
    """Everything that determines a tree except its chunks: settings, models, and caches.

    Attributes
    ----------
    settings : Hierarchy
    within, across : sequence of Grouper
        Groupers of nodes of one document, and of nodes of any documents.
    summarizer : Summarizer
    cache : Cache
    progress : Progress
    is_rehearsal : bool
        Whether this is an estimate: summaries are placeholders and are not cached.
    """

    settings: "Hierarchy"
    within: Sequence[Grouper]
    across: Sequence[ByMixture]
    summarizer: Summarizer
    cache: Cache
    progress: Progress
    is_rehearsal: bool = False

    @property
    def embedder(self) -> Embedder:
        """The embedding model."""
        return self.settings.embedder

    @cached_property
    def resources(self) -> Resources:
        """What the summariser may use."""
        # The vector cache is not used for sentences: they belong to no one node.
        embed = None if self.is_rehearsal else self.embedder.embed
        completions, is_rehearsal = Texts(self.cache), self.is_rehearsal
        return Resources(completions=completions, embed=embed, is_rehearsal=is_rehearsal)

    @cached_property
    def texts(self) -> Texts:
        """The cache of summaries; keeps nothing if the model that checks them is unidentified."""
        is_known = not self._compares_vectors or self.embedder.fingerprint is not None
        return Texts(self.cache if is_known else Cache())

    @cached_property
    def shaped_by(self) -> str:
        """JSON of everything that determines a summary, except its group and budget."""
        shaped_by: dict[str, Any] = {
            "summarizer": self.summarizer.to_dict(),
            "summary_tokens": self.settings.summary_tokens,
            "counted_by": self.embedder.name,
        }
        if self._compares_vectors:
            shaped_by["compared_by"] = self.embedder.fingerprint
        return json.dumps(shaped_by, sort_keys=True)

    @property
    def _compares_vectors(self) -> bool:
        """Whether the embedding model is used to check summaries."""
        return "unsupported" in self.summarizer.to_dict()

    @cached_property
    def maker(self) -> Maker:
        """The `Maker` that is stored in the nodes."""
        name, settings = self.embedder.name, identity(self.embedder.embed_model)
        return Maker(self.settings.method, name, settings, self.summarizer.name)

    @property
    def budget(self) -> Budget:
        """The token budget of a summary, capped by the embedding model's window."""
        most = min(self.settings.summary_tokens, self.embedder.room)
        return Budget(most, self.embedder.count_text_tokens)

    def embed(self, nodes: Sequence[Node], stage: str) -> Floats2d:
        """Return the unit vectors of nodes, (n_nodes, n_dims)."""
        texts = {node.embedded_text: node.text for node in nodes}
        return self.embedder.embed(
            [node.embedded_text for node in nodes],
            progress=self._reporting(stage),
            memory=Vectors(self.cache, self.embedder.fingerprint, texts),
        )

    def summarize(self, groups: list[Group], stage: str) -> list[Summary]:
        """Return one summary for each group, in order."""
        self._reporting(stage)("", 0, len(groups))
        return self.summarizer.summarize(groups, self.budget, self.resources)

    def _reporting(self, stage: str) -> Progress:
        """Let the models report progress under the name of a stage."""

        def report(_: str, done: int, total: int, *cost: str) -> None:
            self.progress(stage, done, total, *cost)

        self.resources.progress = report
        return report
