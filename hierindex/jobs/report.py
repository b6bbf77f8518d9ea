"""Reports of builds, updates and deletions."""

from dataclasses import asdict, dataclass
from typing import Any

from hierindex.jobs.revision import ChangedDocuments, Revision
from hierindex.models.record import Usage
from hierindex.node import Grounding
from hierindex.progress import Stopwatch
from hierindex.read.documents import FileContent
from hierindex.read.files import Skipped
from hierindex.tree.levels import Growth, LevelStatistics

STAGES = ("load", "read", "split", "embed", "cluster", "summarize", "link", "write")
"""Stages in order; "load" loads the model and the index, "link" connects the nodes."""
OUTCOMES = ("added", "changed", "removed", "renamed", "unchanged")
"""Outcomes for documents; also names of fields of a report."""


@dataclass(frozen=True)
class BuildReport:
    """Result of a build, an update or a deletion, or of a dry run.

    An update that changes nothing publishes nothing: `generation` stays the same, and `statistics`
    is empty.

    Attributes
    ----------
    generation : int
        Number of the newest generation.
    added, changed, removed, renamed, unchanged : int
        Counts of documents.
    names : ChangedDocuments
        Ids of the added, changed, removed and renamed documents.
    files : list of FileContent
        The files that were read.
    skipped : list of Skipped
        The files that were not indexed.
    usage : Usage
        Cost of the language model. In a dry run, an estimate from a tree of extractive summaries;
        it is close but not exact, and `completion_tokens` is an upper bound.
    grounding : Grounding
        How many of the sentences that a model wrote are supported.
    seconds : dict of str to float
        Time of each stage; the key "total" holds the elapsed time.
    statistics : list of LevelStatistics
        One per level; after an update, covering only the nodes that were grouped again.
    dry_run : bool
        True for an estimate: nothing was published and no language model was called.
    embedded_chunks, embedded_tokens : int
        In a dry run, the chunks that had no cached vector, and their tokens; otherwise 0.
    """

    generation: int
    added: int
    changed: int
    removed: int
    renamed: int
    unchanged: int
    names: ChangedDocuments
    files: list[FileContent]
    skipped: list[Skipped]
    usage: Usage
    grounding: Grounding
    seconds: dict[str, float]
    statistics: list[LevelStatistics]
    dry_run: bool = False
    embedded_chunks: int = 0
    embedded_tokens: int = 0

    def price(self, prompt: float, completion: float) -> float:
        """Return the price of `usage`, given prices per million prompt and completion tokens."""
        used = self.usage
        return round((used.prompt_tokens * prompt + used.completion_tokens * completion) / 1e6, 4)

    def __str__(self) -> str:
        """Return the counts of documents and nodes on a few lines."""
        n_each = ", ".join(f"{getattr(self, outcome)} {outcome}" for outcome in OUTCOMES)
        n_nodes = ", ".join(f"{s.nodes} of level {s.level}" for s in self.statistics)
        head = f"Generation {self.generation}, {self.seconds['total']:.1f} s"
        if self.dry_run:
            head = f"Dry run, {self.embedded_chunks} chunks to embed"
        return (
            f"{head}\ndocuments: {n_each}\nskipped files: {len(self.skipped)}\n"
            f"nodes that were grouped: {n_nodes or 'none'}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the report as a dict for `json.dumps`."""
        skipped = [each.to_json() for each in self.skipped]
        return {**asdict(self), "skipped": skipped}


def reported(revision: Revision, grown: Growth, generation: int, watch: Stopwatch) -> BuildReport:
    """Return the report of a revision and of the tree that was grown for it."""
    watch.add(grown.watch.seconds)
    seconds = {stage: watch.seconds.get(stage, 0.0) for stage in STAGES} | {"total": watch.elapsed}
    return BuildReport(
        generation=generation,
        **revision.changes,  # type: ignore[arg-type]
        names=revision.names,
        files=[document.file for document in revision.read],
        skipped=[*revision.skipped],
        usage=grown.usage,
        grounding=grown.grounding,
        seconds={stage: round(spent, 3) for stage, spent in seconds.items()},
        statistics=grown.statistics,
    )
