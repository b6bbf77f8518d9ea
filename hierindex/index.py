"""The managed index: build, open and ask a tree in one folder."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.query_engine import RetrieverQueryEngine

from hierindex.errors import InputError
from hierindex.llm.record import Calls
from hierindex.llm.served import served
from hierindex.respond.answer import Answer, answered, retrieved
from hierindex.respond.engine import NEED_LLM, can_stream, choose_mode, query_engine
from hierindex.respond.llama_index_names import separated
from hierindex.retrieve.levels import Level, check_levels, levels_of
from hierindex.retrieve.stored_tree import StoredTree
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import wait_for

if TYPE_CHECKING:
    from llama_index.core.chat_engine.types import BaseChatEngine
    from llama_index.core.node_parser import NodeParser

    from hierindex.build import BuildReport, Source
    from hierindex.estimate import Estimate
    from hierindex.hierarchy.hierarchy import Hierarchy
    from hierindex.progress import Progress
    from hierindex.respond.compare import Comparison
    from hierindex.verify.report import Verification


class HierarchicalIndex(StoredTree):
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

    def verify(self, *, repair: bool = False) -> "Verification":
        """Check that the index is whole: its files, links, texts, quotes, vectors and indices.

        Parameters
        ----------
        repair : bool
            Whether to repair what needs no model: derived columns, links that one side names,
            the indices of LanceDB, and a damaged cache, which is removed.

        Returns
        -------
        Verification
            `ok` says whether all checks hold; after a repair, those that are made then.

        Raises
        ------
        IndexNotFoundError
            If there is no index.
        FormatError
            If another version of hierindex wrote it.
        """
        from hierindex.verify.verify import verify

        return verify(self.store, repair=repair)

    def as_query_engine(
        self,
        *,
        llm: LLM | None = None,
        response_mode: str | None = None,
        level: Level | Sequence[Level] | None = None,
        synthesizer: dict[str, Any] | None = None,
        **options: Any,
    ) -> RetrieverQueryEngine:
        """Return a query engine that quotes extracts or uses a LlamaIndex response mode.

        Parameters
        ----------
        llm : LLM, optional
        response_mode : str, optional
            "extractive" without an LLM; see `query_engine`.
        level : int or str, or a sequence of them, optional
            Levels to search, by number or word; see `HierarchyRetriever`.
        synthesizer : dict, optional
            Options of the response synthesizer, such as templates, `streaming`, `answer_tokens`,
            `unsupported`.
        **options
            Options of `as_retriever`, and those of LlamaIndex's query engines: templates,
            `streaming`, `use_async` and `output_cls`. With `text_qa_template` or
            `refine_template`, the mode is by default "compact", which uses them.

        Raises
        ------
        InputError
            If the options cannot be combined, or no node fits the token budget.
        """
        # Fails before the embedding model is loaded.
        mode, answering, retriever = separated(options, synthesizer or {}, response_mode, llm)
        for name in ("llm", "response_mode", "retriever", "embed_model"):
            if name in (synthesizer or {}):
                raise InputError(f"{name} is not a synthesizer option; remove it from synthesizer.")
        wait_for(check_levels(self.store.snapshot(), levels_of(level)))
        made = self.as_retriever(level=level, **retriever)
        wait_for(made.check_budget())
        return query_engine(made, self.embed_model, llm=llm, response_mode=mode, **answering)

    def as_chat_engine(
        self, *, llm: LLM | None = None, chat_mode: str = "condense_plus_context", **options: Any
    ) -> "BaseChatEngine":
        """Return a chat engine of LlamaIndex, which remembers the conversation.

        Answers in mode "condense_question" are those of `as_query_engine`, with citations in
        `response.sources[0].raw_output.metadata`. Those of the other modes cite nothing.

        Parameters
        ----------
        llm : LLM
            It is required; LlamaIndex's `Settings.llm` is ignored.
        chat_mode : {"condense_plus_context", "context", "condense_question"}
        **options
            Options of the chat engine, such as `memory`, `chat_history` and prompts, and those of
            `as_retriever`, or in mode "condense_question" of `as_query_engine`.

        Raises
        ------
        InputError
            If no LLM is given, or the options cannot be combined.
        """
        from hierindex.respond.chat import chat_engine

        return chat_engine(self.as_retriever, self.as_query_engine, llm, chat_mode, options)

    def ask(
        self,
        question: str,
        *,
        llm: LLM | None = None,
        response_mode: str | None = None,
        show: Callable[[str], object] | None = None,
        **options: Any,
    ) -> Answer:
        """Ask a question, with the options of `as_query_engine`.

        Parameters
        ----------
        question : str
        llm : LLM, optional
        response_mode : str, optional
        show : callable, optional
            Called with each piece of the answer's text, which is streamed in modes that can.
        **options
            As in `as_query_engine`.

        Returns
        -------
        Answer
            The answer with its sources, usage and timings.
        """
        calls, mode = Calls(), choose_mode(response_mode, llm)
        asked = llm if mode in NEED_LLM else None
        if show is not None and can_stream(mode):
            options["synthesizer"] = {"streaming": True} | (options.get("synthesizer") or {})
        engine = self.as_query_engine(
            llm=served(asked, calls) if asked else llm, response_mode=response_mode, **options
        )
        found = retrieved(question, engine.retriever, self.embed_model)
        return answered(found, engine, asked, calls, show)

    def compare(
        self,
        question: str,
        *,
        llm: LLM | None = None,
        response_modes: Sequence[str] | None = None,
        synthesizer: dict[str, Any] | None = None,
        **retriever: Any,
    ) -> "Comparison":
        """Answer a question in several response modes from the same retrieved nodes.

        Parameters
        ----------
        question : str
        llm : LLM, optional
        response_modes : sequence of str, optional
            By default all modes that answer; only "extractive" without an LLM.
        synthesizer : dict, optional
            Options of the response synthesizers; each mode takes those that it has.
        **retriever
            Options of `HierarchyRetriever`.

        Raises
        ------
        InputError
            If a mode does not exist, or needs an LLM and none is given.
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
