"""What determines a tree, and the requests to models that growing it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hierindex.core.tree import ByMixture, Grouper
from hierindex.embed.embedder import Embedder
from hierindex.hierarchy.nodes import Merge
from hierindex.summarize.summary import Budget, Group

ParentEmbedding = Literal["text", "mean"]


@dataclass(frozen=True)
class Embed:
    """A request for the unit vectors of texts, (n_texts, n_dims)."""

    texts: list[str]
    stage: str


@dataclass(frozen=True)
class Summarize:
    """A request for a list with one `Summary` per group."""

    groups: list[Group]
    budget: Budget
    stage: str


Work = Embed | Summarize


@dataclass(frozen=True)
class Recipe:
    """Everything that determines a tree, apart from its chunks."""

    method: str
    within: Sequence[Grouper]  # of nodes of one document
    across: Sequence[ByMixture]  # of nodes of any document
    embedder: Embedder
    summarizer: str  # name only
    shaped_by: str  # JSON of everything that determines a summary, apart from group and budget
    summary_tokens: int
    parent_embedding: ParentEmbedding
    max_levels: int | None
    summarize_single_documents: bool
    namespace: str
    metadata_rules: Mapping[str, Merge]
    is_rehearsal: bool  # an estimate: summaries are placeholders and are not cached

    @property
    def budget(self) -> Budget:
        """The token budget of a summary, capped by the embedding model's window."""
        embedder = self.embedder
        return Budget(min(self.summary_tokens, embedder.room), embedder.count_text_tokens)
