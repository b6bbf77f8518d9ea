"""Documents to a published tree."""

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
from hierindex.core.statistics import LevelStatistics
from hierindex.embed.embedder import fingerprint
from hierindex.errors import FormatError, InputError, SourceError
from hierindex.hierarchy.hierarchy import Hierarchy
from hierindex.llm.usage import Usage
from hierindex.progress import Progress
from hierindex.read import Skipped, read_documents, well_formed
from hierindex.record import NodeRecord
from hierindex.split import sentence_splitter, split_documents
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import wait_for
from hierindex.timing import Stopwatch, Timing

STAGES = ("read", "load", "split", "embed", "cluster", "summarize", "link", "write")
"""Of a build, in the order of the data; "load" is that of the model and the index, "link" that
of the nodes."""

Source = str | Path | Document


@dataclass(frozen=True)
class BuildReport:
    """What a build did.

    Documents by what became of them, models' usage, the mean grounding of the summaries that a
    model wrote (None where there are none), seconds by stage and by stage and level, and each
    level of the tree with how well it is grouped.
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
        """The same as plain dictionaries, lists and numbers."""
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
    """Read, split, grow, write: the store's documents become those of the sources.

    What the store holds of the same texts, made in the same way, is used again. Nothing is
    written before the tree is whole.

    Raises
    ------
    SourceError
        If there is nothing to index, or two documents have the same id.
    """
    progress = progress or hierarchy.progress
    _check_writable(store.uri)
    started, watch = time.perf_counter(), Stopwatch()
    documents, skipped, chunks = read_and_split(
        sources, hierarchy, splitter, chunk_size, progress, watch
    )
    with watch("load"):
        before, held = _held(store)
    hashes = {document.doc_id: document.hash for document in documents}
    difference = _difference(held, before, hashes)
    with open_cache(store.uri, fingerprint(hierarchy.embedder.embed_model)) as cache:
        cache.begin(hashes.values())
        grown = hierarchy.grow(chunks, cache, progress)
        with watch("write"):
            kept = {"documents": hashes, "usage": asdict(grown.usage)}
            generation = store.replace(grown.nodes, kept)
            gone = bool(difference["changed"] or difference["removed"])
            cache.forget_the_rest(something_is_gone=gone)
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


def read_and_split(
    sources: Source | Sequence[Source],
    hierarchy: Hierarchy,
    splitter: NodeParser | None,
    chunk_size: int | None,
    progress: Progress,
    watch: Stopwatch,
) -> tuple[list[Document], list[Skipped], list[BaseNode]]:
    """The documents of the sources, what was skipped and why, and the documents' chunks."""
    sources = [sources] if isinstance(sources, str | Path | Document) else sources
    with watch("read"):
        documents, skipped = _documents(sources, progress)
    with watch("load"):
        embed_model = hierarchy.embedder.embed_model
    with watch("split"):
        own = splitter or sentence_splitter(embed_model, chunk_size)
        chunks = split_documents(documents, own, progress=progress)
    return documents, skipped, chunks


def _held(store: HierarchyStore) -> tuple[dict[str, str], set[str]]:
    """Hashes of the documents that an index was built of, and the documents it holds."""
    try:
        snapshot = store.snapshot()
    except FormatError:  # to be replaced
        return {}, set()
    held = {d for row in wait_for(snapshot.columns("documents"))["documents"] for d in row}
    return snapshot.report().get("documents", {}), held


def _grounding(nodes: Sequence[BaseNode]) -> float | None:
    """Mean share of supported sentences over the summaries that a model wrote."""
    records = [NodeRecord.from_metadata(node.metadata) for node in nodes]
    shares = [r.grounding for r in records if r.kind == "abstractive" and r.grounding is not None]
    return round(fmean(shares), 3) if shares else None


def _by_stage(timings: Sequence[Timing], total: float) -> dict[str, float]:
    """Seconds of each stage over all levels, and from beginning to end."""
    seconds = dict.fromkeys(STAGES, 0.0)
    for timing in timings:
        seconds[timing.stage] += timing.seconds
    return {stage: round(spent, 3) for stage, spent in {**seconds, "total": total}.items()}


def _documents(
    sources: Sequence[Source], progress: Progress
) -> tuple[list[Document], list[Skipped]]:
    paths = [source for source in sources if not isinstance(source, Document)]
    given = [well_formed(source) for source in sources if isinstance(source, Document)]
    blank = [Skipped(d.doc_id, "holds only blanks") for d in given if not d.text.strip()]
    given = [document for document in given if document.text.strip()]
    read, skipped = read_documents(*paths, progress=progress) if paths or not given else ([], [])
    documents = [*read, *given]
    repeated = [d for d, n in Counter(d.doc_id for d in documents).items() if n > 1]
    if repeated:
        raise SourceError(f"Two documents have the id {repeated[0]!r}; ids must differ.")
    return documents, [*skipped, *blank]


def _check_writable(uri: str) -> None:
    """Refuse a folder that could not be written to after all the work."""
    if "://" in uri:
        return
    folder = Path(uri).absolute()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise InputError(
            f"The index folder {uri!r} cannot be written: {nearest} does not allow it."
        )


def _difference(held: set[str], before: dict[str, str], after: dict[str, str]) -> dict[str, int]:
    """Numbers of documents by what became of them; those without a known hash have changed."""
    both = held & after.keys()
    changed = sum(before.get(document) != after[document] for document in both)
    return {
        "added": len(after) - len(both),
        "changed": changed,
        "removed": len(held) - len(both),
        "unchanged": len(both) - changed,
    }
