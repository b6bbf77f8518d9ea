"""The three hierarchies, as the last transformation of any `IngestionPipeline`."""

from typing import ClassVar, Literal

from llama_index.core.bridge.pydantic import Field

from hierindex.core.groupers import ByDocument, ByMixture, BySegment
from hierindex.core.segments import Percentile, Rule, TargetSize
from hierindex.core.tree import Grouper
from hierindex.hierarchy.driver import Hierarchy

TARGET_SIZE = 6  # chunks to a segment


class SemanticHierarchy(Hierarchy):
    """Consecutive chunks of like meaning form a parent, level after level, up to the document.

    Documents are then grouped by mixture, up to one root. See `Hierarchy` for the other
    parameters and `segment` for the algorithm.

    Parameters
    ----------
    target_size : int
        Children of a parent on average; the weakest gaps of each document are cut.
    percentile : float, optional
        In its place: cut the gaps below this percentile of a document's similarities.
    """

    method: ClassVar[str] = "semantic"
    target_size: int = Field(default=TARGET_SIZE, ge=2)
    percentile: float | None = Field(default=None, ge=0, le=100)

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "SemanticHierarchy"

    def _groupers(self) -> list[Grouper]:
        if self.percentile is None:
            rule: Rule = TargetSize(self.target_size)
        else:
            rule = Percentile(self.percentile)
        return [BySegment(rule, self._caps()), ByMixture(self.seed, self._caps())]


class RaptorHierarchy(Hierarchy):
    """Near chunks anywhere form parents, softly: UMAP and Gaussian mixtures, level after level.

    See `Hierarchy` for the other parameters and `mixture` for the algorithm.

    Parameters
    ----------
    scope : {"corpus", "document"}
        Whether chunks of different documents may share a parent from the start, or only
        once each document is one node.
    """

    method: ClassVar[str] = "raptor"
    scope: Literal["corpus", "document"] = "corpus"

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "RaptorHierarchy"

    def _groupers(self) -> list[Grouper]:
        anywhere = ByMixture(self.seed, self._caps())
        if self.scope == "corpus":
            return [anywhere]
        return [ByMixture(self.seed, self._caps(), per_document=True), anywhere]


class DocumentHierarchy(Hierarchy):
    """All chunks of a document form one parent: an index of document summaries.

    The extract bounds what a summary reads, so a document may have any number of chunks.
    See `Hierarchy` for the other parameters.

    Parameters
    ----------
    group_documents : bool
        Whether documents are grouped by mixture above their summaries, up to one root.
    """

    method: ClassVar[str] = "document"
    group_documents: bool = True

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "DocumentHierarchy"

    def _groupers(self) -> list[Grouper]:
        above: list[Grouper] = [ByMixture(self.seed, self._caps())] if self.group_documents else []
        return [ByDocument(), *above]
