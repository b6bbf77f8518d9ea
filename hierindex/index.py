"""The managed index: build, open and ask a tree in one folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from llama_index.core.base.embeddings.base import BaseEmbedding

from hierindex.respond.answering_tree import AnsweringTree
from hierindex.store.vector_store import HierarchyStore

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser

    from hierindex.build import BuildReport, Source
    from hierindex.estimate import Estimate
    from hierindex.hierarchy.hierarchy import Hierarchy
    from hierindex.progress import Progress


class HierarchicalIndex(AnsweringTree):
    """An index that keeps a tree of summaries over documents in one folder.

    Create it with `build` or `open`; `open` also takes a folder that an `IngestionPipeline`
    filled through `HierarchyStore`.

    Parameters
    ----------
    store : HierarchyStore
    embed_model : BaseEmbedding, optional
        The model that the tree was built with; by default loaded by the name stored in the tree.
    """

    def __init__(
        self,
        store: HierarchyStore,
        embed_model: BaseEmbedding | None = None,
        *,
        last_build: "BuildReport | None" = None,
    ) -> None:
        super().__init__(store, embed_model)
        self.last_build = last_build

    @classmethod
    def build(
        cls,
        sources: "Source | Sequence[Source]",
        uri: str | Path,
        *,
        hierarchy: "Hierarchy | None" = None,
        splitter: "NodeParser | None" = None,
        chunk_size: int | None = None,
        progress: "Progress | None" = None,
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
        progress : Progress, optional
            Replaces the hierarchy's own callback.

        Returns
        -------
        HierarchicalIndex
            Its `last_build` is the `BuildReport`.

        Raises
        ------
        SourceError
            If there is nothing to index, or two documents have the same id.
        ModelError, SummaryError
            If a model fails; the index is unchanged.
        """
        from hierindex.build import build_tree  # not needed for queries
        from hierindex.hierarchy.transforms import SemanticHierarchy

        hierarchy = hierarchy or SemanticHierarchy()
        store = HierarchyStore(uri)
        report = build_tree(
            sources, store, hierarchy, splitter=splitter, chunk_size=chunk_size, progress=progress
        )
        return cls(store, hierarchy.embedder.embed_model, last_build=report)

    @staticmethod
    def estimate(
        sources: "Source | Sequence[Source]",
        uri: str | Path,
        *,
        hierarchy: "Hierarchy | None" = None,
        splitter: "NodeParser | None" = None,
        chunk_size: int | None = None,
        quick: bool = False,
        progress: "Progress | None" = None,
    ) -> "Estimate":
        """Estimate the LLM requests that `build` with the same arguments would send.

        Only the embedding model is run, and its vectors are cached for the build. With `quick`
        no model is run, and each number is a range.
        """
        from hierindex.estimate import estimate_tree
        from hierindex.hierarchy.transforms import SemanticHierarchy

        return estimate_tree(
            sources,
            HierarchyStore(uri),
            hierarchy or SemanticHierarchy(),
            splitter=splitter,
            chunk_size=chunk_size,
            quick=quick,
            progress=progress,
        )

    @classmethod
    def open(cls, uri: str | Path, embed_model: BaseEmbedding | None = None) -> Self:
        """Open an index; the embedding model is loaded with the first question.

        Raises
        ------
        IndexNotFoundError
            If the folder holds no index.
        FormatError
            If another version of hierindex wrote it.
        """
        store = HierarchyStore(uri)
        store.snapshot().require()
        return cls(store, embed_model)
