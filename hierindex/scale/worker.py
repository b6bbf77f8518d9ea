"""What runs on the machines of a cluster: reading of files, and growing of trees."""

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from hierindex.cache.values import Readings
from hierindex.errors import FallbackWarning, WindowWarning
from hierindex.jobs.job import Part
from hierindex.jobs.reading import ReadDocument
from hierindex.progress import silent
from hierindex.read.documents import FileContent, Skipped, each_file
from hierindex.read.files import File
from hierindex.read.split import sentence_splitter
from hierindex.scale.cluster import check_code, in_turn, result_of
from hierindex.scale.setup import Setup
from hierindex.store.fragments import Fragments, Written
from hierindex.store.rows import row_of
from hierindex.store.waiting import LeafFile
from hierindex.tree.growth import Aside, Grown
from hierindex.tree.hierarchy import Hierarchy
from hierindex.tree.levels import GrownPart
from hierindex.tree.pools import GrownPools, PoolRows

if TYPE_CHECKING:
    from llama_index.core.schema import Document

Described = Skipped | tuple[str, str, int, FileContent]
"""A file that is skipped, or what a `ReadDocument` tells of a document that is read."""
REPORTED = FallbackWarning, WindowWarning


Warned = Sequence[tuple[type[Warning], str]]
"""What a worker has warned of."""


class Done(NamedTuple):
    """The files that a worker has written, and what it has warned of."""

    written: Written
    warnings: Warned


class Worker:
    """The actor that grows trees, with models that it loads once."""

    def __init__(self) -> None:
        self._hierarchy: Hierarchy | None = None
        self._loading = Lock()  # as calls run side by side
        self._said: list[tuple[type[Warning], str]] = []
        self._noting = Lock()
        warnings.simplefilter("always")
        warnings.showwarning = self._note

    def check(self, code: str) -> None:
        """Raise InputError if this process has other code than the one that started a build."""
        check_code(code)

    def load(self, setup: Setup) -> None:
        """Load the models of a build; see `Setup.loaded`."""
        self._loaded(setup)

    def grow(self, setup: Setup, part: Part) -> tuple[GrownPart, Done]:
        """Read, split, embed and summarise the documents of a part, and write finished nodes."""
        hierarchy = self._loaded(setup)
        splitter = sentence_splitter(hierarchy.embedder.embed_model, setup.chunk_size)
        chunks = part.chunks(splitter, silent, Readings(setup.cache))
        grown = hierarchy.grower(setup.cache, silent).documents(chunks, finish=True)
        written = setup.place.write(map(row_of, grown.finished))
        return replace(grown, finished=()), self._done(written)

    def pools(self, setup: Setup, pools: PoolRows) -> tuple[GrownPools, Warned]:
        """Grow the pools of a batch; see `GrowPools`."""
        grown = self._loaded(setup).grower(setup.cache, silent).pools(pools)
        return grown, self._warned()

    def above(
        self, setup: Setup, trees: Sequence[Any], workers: Sequence[Any]
    ) -> tuple[Grown, Done]:
        """Grow the levels above the trees of documents, given by reference, and write all nodes.

        Pools of leaves grow in all workers.
        """
        hierarchy, rows = self._loaded(setup), Fragments(setup.place)
        grower = hierarchy.grower(setup.cache, setup.progress)
        with LeafFile(setup.place.connection) as waiting:
            aside = Aside(rows.add, waiting, setup.part)
            grow = partial(self._in_workers, setup, workers)
            grown = grower.above(map(result_of, trees), aside=aside, grow=grow)
        return grown, self._done(rows.written)

    def _in_workers(
        self, setup: Setup, workers: Sequence[Any], batches: Iterable[PoolRows]
    ) -> Iterator[GrownPools]:
        """Grow pools in workers; see `GrowPools`."""
        import ray

        shared = ray.put(setup)
        found = in_turn(
            workers,
            ([[*pool] for pool in pools] for pools in batches),
            lambda worker, pools: worker.pools.options(num_returns=2).remote(shared, pools),
        )
        for grown, warned in found:
            for category, message in result_of(warned):
                self._note(message, category)
            yield result_of(grown)

    def _loaded(self, setup: Setup) -> Hierarchy:
        with self._loading:
            if self._hierarchy is None:  # also after another process has died in its place
                self._hierarchy = setup.loaded()
            return self._hierarchy

    def _note(
        self, message: Warning | str, category: type[Warning], *where: object, **more: object
    ) -> None:
        """Note a warning in place of showing it; see `warnings.showwarning`."""
        if issubclass(category, REPORTED):
            with self._noting:
                self._said.append((category, str(message)))

    def _done(self, written: Written) -> Done:
        return Done(written, self._warned())

    def _warned(self) -> Warned:
        """Return the warnings since the last time, each once."""
        with self._noting:
            said, self._said = self._said, []
        return [*dict.fromkeys(said)]


def read(
    files: Mapping[str, File], memory: Readings | None
) -> tuple[dict[str, list[Described]], dict[str, str]]:
    """Read files by document id; return what is in each, and the documents as JSON."""
    described, documents = dict[str, list[Described]](), dict[str, str]()
    for file, inside in each_file(files, memory=memory):
        described[file] = [
            each if isinstance(each, Skipped) else ReadDocument.of(each)[:-1] for each in inside
        ]
        for each in inside:
            if not isinstance(each, Skipped):
                documents[each.doc_id] = json.dumps(each.to_dict(), ensure_ascii=False)
    return described, documents


def load_document(documents: Any, document_id: str) -> "Document":
    """Return one of the documents that a reference of Ray stands for."""
    from llama_index.core.schema import Document

    return Document.from_dict(json.loads(_texts(documents)[document_id]))


@lru_cache(maxsize=4)
def _texts(documents: Any) -> Mapping[str, str]:
    found: Mapping[str, str] = result_of(documents)
    return found
