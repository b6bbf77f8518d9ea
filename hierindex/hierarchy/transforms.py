"""The three hierarchies, as the last transformation of any `IngestionPipeline`."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from llama_index.core.bridge.pydantic import field_serializer, field_validator

from hierindex.core.breakpoints import GAP_RULES
from hierindex.core.groupers import ByDocument, BySegment
from hierindex.core.optimal import Optimal
from hierindex.core.segments import Rule
from hierindex.core.tree import Grouper
from hierindex.errors import InputError
from hierindex.hierarchy.hierarchy import Hierarchy

RULES = {rule.__name__: rule for rule in (*GAP_RULES, Optimal)}
# Six chunks to a segment, as RAPTOR's parents have 6.7 children. Within the caps, on chunks of
# 128 tokens, against the weakest gaps (TargetSize(6)), those over windows of three, and equal cuts:
# Pk to the sections of tech_books 0.399, 0.465, 0.449, 0.511 and to the topics of qmsum 0.566,
# 0.565, 0.542, 0.607 (lower is better); mean cosine to the centroid 0.783, 0.757, 0.756, 0.758
# and 0.779, 0.756, 0.755, 0.756 (tests/benchmarks/clustering_quality.py).
SEGMENTS = Optimal(rows=6)


class SemanticHierarchy(Hierarchy):
    """Consecutive chunks of like meaning form a parent, level after level, up to the document.

    Documents are then grouped by mixture, up to one root. See `Hierarchy` for the other
    parameters and `segment` for the algorithm.

    Parameters
    ----------
    rule : Rule
        Where a document is cut: `Optimal`, by default six children to a parent on average,
        `TargetSize`, `Percentile`, `StandardDeviation`, `Interquartile`, `Gradient`, `Cosine`,
        or a rule of your own.
    """

    method: ClassVar[str] = "semantic"
    rule: Rule = SEGMENTS

    @classmethod
    def class_name(cls) -> str:
        """Name under which LlamaIndex serialises it."""
        return "SemanticHierarchy"

    @field_serializer("rule")
    def _described(self, rule: Rule) -> dict[str, Any]:
        kind, fields = type(rule), getattr(rule, "__dict__", {})
        if RULES.get(kind.__name__) is not kind:  # one's own, which only its owner can make again
            return {"class_name": f"{kind.__module__}.{kind.__qualname__}", "fields": repr(fields)}
        plain = {k: v.item() if isinstance(v, np.generic) else v for k, v in fields.items()}
        return {"class_name": kind.__name__, **plain}

    @field_validator("rule", mode="before")
    @classmethod
    def _made(cls, rule: Any) -> Any:
        if isinstance(rule, Rule) and not isinstance(rule, type):
            return rule
        fields = {**rule} if isinstance(rule, dict) else {}
        name = str(fields.pop("class_name", None))
        if name not in RULES:
            raise InputError(
                f"it must be one of {', '.join(RULES)}, or pass rule= with your own, got {rule!r}."
            )
        try:
            return RULES[name](**fields)
        except TypeError:
            raise InputError(f"{name} cannot be made of {fields}.") from None

    def _groupers(self) -> list[Grouper]:
        return [BySegment(self.rule, self._caps()), self._by_mixture()]


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
        anywhere = self._by_mixture()
        if self.scope == "corpus":
            return [anywhere]
        return [replace(anywhere, per_document=True), anywhere]


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
        return [ByDocument(), *([self._by_mixture()] if self.group_documents else [])]
