"""Building: reads and splits sources, grows the tree and publishes it."""

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from llama_index.core.node_parser import NodeParser
from llama_index.core.schema import BaseNode, Document

from hierindex.cache.file import open_cache
from hierindex.cache.readings import ReadingCache
from hierindex.core.statistics import LevelStatistics
from hierindex.embed.model_identity import fingerprint
from hierindex.errors import FormatError, InputError, SourceError
from hierindex.hierarchy.hierarchy import Hierarchy
from hierindex.llm.usage import Usage
from hierindex.progress import Progress
from hierindex.read.documents import Skipped, check_source, read_documents, well_formed
from hierindex.read.split import sentence_splitter, split_documents
from hierindex.record import MODIFIED, NodeRecord
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import wait_for
from hierindex.timing import Stopwatch, Timing

STAGES = ("load", "read", "split", "embed", "cluster", "summarize", "link", "write")
"""Stages of a build in order; "load" loads the model and the index, "link" connects the nodes."""

Source = str | Path | Document


@dataclass(frozen=True)
class BuildReport:
    """Result of a build.

    `added`, `changed`, `removed` and `unchanged` count documents. `grounding` is the mean of the
    summaries that a model wrote, None if it wrote none. `seconds` are by stage, `timings` by
    stage and level, and `statistics` describe the groups of each level.
    """

    generation: int
    added: int
    changed: int
    removed: int
    unchanged: int
    skipped: list[Skipped]
    usage: Usage
    grounding: float | None
    seconds: dict[str, float]
    timings: list[Timing]
    statistics: list[LevelStatistics]

    def to_json(self) -> dict[str, Any]:
        """Return the report as dicts, lists and numbers."""
        timings = [timing._asdict() for timing in self.timings]
        return {**asdict(self), "timings": timings}


def build_tree(
    sources: Source | Sequence[Source],
    store: HierarchyStore,
    hierarchy: Hierarchy,
    *,
    splitter: NodeParser | None,
    chunk_size: int | None,
    progress: Progress | None,
) -> BuildReport:
    """Build a tree over sources and publish it in place of the store's; see `HierarchicalIndex`.

    Raises
    ------
    SourceError
        If there is nothing to index, or two documents have the same id.
    """
    progress = progress or hierarchy.progress
    _check_writable(store.uri)
    started, watch = time.perf_counter(), Stopwatch()
    sources = checked(sources)
    with watch("load"):
        model = fingerprint(hierarchy.embedder.embed_model)
        old_hashes, held = _held(store)
    with open_cache(store.uri, model) as cache:
        documents, skipped, chunks = read_and_split(
            sources, hierarchy, splitter, chunk_size, cache.readings, progress, watch
        )
        hashes = {document.doc_id: _hash(document) for document in documents}
        difference = _difference(held, old_hashes, hashes)
        cache.begin(hashes.values())
        grown = hierarchy.grow(chunks, cache, progress)
        with watch("write"):
            details = {"documents": hashes, "usage": asdict(grown.usage)}
            generation = store.replace(grown.nodes, details)
            something_is_gone = bool(difference["changed"] or difference["removed"])
            cache.forget_the_rest(something_is_gone=something_is_gone)
    timings = sorted([*watch.timings, *grown.timings], key=lambda t: STAGES.index(t.stage))
    return BuildReport(
        generation=generation,
        **difference,
        skipped=skipped,
        usage=grown.usage,
        grounding=_grounding(grown.nodes),
        seconds=_by_stage(timings, time.perf_counter() - started),
        timings=[timing._replace(seconds=round(timing.seconds, 3)) for timing in timings],
        statistics=grown.statistics,
    )


def checked(sources: Source | Sequence[Source]) -> Sequence[Source]:
    """Return the sources as a sequence, checked as far as possible without reading files.

    Raises
    ------
    SourceError
        If one of them does not exist, two documents have the same id, or all are blank.
    """
    sources = [sources] if isinstance(sources, str | Path | Document) else sources
    given = [source for source in sources if isinstance(source, Document)]
    for source in sources:
        if not isinstance(source, Document):
            check_source(source)
    if len(given) == len(sources) and not any(document.text.strip() for document in given):
        raise SourceError("Nothing to index: there is no document with text.")
    _check_ids(given)
    return sources


def read_and_split(
    sources: Sequence[Source],
    hierarchy: Hierarchy,
    splitter: NodeParser | None,
    chunk_size: int | None,
    memory: ReadingCache | None,
    progress: Progress,
    watch: Stopwatch,
) -> tuple[list[Document], list[Skipped], list[BaseNode]]:
    """Return the documents of the sources, the skipped sources with reasons, and the chunks."""
    with watch("read"):
        documents, skipped = _documents(sources, memory, progress)
    with watch("split"):
        splitter = splitter or sentence_splitter(hierarchy.embedder.embed_model, chunk_size)
        chunks = split_documents(documents, splitter, progress=progress, memory=memory)
    return documents, skipped, chunks


def _held(store: HierarchyStore) -> tuple[dict[str, str], set[str]]:
    """Return the hashes of the last build's documents, and the documents in the index."""
    try:
        snapshot = store.snapshot()
    except FormatError:  # the build replaces it
        return {}, set()
    held = {d for row in wait_for(snapshot.columns("documents"))["documents"] for d in row}
    return snapshot.report().get("documents", {}), held


def _grounding(nodes: Sequence[BaseNode]) -> float | None:
    """Return the mean share of supported sentences in abstractive summaries."""
    records = [NodeRecord.from_metadata(node.metadata) for node in nodes]
    shares = [r.grounding for r in records if r.kind == "abstractive" and r.grounding is not None]
    return round(fmean(shares), 3) if shares else None


def _by_stage(timings: Sequence[Timing], total: float) -> dict[str, float]:
    """Sum seconds over levels and add the total."""
    seconds = dict.fromkeys(STAGES, 0.0)
    for timing in timings:
        seconds[timing.stage] += timing.seconds
    return {stage: round(spent, 3) for stage, spent in {**seconds, "total": total}.items()}


def _documents(
    sources: Sequence[Source], memory: ReadingCache | None, progress: Progress
) -> tuple[list[Document], list[Skipped]]:
    paths = [source for source in sources if not isinstance(source, Document)]
    given = [well_formed(source) for source in sources if isinstance(source, Document)]
    blank = [Skipped(d.doc_id, "contains only white space") for d in given if not d.text.strip()]
    given = [document for document in given if document.text.strip()]
    read, skipped = list[Document](), list[Skipped]()
    if paths:
        read, skipped = read_documents(*paths, progress=progress, memory=memory)
    documents = [*read, *given]
    _check_ids(documents)
    return documents, [*skipped, *blank]


def _check_ids(documents: Sequence[Document]) -> None:
    repeated = [d for d, n in Counter(d.doc_id for d in documents).items() if n > 1]
    if repeated:
        raise SourceError(f"Two documents have the id {repeated[0]!r}; ids must be unique.")


def _hash(document: Document) -> str:
    """Return a document's hash, which does not depend on when its file was last modified."""
    metadata = {key: value for key, value in document.metadata.items() if key != MODIFIED}
    return document.model_copy(update={"metadata": metadata}).hash


def _check_writable(uri: str) -> None:
    """Raise InputError before any work if the folder is not writable."""
    if "://" in uri:
        return
    folder = Path(uri).absolute()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise InputError(
            f"The index folder {uri!r} cannot be written: {nearest} is not a writable folder."
        )


def _difference(held: set[str], before: dict[str, str], after: dict[str, str]) -> dict[str, int]:
    """Count documents by outcome; a document without a known hash has changed."""
    both = held & after.keys()
    changed = sum(before.get(document) != after[document] for document in both)
    return {
        "added": len(after) - len(both),
        "changed": changed,
        "removed": len(held) - len(both),
        "unchanged": len(both) - changed,
    }
