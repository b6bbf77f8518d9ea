"""The managed index: build, update, open and ask a tree in one folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hierindex.errors import HierindexError, without_password
from hierindex.jobs.revisable_tree import RevisableTree
from hierindex.loading import extra
from hierindex.store.table import Table

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.schema import Document
    from plotly.graph_objects import Figure

    from hierindex.jobs.engine import Engine
    from hierindex.jobs.estimate import Estimate
    from hierindex.jobs.revisions import Source
    from hierindex.progress import Progress
    from hierindex.retrieve.levels import Level
    from hierindex.serve.explorer.explorer import Explorer
    from hierindex.serve.questions.server import QuestionServer
    from hierindex.tree.hierarchy import Hierarchy
    from hierindex.verify.verify import Verification


class HierarchicalIndex(RevisableTree):
    """An index that keeps a tree of summaries over documents in one folder.

    Create it with `build` or `open`; `open` also takes a folder that an `IngestionPipeline`
    filled through `HierarchyStore`.

    Parameters
    ----------
    store : HierarchyStore
    embed_model : BaseEmbedding, optional
        The model that the tree was built with; by default loaded by the name stored in the tree.
    """

    def __repr__(self) -> str:
        """Return the address, without a password, and the generation; None if none can be read."""
        try:
            generation = self.table.snapshot().generation or None
        except (HierindexError, OSError, RuntimeError, ValueError):  # the last three of LanceDB
            generation = None
        uri = without_password(self.table.uri)
        return f"{type(self).__name__}({uri!r}, generation={generation})"

    @classmethod
    def build(
        cls,
        sources: "Source | Sequence[Source]",
        uri: str | Path,
        *,
        hierarchy: "Hierarchy | None" = None,
        splitter: "NodeParser | None" = None,
        chunk_size: int | None = None,
        replace: bool = False,
        progress: "Progress | None" = None,
        engine: "Engine | None" = None,
    ) -> Self:
        """Build an index of documents, or replace all documents of an existing one.

        What was read of unchanged files is reused, and so are the chunks, vectors and summaries
        of unchanged texts. The new tree is published in one step once it is complete; until then,
        readers see the old one.

        Parameters
        ----------
        sources : str, Path or Document, or a sequence of them
            Files and folders of text, Markdown, HTML and PDF, or LlamaIndex documents.
        uri : str or Path
            Folder of the index.
        hierarchy : Hierarchy, optional
            `SemanticHierarchy()` by default.
        splitter : NodeParser, optional
            By default `sentence_splitter`, whose chunks fit the embedding model's window.
        chunk_size : int, optional
            Tokens per chunk of the default splitter.
        replace : bool
            Whether an existing index may be replaced by one of another method, embedding model or
            summariser, or without more than half of its documents.
        progress : Progress, optional
            Replaces the hierarchy's own callback.
        engine : Engine, optional
            What reads the documents and grows their trees: this process by default, or a cluster,
            see `RayEngine`. The tree is the same.

        Returns
        -------
        HierarchicalIndex
            Its `last_build` is the `BuildReport`.

        Raises
        ------
        SourceError
            If there is nothing to index, or two documents have the same id.
        InputError
            If the index is not to be replaced, and the build would lose much of it, or another
            version of hierindex wrote it.
        ModelError, SummaryError
            If a model fails; the index is unchanged.
        """
        from hierindex.jobs.build import build_tree, check_writable  # not needed for queries
        from hierindex.jobs.engine import in_this_process
        from hierindex.jobs.job import Job
        from hierindex.models.openvino_embedding import as_llama_index
        from hierindex.tree.transforms import SemanticHierarchy

        hierarchy = hierarchy or SemanticHierarchy()
        table = Table.of(uri)
        check_writable(table.uri)
        report = build_tree(
            sources,
            table,
            hierarchy,
            splitter=splitter,
            chunk_size=chunk_size,
            replace=replace,
            progress=progress,
            engine=engine or in_this_process,
            writing=table.writing("build"),
            then=Job.publish,
        )
        return cls(table, as_llama_index(hierarchy.embedder.embed_model), last_build=report)

    @staticmethod
    def estimate(
        sources: "Source | Sequence[Source]",
        uri: str | Path,
        *,
        hierarchy: "Hierarchy | None" = None,
        splitter: "NodeParser | None" = None,
        chunk_size: int | None = None,
        progress: "Progress | None" = None,
    ) -> "Estimate":
        """Estimate the LLM requests that `build` with the same arguments would send.

        Only the embedding model is run, and its vectors are cached for the build.
        """
        from hierindex.jobs.build import build_tree
        from hierindex.jobs.estimate import estimated
        from hierindex.tree.transforms import SemanticHierarchy

        return build_tree(
            sources,
            Table.of(uri),
            hierarchy or SemanticHierarchy(),
            splitter=splitter,
            chunk_size=chunk_size,
            replace=True,
            progress=progress,
            then=estimated,
        )

    @classmethod
    def open(cls, uri: str | Path, embed_model: "BaseEmbedding | None" = None) -> Self:
        """Open an index; the embedding model is loaded with the first question.

        Raises
        ------
        IndexNotFoundError
            If the folder holds no index.
        FormatError
            If another version of hierindex wrote it.
        """
        table = Table.of(uri)
        table.snapshot().require()
        return cls(table, embed_model)

    @classmethod
    def from_documents(
        cls, documents: "Sequence[Document]", uri: str | Path, **options: Any
    ) -> Self:
        """Build an index of LlamaIndex documents; see `build` for the options."""
        return cls.build(documents, uri, **options)

    def verify(self, *, repair: bool = False) -> "Verification":
        """Check the index against its invariants; with `repair`, mend what needs no model."""
        from hierindex.verify.verify import verify

        return verify(self.table, repair=repair)

    def explore(self, port: int | None = None, host: str = "127.0.0.1") -> "Explorer":
        """Serve a page to read, search and ask the tree, in a thread; see `Explorer`.

        Raises
        ------
        InputError
            If the extra `serve` is not installed, or nothing can be served at the address.
        """
        with extra("serve", "The explorer needs"):
            from hierindex.serve.explorer.explorer import Explorer
        return Explorer(self, port, host)

    def serve(self, port: int | None = None, host: str | None = None) -> "QuestionServer":
        """Answer questions of commands, or by HTTP, in a thread; see `QuestionServer`.

        Raises
        ------
        InputError
            If the extra `serve` is not installed, nothing can be served at the address, or another
            process serves the index.
        """
        with extra("serve", "The server needs"):
            from hierindex.serve.questions.server import QuestionServer
        return QuestionServer(self, port, host)

    def plot_tree(self, node_id: str | None = None, max_nodes: int = 1000) -> "Figure":
        """Draw the tree, or a node and what is under it, as an icicle.

        A box is as high as its number of chunks, with its children to the right in reading order.
        """
        from hierindex.plot.tree import plot_tree

        return plot_tree(self.table, node_id, max_nodes)

    def plot_map(self, level: "Level | None" = None, max_chunks: int = 2000) -> "Figure":
        """Draw the chunks as points, similar ones near each other, coloured by their parents.

        `level` is that of the parents, of which the 18 with most points have a colour.
        """
        from hierindex.plot.map import plot_map

        return plot_map(self.table, level, max_chunks)

    def insert(self, document: "Document", **options: Any) -> None:
        """Add a LlamaIndex document, or replace the one with its id; see `update`."""
        self.update(document, **options)

    def delete_ref_doc(
        self, ref_doc_id: str, delete_from_docstore: bool = False, **options: Any
    ) -> None:
        """Delete a document under LlamaIndex's name for it; see `delete`."""
        self.delete(ref_doc_id, **options)

    def refresh_ref_docs(self, documents: "Sequence[Document]", **options: Any) -> list[bool]:
        """Add LlamaIndex documents that are new or changed, and return which of them are.

        Documents that are blank now are removed from the index.
        """
        from hierindex.jobs.changes import held_documents

        if not documents:
            return []
        before = held_documents(self.table.snapshot())
        self.update(documents, **options)
        after = held_documents(self.table.snapshot())
        return [before.get(d.doc_id) != after.get(d.doc_id) for d in documents]
