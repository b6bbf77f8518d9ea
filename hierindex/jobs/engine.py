"""What reads files and grows parts of a tree: this process, or others as well."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from hierindex.cache import Cache, Readings, open_cache
from hierindex.jobs.changes import Documents, Origin
from hierindex.jobs.reading import ReadFiles, file_reader
from hierindex.node import Node
from hierindex.progress import Progress, Stopwatch, silent
from hierindex.read.documents import each_file
from hierindex.read.split import sentence_splitter, split_documents
from hierindex.store.table import Table
from hierindex.tree.growth import Grower
from hierindex.tree.hierarchy import Hierarchy
from hierindex.tree.levels import GrownPart
from hierindex.tree.pools import GrownPools, PoolRows, grow_pools

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.schema import Document

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class Part:
    """Documents whose trees are grown at once.

    Attributes
    ----------
    origins : Documents
        Of these documents, in their order.
    held : Sequence[Node]
        The chunks that an index holds of some of them.
    read : Sequence[Document]
        The others.
    n_before, n_read : int
        Number of documents that are read in the parts before, and in all parts.
    """

    origins: Documents
    held: Sequence[Node]
    read: "Sequence[Document]"
    n_before: int
    n_read: int


@dataclass(frozen=True)
class PartGrower:
    """Grows parts of a tree, with what one process needs for it.

    Attributes
    ----------
    hierarchy : Hierarchy
    splitter : NodeParser or None
    chunk_size : int or None
        Of the splitter, if there is none.
    cache : Cache
    progress : Progress
    """

    hierarchy: Hierarchy
    splitter: "NodeParser | None"
    chunk_size: int | None
    cache: Cache
    progress: Progress

    @cached_property
    def grower(self) -> Grower:
        """What grows trees over chunks."""
        return self.hierarchy.grower(self.cache, self.progress)

    def chunks(self, part: Part) -> list[Node]:
        """Return the chunks of all documents of a part, in their order, with their origins."""

        def progress(stage: str, done: int, total: int, cost: str = "", /) -> None:
            self.progress(stage, part.n_before + done, part.n_read)

        memory = Readings(self.cache)
        split = split_documents(part.read, self._splitter, progress=progress, memory=memory)
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
        grown = self.grower.documents(chunks, finish=True)
        return replace(grown, timings=[*watch.timings, *grown.timings])

    def pools(self, pools: PoolRows) -> GrownPools:
        """Group pools of leaves; see `grow_pools`."""
        return grow_pools(self.grower.recipe, pools)

    @cached_property
    def _splitter(self) -> "NodeParser":
        model = self.hierarchy.embedder.embed_model
        return self.splitter or sentence_splitter(model, self.chunk_size)


class Map(Protocol):
    """Maps a method of `PartGrower`."""

    def __call__(self, method: Callable[[PartGrower, S], T], items: Iterable[S], /) -> Iterator[T]:
        """Yield what the method returns for each item, in order."""
        ...


class Workers(NamedTuple):
    """What grows the parts of a tree.

    Attributes
    ----------
    map : Map
    grower : PartGrower
        Of this process, for the levels above parts.
    n_parts : int
        Number of parts, about, that all are at work on.
    progress : Progress
        Is told of parts that others have grown.
    """

    map: Map
    grower: PartGrower
    n_parts: int = 1
    progress: Progress = silent


Start = Callable[[PartGrower], AbstractContextManager[Workers]]
"""Starts workers that are like a `PartGrower`, for a `with` block."""


class AtWork(NamedTuple):
    """The engine of one build: its cache, and what reads files and starts workers."""

    cache: Cache
    read: ReadFiles
    start: Start


Engine = Callable[[Table, Progress], AbstractContextManager[AtWork]]
"""What reads and grows the documents of an index."""


@contextmanager
def start_here(grower: PartGrower) -> Iterator[Workers]:
    """Let this process grow all parts; see `Start`."""
    yield Workers(lambda method, items: map(partial(method, grower), items), grower)


@contextmanager
def in_this_process(table: Table, progress: Progress) -> Iterator[AtWork]:
    """Read and grow in this process; see `Engine`."""
    with open_cache(table.uri) as cache:
        each = partial(each_file, progress=progress, memory=Readings(cache))
        with file_reader(table, each) as read:
            yield AtWork(cache, read, start_here)
