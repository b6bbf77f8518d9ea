"""Reports of builds, updates and deletions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hierindex.core.statistics import LevelStatistics
from hierindex.jobs.changes import ChangedDocuments, Revision
from hierindex.models.record import Usage
from hierindex.node import Grounding
from hierindex.progress import Stopwatch, Timing
from hierindex.read.documents import FileContent
from hierindex.read.files import Skipped
from hierindex.tree.growth import Grown

STAGES = ("load", "read", "split", "embed", "cluster", "summarize", "link", "write")
"""Stages in order; "load" loads the model and the index, "link" connects the nodes."""
OUTCOMES = ("added", "changed", "removed", "renamed", "unchanged")
"""Of documents; names of fields of a report."""


@dataclass(frozen=True)
class BuildReport:
    """Result of a build, an update or a deletion, or of a dry run of one.

    `added`, `changed`, `removed`, `renamed` and `unchanged` count documents, and `names` has the
    ids of those that are not unchanged. `moved` has pairs of the old and the new path of sources
    that have moved. `grounding` is that of all summaries that a model wrote. `files` are those that
    were read. `seconds` are by stage, `timings` by stage and level, and `statistics` describe the
    groups of each level: of an update, those that were grouped again.
    An update that changes nothing publishes nothing: `generation` is the one before, and
    `statistics` is empty. If only sources have moved, their new paths are published.

    With `dry_run`, nothing was published and no language model was asked. `usage` is estimated from
    a tree whose summaries are extracts. These have other vectors and lengths than rewritten ones,
    which decide on groups and prompts above them, so the numbers are near those of the build but
    not exact; `completion_tokens` is an upper bound. `embedded_chunks` and `embedded_tokens` count
    the chunks whose vectors were not cached; they are 0 if it was no dry run.
    """

    generation: int
    added: int
    changed: int
    removed: int
    renamed: int
    unchanged: int
    names: ChangedDocuments
    moved: Sequence[tuple[str, str]]
    files: list[FileContent]
    skipped: list[Skipped]
    usage: Usage
    grounding: Grounding
    seconds: dict[str, float]
    timings: list[Timing]
    statistics: list[LevelStatistics]
    dry_run: bool = False
    embedded_chunks: int = 0
    embedded_tokens: int = 0

    def price(self, prompt: float, completion: float) -> float:
        """Return the price of the usage, given prices per million tokens."""
        used = self.usage
        return round((used.prompt_tokens * prompt + used.completion_tokens * completion) / 1e6, 4)

    def __str__(self) -> str:
        """Return the numbers of documents, nodes and requests on a few lines."""
        n_each = ", ".join(f"{getattr(self, outcome)} {outcome}" for outcome in OUTCOMES)
        n_nodes = ", ".join(f"{s.nodes} of level {s.level}" for s in self.statistics)
        usage = ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in asdict(self.usage).items())
        lines = [
            f"Generation {self.generation}, {self.seconds['total']:.1f} s",
            f"documents: {n_each}",
            f"nodes that were grouped: {n_nodes or 'none'}",
            *([f"language model: {usage}"] if any(asdict(self.usage).values()) else []),
            *([f"skipped files: {len(self.skipped)}"] if self.skipped else []),
        ]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the report as dicts, lists and numbers."""
        timings = [timing._asdict() for timing in self.timings]
        skipped = [each.to_json() for each in self.skipped]
        return {**asdict(self), "skipped": skipped, "timings": timings}


def reported(revision: Revision, grown: Grown, generation: int, watch: Stopwatch) -> BuildReport:
    """Return the report of a revision whose tree was published."""
    spent = dict[tuple[str, int | None], float]()
    for stage, level, seconds in (*watch.timings, *grown.timings):
        spent[stage, level] = spent.get((stage, level), 0.0) + seconds
    timings = [Timing(*key, seconds) for key, seconds in spent.items()]
    return BuildReport(
        generation=generation,
        **asdict(revision.changes),
        names=revision.names,
        moved=[*revision.moved.items()],
        files=[document.file for document in revision.read],
        skipped=[*revision.skipped],
        usage=grown.usage,
        grounding=grown.grounding,
        seconds=_by_stage(timings, watch.elapsed),
        timings=[
            timing._replace(seconds=round(timing.seconds, 3))
            for timing in sorted(timings, key=lambda timing: STAGES.index(timing.stage))
        ],
        statistics=grown.statistics,
    )


def nothing_changed(
    revision: Revision, generation: int, watch: Stopwatch, *, dry_run: bool = False
) -> BuildReport:
    """Return the report of a revision that leaves the tree as it is."""
    return BuildReport(
        generation=generation,
        **asdict(revision.changes),
        names=revision.names,
        moved=[*revision.moved.items()],
        files=[],
        skipped=[*revision.skipped],
        usage=Usage(),
        grounding=Grounding(),
        seconds=_by_stage(watch.timings, watch.elapsed),
        timings=watch.timings,
        statistics=[],
        dry_run=dry_run,
    )


def _by_stage(timings: Sequence[Timing], total: float) -> dict[str, float]:
    """Sum seconds over levels and add the total."""
    seconds = dict.fromkeys(STAGES, 0.0)
    for timing in timings:
        seconds[timing.stage] += timing.seconds
    return {stage: round(spent, 3) for stage, spent in {**seconds, "total": total}.items()}
