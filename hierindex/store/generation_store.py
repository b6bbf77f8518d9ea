"""Generations of an index, in a LanceDB table that LlamaIndex sees as a vector store."""

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self

from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from hierindex.errors import InputError
from hierindex.store.connection import TABLE
from hierindex.store.deletion import with_the_rest
from hierindex.store.description import generation_json
from hierindex.store.fragments import Call, Fragments, Place
from hierindex.store.generations import ADDED, on_newest
from hierindex.store.rows import all_documents, to_table
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table
from hierindex.store.waiting import DocumentFile, LeafFile, RowFile

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.db import DBConnection


class GenerationStore(BasePydanticVectorStore):
    """The generations of an index: what is read of them, and whole trees that are written.

    See `HierarchyStore` for the parameters.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    stores_text: bool = True
    uri: str
    table_name: str = Field(default=TABLE)
    keep_generations: int = Field(default=2, ge=1)

    _table: Table = PrivateAttr()
    _only: Snapshot | None = PrivateAttr(default=None)

    @property
    def client(self) -> "DBConnection":
        """A LanceDB connection to the database."""
        return self._table.connect()

    def snapshot(self, generation: int | None = None) -> Snapshot:
        """Return a generation, by default the newest; later writes do not change it.

        Raises
        ------
        GenerationError
            If the store does not hold this generation; also raised by a snapshot that is read
            after later writes have removed its generation.
        FormatError
            If another version of hierindex wrote the table.
        """
        if self._only is not None and generation is None:
            return self._only
        return self._table.snapshot(generation)

    def at(self, snapshot: Snapshot) -> Self:
        """Return this store with a snapshot instead of the newest generation, to read from."""
        store = self.model_copy()
        store._only = snapshot
        return store

    @on_newest
    def generations(self) -> list[dict[str, Any]]:
        """Return the generations that the store holds, the oldest first.

        Each is a dict of `generation`, `time`, when it was published, its numbers of `documents`,
        `levels` and `nodes`, `what` wrote it, such as "build", and the numbers of its `changes`.
        """
        numbers = self._table.generations()
        return [generation_json(self.snapshot(number)) for number in numbers]

    def rollback(self, generation: int | None = None) -> int:
        """Publish an earlier generation, by default the previous one, and return its new number.

        Raises
        ------
        InputError
            If the store does not hold this generation, or it is the current one.
        """
        return self._table.rollback(generation)

    def writing(self, what: str) -> AbstractContextManager[None]:
        """Exclude all other writers for a `with` block, in which this store can write.

        Parameters
        ----------
        what : str
            What is done, such as "build"; other writers and `generations` show it.

        Raises
        ------
        InputError
            If another writer is at work; the error names it.
        """
        return self._table.writing(what)

    def batches(self, *columns: str) -> "Iterator[pa.RecordBatch]":
        """See `Snapshot.batches`."""
        return self.snapshot().batches(*columns)

    def row_file(self) -> RowFile:
        """Return a file in which rows wait for `replace` or `revise`, to be used by `with`."""
        return RowFile(self._table)

    def fragments(self, call: Call = operator.call) -> Fragments:
        """Return where rows, which other processes write, wait for `replace`; see `Fragments`."""
        return Fragments(Place(*self._table.parameters), call)

    def document_file(self) -> DocumentFile:
        """Return a file in which documents wait until they are split, to be used by `with`."""
        return DocumentFile(self._table)

    def leaf_file(self) -> LeafFile:
        """Return a file in which leaves wait until they are grouped, to be used by `with`."""
        return LeafFile(self._table)

    def replace(
        self,
        nodes: Sequence[BaseNode] | RowFile | Fragments,
        report: dict[str, Any],
        *,
        purge: bool = False,
    ) -> int:
        """Replace all nodes; a reader sees the old tree or the new one, never a mixture.

        Parameters
        ----------
        nodes : Sequence[BaseNode], RowFile or Fragments
            At least one.
        report : dict
            Of the build; stored with the nodes, see `Snapshot.report`. Its `changes`, a dict of
            numbers by kind of change, are shown by `generations`.
        purge : bool
            Whether to remove all earlier generations, so that no file contains their text.

        Returns
        -------
        int
            The number of the generation: 1 for the first that is published.

        Raises
        ------
        InputError
            If there are no nodes, or one of them cannot be written, see `HierarchyStore.add`.
        """
        rows = nodes if isinstance(nodes, Fragments) else self._reader(nodes)
        if rows is None or (isinstance(rows, Fragments) and not rows.n_rows):
            raise InputError("There are no nodes to write.")
        changes = report.get("changes", {})
        return self._table.replace(rows, report, changes, purge=purge)

    def revise(
        self,
        nodes: Sequence[BaseNode] | RowFile,
        gone: Collection[str],
        report: dict[str, Any],
        *,
        purge: bool = False,
        moved: Mapping[str, str] | None = None,
    ) -> int:
        """Replace nodes by id, insert new ones and remove others, in one generation.

        Parameters
        ----------
        nodes : Sequence[BaseNode] or RowFile
        gone : Collection[str]
            Ids of the nodes to remove.
        report, purge
            See `replace`.
        moved : Mapping[str, str], optional
            New paths of sources, by the old ones. All rows are then written again.
        """
        changes = report.get("changes", {})
        reader = self._reader(nodes)
        rows = None if reader is None else reader.read_all()
        if not (purge or moved):
            return self._table.revise(rows, gone, report, changes)
        snapshot = self.snapshot()
        every = with_the_rest(rows, {*gone}, snapshot, moved)
        added = ADDED in snapshot.details()
        return self._table.replace(every, report, changes, added=added, purge=purge)

    def _reader(self, nodes: Sequence[BaseNode] | RowFile) -> "pa.RecordBatchReader | None":
        """Return the rows of nodes; None if there are none."""
        if isinstance(nodes, RowFile):
            return nodes.reader()
        documents = all_documents(nodes, self.snapshot)
        return to_table(nodes, documents).to_reader() if nodes else None
