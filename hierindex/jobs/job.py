"""A job grows the parts of a tree, in this process or by an engine, publishes it, and reports."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from hierindex.cache import Cache, Readings, Vectors, open_cache
from hierindex.jobs.revision import (
    ChangedDocuments,
    Documents,
    Origin,
    ReadFiles,
    Revision,
    chunks_per_document,
    file_reader,
    kept_chunks,
)
from hierindex.jobs.settings import settings_of
from hierindex.models.record import Usage
from hierindex.node import Grounding, Node
from hierindex.progress import Progress, Stopwatch, silent
from hierindex.read.documents import FileContent, each_file
from hierindex.read.files import Skipped
from hierindex.read.split import sentence_splitter, split_documents
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.store.temporary_files import RowFile
from hierindex.tree.earlier import EarlierTree
from hierindex.tree.growth import (
    Leaves,
    Sink,
    grow_above,
    grow_documents,
    grow_pools,
    parted,
)
from hierindex.tree.hierarchy import Hierarchy
from hierindex.tree.levels import GrownPart, Growth, LevelStatistics
from hierindex.tree.recipe import Recipe
from hierindex.tree.titles import documents_alone

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.schema import Document


STAGES = ("load", "read", "split", "embed", "cluster", "summarize", "link", "write")
"""Stages in order; "load" loads the model and the index, "link" connects the nodes."""
OUTCOMES = ("added", "changed", "removed", "renamed", "unchanged")
"""Outcomes for documents; also names of fields of a report."""


@dataclass(frozen=True)
class Part:
    """Documents whose trees are grown together.

    Attributes
    ----------
    origins : Documents
        The documents, in order.
    held : Sequence[Node]
        Stored chunks of the documents that are not read again.
    read : Sequence[Document]
        The documents that are read.
    """

    origins: Documents
    held: Sequence[Node]
    read: "Sequence[Document]"


@dataclass(frozen=True)
class PartGrower:
    """Grows parts of a tree within one process.

    Attributes
    ----------
    hierarchy : Hierarchy
    splitter : NodeParser or None
    chunk_size : int or None
        Chunk size of the default splitter, if `splitter` is None.
    cache : Cache
    progress : Progress
    """

    hierarchy: Hierarchy
    splitter: "NodeParser | None"
    chunk_size: int | None
    cache: Cache
    progress: Progress

    @cached_property
    def recipe(self) -> Recipe:
        """The settings, models and caches of the trees."""
        return self.hierarchy.recipe(self.cache, self.progress)

    def chunks(self, part: Part) -> list[Node]:
        """Return the chunks of all documents of a part, in order, with their origins."""
        split = split_documents(part.read, self._splitter, progress=self.progress)
        chunks = [*part.held, *split]
        for chunk in chunks:
            origin = part.origins.get(chunk.documents[0], Origin())
            chunk.document_hash, chunk.read_from = origin
        place = {document: i for i, document in enumerate(part.origins)}
        return sorted(chunks, key=lambda chunk: place.get(chunk.documents[0], len(place)))

    def documents(self, part: Part) -> GrownPart:
        """Split, embed and summarise the documents of a part."""
        watch = Stopwatch()
        with watch("split"):
            chunks = self.chunks(part)
        grown = grow_documents(self.recipe, chunks, finish=True)
        grown.growth.watch.add(watch.seconds)
        return grown

    def pools(self, pools: Leaves) -> GrownPart:
        """Group pools of leaves; see `grow_pools`."""
        return grow_pools(self.recipe, pools)

    @cached_property
    def _splitter(self) -> "NodeParser":
        model = self.hierarchy.embedder.embed_model
        return self.splitter or sentence_splitter(model, self.chunk_size)


Map = Callable[[Callable[..., Any], Iterable[Any]], Iterator[Any]]
"""Yields what a method of `PartGrower` returns for each item, in order."""


class Workers(NamedTuple):
    """The workers that grow the parts of a tree.

    Attributes
    ----------
    map : Map
    grower : PartGrower
        The grower of this process, for the levels above the parts.
    n_parts : int
        About how many parts are grown at the same time.
    progress : Progress
        Reports parts that other processes have grown.
    """

    map: Map
    grower: PartGrower
    n_parts: int = 1
    progress: Progress = silent


Start = Callable[[PartGrower], AbstractContextManager[Workers]]
"""Starts workers that are like a `PartGrower`, for a `with` block."""


class AtWork(NamedTuple):
    """The running engine of one build: its cache, its file reader and the start of its workers."""

    cache: Cache
    read: ReadFiles
    start: Start


Engine = Callable[[Table, Progress], AbstractContextManager[AtWork]]
"""Reads the documents of an index and grows its tree, for a `with` block."""


@contextmanager
def start_here(grower: PartGrower) -> Iterator[Workers]:
    """Grow all parts in this process; see `Start`."""
    yield Workers(lambda method, items: map(partial(method, grower), items), grower)


@contextmanager
def in_this_process(table: Table, progress: Progress) -> Iterator[AtWork]:
    """Read files and grow trees in this process; see `Engine`."""
    with open_cache(table.uri) as cache:
        each = partial(each_file, progress=progress, memory=Readings(cache))
        with file_reader(table, each) as read:
            yield AtWork(cache, read, start_here)


@dataclass(frozen=True)
class Job:
    """A revision of an index, and everything needed to grow its tree.

    Attributes
    ----------
    revision : Revision
    table : Table
    snapshot : Snapshot
        Snapshot of the index before the revision.
    grower : PartGrower
        The grower of this process.
    watch : Stopwatch
    start : Start
        Starts the workers that grow the parts of the tree.
    purge : bool
        Whether to remove all earlier generations from the index.
    """

    revision: Revision
    table: Table
    snapshot: Snapshot
    grower: PartGrower
    watch: Stopwatch
    start: Start
    purge: bool = False
    part: ClassVar[int] = 10_000  # chunks, about, that are read and grown at once

    def parts(self, n_parts: int = 1) -> Iterator[Part]:
        """Yield the documents to grow a tree over in order, if possible in `n_parts` parts or more.

        These are the documents that were read. If the whole tree is grown again, the documents that
        the index keeps are included.
        """
        after, read = self.revision.after, {each.doc_id: each for each in self.revision.read}
        with self.watch("load"):
            kept = chunks_per_document(self.snapshot) if self.revision.anew else {}
        sizes = {d: read[d].n_chunks if d in read else kept.get(d, 0) for d in after}
        most = min(self.part, 1 + sum(sizes.values()) // n_parts)
        for documents in parted(sizes, sizes.__getitem__, most):
            with self.watch("load"):
                held = kept_chunks(self.snapshot, kept.keys() & documents - read.keys())
            loaded = [read[document].load() for document in documents if document in read]
            origins = {document: after[document] for document in documents}
            yield Part(origins, held, loaded)

    def earlier(self) -> EarlierTree | None:
        """Return the stored tree to update, or None if the whole tree is grown again."""
        revision = self.revision
        if revision.anew:
            return None
        changed = revision.before.keys() - revision.kept
        return EarlierTree(self.snapshot, changed, [*revision.after])

    def publish(self) -> "BuildReport":
        """Grow the tree and publish it as the next generation."""
        with RowFile(self.table.connection) as rows:
            grown = self._grown(rows)
            with self.watch("write"):
                self.grower.progress("write", 0, 1)
                generation = self._write(grown, rows)
                self.grower.progress("write", 1, 1)
        return reported(self.revision, grown, generation, self.watch)

    def estimate(self) -> "BuildReport":
        """Report what `publish` would do, from a tree with extracts instead of summaries.

        The chunks are embedded, and their vectors are cached for the job. The index is unchanged.
        """
        hierarchy, cache = self.grower.hierarchy, self.grower.cache
        chunks = [*chain.from_iterable(map(self.grower.chunks, self.parts()))]
        new = [chunk.embedded_text for chunk in chunks if chunk.vector is None]
        known = Vectors(cache, hierarchy.embedder.fingerprint).recall(new)
        n_tokens = hierarchy.embedder.count_tokens([text for text in new if text not in known])
        progress, earlier = self.grower.progress, self.earlier()
        grown = hierarchy.grow([chunks], cache, progress, earlier, is_rehearsal=True)
        report = reported(self.revision, grown, self.snapshot.generation, self.watch)
        n_chunks, total = len(n_tokens), int(n_tokens.sum())
        return replace(report, dry_run=True, embedded_chunks=n_chunks, embedded_tokens=total)

    def _grown(self, rows: RowFile) -> Growth:
        """Grow the tree; finished nodes are added to `rows`."""
        with self.start(self.grower) as workers, RowFile(self.table.connection) as waiting:

            def grown_parts() -> Iterator[GrownPart]:
                n_done = 0
                for grown in workers.map(PartGrower.documents, self.parts(workers.n_parts)):
                    n_done += len(documents_alone([*grown.growth.nodes, *grown.finished]))
                    workers.progress("grow documents", n_done, len(self.revision.read))
                    yield grown

            grow_pools = partial(workers.map, PartGrower.pools)
            aside = Sink(rows.add, waiting, self.part)
            recipe = workers.grower.recipe
            return grow_above(recipe, grown_parts(), self.earlier(), aside, grow_pools)

    def _write(self, grown: Growth, rows: RowFile) -> int:
        """Write the grown nodes and return the generation."""
        revision, reader, grower = self.revision, rows.reader(), self.grower
        settings = settings_of(grower.hierarchy, grower.splitter, grower.chunk_size)
        if not revision.read:  # with no splitter
            settings["splitter"] = revision.was.settings.get("splitter")
        report = revision.report(settings, grown.usage)
        if self.revision.anew:
            return self.table.replace(reader, report, purge=self.purge)
        changed = None if reader is None else reader.read_all()
        return self.table.revise(changed, grown.gone, report, purge=self.purge)


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
