"""The three hierarchies, each usable as the last step of an `IngestionPipeline`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from llama_index.core.bridge.pydantic import field_serializer, field_validator

from hierindex.core.optimal import Optimal
from hierindex.core.segments import GAP_RULES, Rule
from hierindex.core.tree import ByDocument, ByMixture, BySegment, Grouper
from hierindex.errors import InputError
from hierindex.tree.hierarchy import Hierarchy

RULES = {rule.__name__: rule for rule in (*GAP_RULES, Optimal)}
SEGMENTS = Optimal(rows=6)


class SemanticHierarchy(Hierarchy):
    """A hierarchy that groups similar consecutive chunks until each document is one node.

    Groups tend to end where sections end, see `Optimal`. Documents are then clustered, level by
    level, up to a single root, see `Mixture`. See `Hierarchy` for the other parameters.

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
    See `Mixture` for these settings and `Hierarchy` for the other parameters. Similar chunks share
    a group wherever they are; sections of documents only decide where chunks end.

    Parameters
    ----------
    scope : {"corpus", "document"}
        "corpus" (the default) clusters the chunks of all documents together. "document" first
        clusters the chunks of each document, until it is one node.
    """

    method: ClassVar[str] = "raptor"
    scope: Literal["corpus", "document"] = "corpus"

    def _groupers(self) -> tuple[Sequence[Grouper], Sequence[ByMixture]]:
        anywhere = self._by_mixture()
        within = [replace(anywhere, per_document=True)] if self.scope == "document" else []
        return within, [anywhere]


class DocumentHierarchy(Hierarchy):
    """A hierarchy with one summary per document, of any number of chunks and sections.

    See `Hierarchy` for the other parameters.

    Parameters
    ----------
    group_documents : bool
        Whether to cluster the document summaries up to a single root. True by default.
    """

    method: ClassVar[str] = "document"
    group_documents: bool = True

    def _groupers(self) -> tuple[Sequence[Grouper], Sequence[ByMixture]]:
        return [ByDocument()], [self._by_mixture()] if self.group_documents else []
