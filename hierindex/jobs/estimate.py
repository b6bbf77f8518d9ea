"""Estimates of what a build, an update or a deletion would cost."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any

from hierindex.cache import Vectors
from hierindex.jobs.changes import ChangedDocuments, Revision
from hierindex.jobs.job import Job
from hierindex.progress import Stopwatch
from hierindex.read.documents import Skipped
from hierindex.store.table import Table


@dataclass(frozen=True)
class Estimate:
    """The estimated requests to a language model.

    The tree is grown with extracts in the place of rewritten summaries. These have other vectors
    and lengths, which decide on groups and prompts above them, so that the numbers are near those
    of the build but not exact.

    `levels` has the number of nodes of each level, in an update of those that are grouped again.
    `completion_tokens` is an upper bound, and `cached_summaries` cost nothing.
    `embedded_chunks` and `embedded_tokens` count the chunks whose vectors are not cached, and
    `documents` those that would be added, changed, removed, renamed and unchanged; `names` has the
    ids of all but the unchanged, `moved` pairs of the old and the new path of sources that have
    moved, and `skipped` the files that would be left out.
    """

    levels: list[dict[str, int]]
    llm_calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_summaries: int
    embedded_chunks: int = 0
    embedded_tokens: int = 0
    documents: dict[str, int] = field(default_factory=dict)
    names: ChangedDocuments = field(default_factory=ChangedDocuments)
    moved: Sequence[tuple[str, str]] = ()
    skipped: list[Skipped] = field(default_factory=list)

    def price(self, prompt: float, completion: float) -> float:
        """Return the maximum price, given prices per million tokens."""
        return round((self.prompt_tokens * prompt + self.completion_tokens * completion) / 1e6, 4)

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as plain dictionaries, lists and numbers."""
        return {**asdict(self), "skipped": [each.to_json() for each in self.skipped]}


def estimated(job: Job) -> Estimate:
    """Estimate the cost of a job by growing its tree with placeholders for summaries.

    The chunks are embedded, and their vectors are cached for the job. The index stays as it is.
    """
    rehearsal, chunks = job.hierarchy.rehearsal(), [*chain.from_iterable(job.chunks())]
    new = [chunk.embedded_text for chunk in chunks if chunk.vector is None]
    known = Vectors(job.cache, job.hierarchy.embedder.fingerprint).recall(new)
    n_tokens = job.hierarchy.embedder.count_tokens([text for text in new if text not in known])
    grown = rehearsal.grow([chunks], job.cache, job.progress, job.earlier())
    return Estimate(
        levels=[{"level": level.level, "nodes": level.nodes} for level in grown.statistics],
        llm_calls=grown.usage.llm_calls,
        prompt_tokens=grown.usage.prompt_tokens,
        completion_tokens=grown.usage.completion_tokens,
        cached_summaries=grown.usage.cached_summaries,
        embedded_chunks=len(n_tokens),
        embedded_tokens=int(n_tokens.sum()),
        **_changes(job.revision),
    )


def costs_nothing(revision: Revision, table: Table, watch: Stopwatch) -> Estimate:
    """Return the estimate of an update that changes nothing."""
    return Estimate([], 0, 0, 0, 0, **_changes(revision))


def _changes(revision: Revision) -> dict[str, Any]:
    return {
        "documents": asdict(revision.changes),
        "names": revision.names,
        "moved": [*revision.moved.items()],
        "skipped": [*revision.skipped],
    }
