"""The managed index: documents in, answers at any level out."""

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode

from hierindex.embed.load import load_embed_model
from hierindex.errors import InputError, ModelError
from hierindex.llm.record import Calls
from hierindex.llm.served import served
from hierindex.overview import overview
from hierindex.respond.answer import Answer, answered, retrieved
from hierindex.respond.engine import NEED_LLM, choose_mode, query_engine
from hierindex.retrieve.retriever import HierarchyRetriever, check_level, levels_of
from hierindex.store.plain import plain
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import wait_for

if TYPE_CHECKING:
    from llama_index.core.node_parser import NodeParser

    from hierindex.build import BuildReport, Source
    from hierindex.estimate import Estimate
    from hierindex.hierarchy.hierarchy import Hierarchy
    from hierindex.progress import Progress
    from hierindex.respond.compare import Comparison


class HierarchicalIndex:
    """A tree of summaries over documents, in one folder.

    Made by `build`, found again by `open`; a table that an `IngestionPipeline` filled
    through `HierarchyStore` opens as well.

    Parameters
    ----------
    store : HierarchyStore
    embed_model : BaseEmbedding, optional
        The one that the tree was built with; by default loaded by the name it has there.
    """

    def __init__(
        self,
        store: HierarchyStore,
        embed_model: BaseEmbedding | None = None,
        *,
        last_build: "BuildReport | None" = None,
    ) -> None:
        self.store = store
        self.last_build = last_build
        self._embed_model = embed_model

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
        """Build an index of documents, or replace the documents of one that is there.

        Chunks and summaries that an earlier build made of the same texts in the same way
        are used again. Nothing is written before the tree is whole; then it takes the
        place of the old one in one step.

        Parameters
        ----------
        sources : str, Path or Document, or a sequence of them
            Files and folders of text, Markdown, HTML and PDF, or what any LlamaIndex reader
            gave.
        uri : str or Path
            The index's folder.
        hierarchy : Hierarchy, optional
            `SemanticHierarchy()` by default.
        splitter : NodeParser, optional
            By default `sentence_splitter`, whose chunks fit the embedding model's window.
        chunk_size : int, optional
            Of the default splitter.
        progress : Progress, optional
            The hierarchy's own by default.

        Returns
        -------
        HierarchicalIndex
            With `last_build`, the `BuildReport`.

        Raises
        ------
        SourceError
            If there is nothing to index, or two documents have the same id.
        ModelError, SummaryError
            If a model fails; the index stays as it was.
        """
        from hierindex.build import build_tree  # asking needs none of what building does
        from hierindex.hierarchy.transforms import SemanticHierarchy

        hierarchy = hierarchy or SemanticHierarchy()
        store = HierarchyStore(uri)
        report = build_tree(
            sources,
            store,
            hierarchy,
            splitter=splitter,
            chunk_size=chunk_size,
            progress=progress,
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
        """What `build` with the same arguments would ask of a language model.

        No model is asked but the embedding model, whose vectors are kept for the build; with
        `quick` not even that, and each number is a range.
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
        """Open an index; the embedding model is loaded when the first question needs it.

        Raises
        ------
        IndexNotFoundError
            If the folder holds none.
        FormatError
            If another version of hierindex wrote it.
        """
        store = HierarchyStore(uri)
        store.snapshot().require()
        return cls(store, embed_model)

    @property
    def embed_model(self) -> BaseEmbedding:
        """The embedding model that the tree was built with."""
        if self._embed_model is None:
            name = wait_for(self.store.snapshot().record()).embed_model
            try:
                # On a CPU a question needs no torch, which takes longer to import.
                self._embed_model = load_embed_model(name, device="cpu")
            except ModelError as error:
                raise ModelError(
                    f"The index was built with the embedding model {name!r}, which cannot be "
                    "loaded by its name; pass it as embed_model=."
                ) from error
        return self._embed_model

    def as_retriever(self, **options: Any) -> HierarchyRetriever:
        """A retriever; options as for `HierarchyRetriever`.

        Raises
        ------
        InputError
            If it has no such option, or options do not go together.
        """
        known = signature(HierarchyRetriever).parameters.keys() - {"store", "embed_model"}
        for name in options.keys() - known:
            raise InputError(
                f"There is no option {name!r}; the retriever has {', '.join(sorted(known))}, and "
                "what a response mode takes goes into synthesizer={...}."
            )
        return HierarchyRetriever(self.store, self.embed_model, **options)

    def as_query_engine(
        self,
        *,
        llm: LLM | None = None,
        response_mode: str | None = None,
        level: int | Sequence[int] | None = None,
        synthesizer: dict[str, Any] | None = None,
        **retriever: Any,
    ) -> RetrieverQueryEngine:
        """A query engine: extractive without an LLM, else in any of LlamaIndex's response modes.

        Parameters
        ----------
        llm : LLM, optional
        response_mode : str, optional
            See `query_engine`.
        level : int or sequence of int, optional
            Ask this level alone, or these.
        synthesizer : dict, optional
            For the response synthesizer: templates, streaming, `answer_tokens` and the like.
        **retriever
            As `as_retriever`.

        Raises
        ------
        InputError
            If the options do not go together.
        """
        choose_mode(response_mode, llm)  # now and not after the embedding model is loaded
        for name in ("llm", "response_mode", "retriever", "embed_model"):
            if name in (synthesizer or {}):
                raise InputError(f"{name} is no option of the synthesizer; it has its own place.")
        for each in levels_of(level):
            check_level(each, wait_for(self.store.snapshot().highest_level()))
        return query_engine(
            self.as_retriever(level=level, **retriever),
            self.embed_model,
            llm=llm,
            response_mode=response_mode,
            **(synthesizer or {}),
        )

    def ask(
        self,
        question: str,
        *,
        llm: LLM | None = None,
        response_mode: str | None = None,
        **options: Any,
    ) -> Answer:
        """Ask a question; options as for `as_query_engine`.

        Returns
        -------
        Answer
            With its sources, what it cost and how long it took.
        """
        calls, asked = Calls(), None
        if choose_mode(response_mode, llm) in NEED_LLM:
            asked = llm
        engine = self.as_query_engine(
            llm=served(asked, calls) if asked else llm, response_mode=response_mode, **options
        )
        found = retrieved(question, engine.retriever, self.embed_model)
        return answered(found, engine, asked, calls)

    def compare(
        self,
        question: str,
        *,
        llm: LLM | None = None,
        response_modes: Sequence[str] | None = None,
        synthesizer: dict[str, Any] | None = None,
        **retriever: Any,
    ) -> "Comparison":
        """Ask a question in several response modes, each of the same nodes.

        Parameters
        ----------
        question : str
        llm : LLM, optional
        response_modes : sequence of str, optional
            By default all that answer; without an LLM that is "extractive".
        synthesizer : dict, optional
            As `as_query_engine`; each mode takes what it has.
        **retriever
            As `as_retriever`.

        Raises
        ------
        InputError
            If there is no such mode, or it needs an LLM and there is none.
        """
        from hierindex.respond.compare import compare

        for mode in response_modes or ():
            choose_mode(mode, llm)
        return compare(
            question,
            self.as_retriever(**retriever),
            self.embed_model,
            llm=llm,
            response_modes=response_modes,
            synthesizer=synthesizer,
        )

    def info(self) -> dict[str, Any]:
        """What the index holds: documents, nodes and tokens a level, roots, models, usage."""
        return wait_for(overview(self.store.snapshot()))

    def node(self, node_id: str) -> BaseNode:
        """The node with this id, or else the only one whose id begins with it.

        Raises
        ------
        InputError
            If there is none, or more than one.
        """
        snapshot = self.store.snapshot()
        ids = wait_for(snapshot.ids_beginning(node_id))
        if node_id in ids:
            ids = [node_id]
        if len(ids) != 1:
            raise InputError(
                f"{len(ids) or 'No'} nodes have an id that begins with {node_id!r}; "
                "`hierindex query` and `hierindex info` show ids."
            )
        return wait_for(snapshot.nodes(ids))[0]

    def describe(self, node_id: str) -> dict[str, Any]:
        """A node as plain values: text, level, kind, grounding, links, citations.

        Raises
        ------
        InputError
            See `node`.
        """
        return plain(self.node(node_id))
