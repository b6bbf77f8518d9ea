"""`HierarchicalIndex`: builds, updates and queries a tree of summaries in one folder."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cache, partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError, ModelError, without_password
from hierindex.models.embedder import as_embed_model, built_precision
from hierindex.models.load import load_encoder
from hierindex.settings import CONTEXT, OUTLINE_TOKENS
from hierindex.store.generations import on_newest
from hierindex.store.table import Table

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.chat_engine.types import BaseChatEngine
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.schema import BaseNode, Document
    from llama_index.core.vector_stores.types import MetadataFilters

    from hierindex.jobs.build import Revise, UpdateOptions
    from hierindex.jobs.job import BuildReport, Engine
    from hierindex.jobs.settings import StoredSettings
    from hierindex.jobs.sources import Source
    from hierindex.jobs.watch import Failed
    from hierindex.models.adapters import LLMLike
    from hierindex.models.embedder import EmbedLike, EmbedModel
    from hierindex.models.openvino import Precision
    from hierindex.node import Node
    from hierindex.progress import Progress
    from hierindex.respond.answer import Answer
    from hierindex.respond.compare import Comparison
    from hierindex.respond.engine import ReadingOrderEngine
    from hierindex.retrieve.levels import Level
    from hierindex.retrieve.retriever import HierarchyRetriever, RetrievedNode
    from hierindex.retrieve.sources import SourcePassage
    from hierindex.store.snapshot import Snapshot
    from hierindex.store.vector_store import HierarchyStore
    from hierindex.tree.hierarchy import Hierarchy
    from hierindex.verify import Verification

_loading = Lock()


class HierarchicalIndex:
    """A tree of summaries of documents, stored in one folder.

    Create it with `build` or `open`; `open` also takes a folder that an `IngestionPipeline`
    filled through `HierarchyStore`.

    Parameters
    ----------
    store : HierarchyStore or Table
    embed_model : BaseEmbedding or callable, optional
        The model with which the tree was built; by default loaded by the name stored in the tree.
    last_build : BuildReport, optional
        Report of the last build or update made through this object.
    """

    def __init__(
        self,
        store: "HierarchyStore | Table",
        embed_model: "EmbedLike | None" = None,
        *,
        last_build: "BuildReport | None" = None,
    ) -> None:
        self.table: Table = store if isinstance(store, Table) else store.table
        self._store = None if isinstance(store, Table) else store
        self.last_build = last_build
        self._embed_model = None if embed_model is None else as_embed_model(embed_model)

    def __repr__(self) -> str:
        """Return the address, without a password."""
        return f"{type(self).__name__}({without_password(self.table.uri)!r})"

    def _repr_html_(self) -> str:
        """Return what the index holds, as a notebook shows it."""
        from hierindex.respond.overview import overview_of_all
        from hierindex.text.display import facts_of, inert, overview_html

        (snapshot := self.table.snapshot()).require()
        overview, time = overview_of_all(snapshot), snapshot.details().get("time")
        facts = f"<p>{inert(repr(self))}<br>{inert(facts_of(overview, time))}</p>"
        return f"{facts}{overview_html(overview)}"

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
        dry_run: bool = False,
        progress: "Progress | None" = None,
        engine: "Engine | None" = None,
    ) -> Self:
        """Build an index of documents, or replace all documents of an existing one.

        The texts of unchanged files, and the vectors and summaries of unchanged texts, are taken
        from the cache. The new tree is published in one step when it is complete; until then,
        readers see the old one.

        Parameters
        ----------
        sources : str, Path or Document, or a sequence of them
            Files and folders (see `read_documents` for the formats), or LlamaIndex documents.
        uri : str or Path
            Folder of the index, or its URI in an object store.
        hierarchy : Hierarchy, optional
            `SemanticHierarchy()` by default.
        splitter : NodeParser, optional
            By default `sentence_splitter`, whose chunks fit the embedding model's window.
        chunk_size : int, optional
            Maximum number of tokens in a chunk, for the default splitter only; by default the
            model's window.
        replace : bool
            Whether to replace an existing index even if its kind of hierarchy, embedding model or
            summariser changes, or more than half of its documents would be removed. False by
            default.
        dry_run : bool
            Whether to only estimate the cost (see `BuildReport`). Only the embedding model is run.
            Its vectors are cached for the build; the index is not changed.
        progress : Progress, optional
            Replaces the hierarchy's own callback.
        engine : Engine, optional
            Where documents are read and their trees are built: in this process by default, or on
            a cluster with `RayEngine`. The tree is the same.

        Returns
        -------
        HierarchicalIndex
            Its `last_build` is the `BuildReport`.

        Raises
        ------
        SourceError
            If a source cannot be found or is the index itself, there is nothing to index, or two
            documents have the same id.
        InputError
            Without `replace`, if the kind of hierarchy, the embedding model or the summariser
            differs, more than half of the documents would be removed, or another version of
            hierindex wrote the index.
        ModelError, SummaryError, LimitError
            If a model fails, or the token limit is reached; the index is unchanged.
        """
        from hierindex.jobs.build import build_tree
        from hierindex.tree.hierarchy import SemanticHierarchy

        hierarchy = hierarchy or SemanticHierarchy()
        table = Table.of(uri)
        report = build_tree(
            sources,
            table,
            hierarchy,
            splitter=splitter,
            chunk_size=chunk_size,
            replace=replace,
            dry_run=dry_run,
            progress=progress,
            engine=engine,
        )
        return cls(table, hierarchy.embedder.embed_model, last_build=report)

    @classmethod
    def from_documents(
        cls, documents: "Sequence[Document]", uri: str | Path, **options: Any
    ) -> Self:
        """Build an index of LlamaIndex documents; see `build` for the options."""
        return cls.build(documents, uri, **options)

    @classmethod
    def open(cls, uri: str | Path, embed_model: "EmbedLike | None" = None) -> Self:
        """Open an index; the embedding model is loaded when the first question is asked.

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

    def at(self, snapshot: "Snapshot") -> Self:
        """Return a read-only copy of this index that always reads the given snapshot."""
        index = copy(self)
        index.table, index._store = self.table.at(snapshot), None
        return index

    @property
    def store(self) -> "HierarchyStore":
        """The LlamaIndex vector store of the tree."""
        from hierindex.store.vector_store import HierarchyStore

        if self._store is None:
            self._store = HierarchyStore.of(self.table)
        return self._store

    @property
    def embed_model(self) -> "BaseEmbedding":
        """The embedding model that was passed, or else the one named in the index."""
        from hierindex.models.adapters import as_llama_index

        return as_llama_index(self.encoder())

    def encoder(self) -> "EmbedModel":
        """Return `embed_model`, without LlamaIndex's interface if it was loaded by name."""
        if self._embed_model is not None:
            return self._embed_model
        maker = self.table.snapshot().maker()
        with _loading:
            return _loaded(maker.embed_model, built_precision(maker.embed_settings))

    @property
    def settings(self) -> "StoredSettings":
        """The settings of the build that made the index: its hierarchy, models and chunk size."""
        from hierindex.jobs.build import settings_held

        return settings_held(self.table.snapshot())

    def ask(
        self,
        question: str,
        *,
        llm: "LLMLike | None" = None,
        response_mode: str | None = None,
        show: Callable[[str], object] | None = None,
        **options: Any,
    ) -> "Answer":
        """Ask a question, with the options of `as_query_engine`.

        Parameters
        ----------
        question : str
        llm : LLM or callable, optional
            A model, or a function `answer(prompt) -> str`. A function is assumed to have a context
            window of 3,900 tokens, LlamaIndex's default. By default the answer quotes passages.
        response_mode : str, optional
            By default "extractive" without an LLM, "tree_summarize" with one.
        show : callable, optional
            Called with each piece of the answer's text as it is streamed, or once with the whole
            text if the response mode cannot stream.
        **options
            As in `as_query_engine`.

        Returns
        -------
        Answer
            The answer with its sources, usage and timings.

        Raises
        ------
        InputError
            If the question is empty, options cannot be combined, or no node fits the token budget.
        LevelError
            If the tree does not have the requested level.
        ModelError
            If a model cannot be loaded or reached.
        """
        from hierindex.respond.asking import ask

        return ask(
            self.table,
            self.encoder,
            self.as_query_engine,
            question,
            llm,
            response_mode,
            show,
            options,
        )

    def compare(
        self,
        question: str,
        *,
        llm: "LLMLike | None" = None,
        response_modes: Sequence[str] | None = None,
        synthesizer: dict[str, Any] | None = None,
        **retriever: Any,
    ) -> "Comparison":
        """Answer a question in several response modes from the same retrieved nodes.

        Parameters
        ----------
        question : str
        llm : LLM or callable, optional
        response_modes : sequence of str, optional
            By default all modes except "no_text" and "context_only"; without an LLM, only
            "extractive".
        synthesizer : dict, optional
            Options of the response synthesizers; each mode gets the options that it supports.
        **retriever
            Options of `HierarchyRetriever`.

        Raises
        ------
        InputError
            If a mode does not exist, or needs an LLM and none is given, or an option is unknown.
        ModelError
            If the LLM cannot be used at all. Other failures are stored in the `Comparison`.
        """
        from hierindex.respond.compare import compare

        return compare(
            question,
            partial(self.as_retriever, **retriever),
            llm=llm,
            response_modes=response_modes,
            synthesizer=synthesizer,
        )

    def outline(
        self,
        budget: int = OUTLINE_TOKENS,
        question: str | None = None,
        of: str | Iterable[str] | None = None,
        filters: "MetadataFilters | None" = None,
    ) -> "list[RetrievedNode]":
        """Return nodes that summarise the index, reduced to their most informative sentences.

        No node is an ancestor of another.

        Parameters
        ----------
        budget : int
            Maximum number of tokens in all sentences together, counted by LlamaIndex's global
            tokenizer; 1,000 by default.
        question : str, optional
            If given, text gets more weight the more similar it is to the question.
        of : str or iterable of str, optional
            Ids of documents, and ids or unique id prefixes of nodes: summarise only these documents
            and the text under these nodes. By default the whole index.
        filters : MetadataFilters, optional
            Metadata filters that every node must pass.

        Returns
        -------
        list[RetrievedNode]
            In reading order. The text of a node is reduced to the selected sentences, with their
            citations. The score of a node is its share of the summarised text, weighted by
            similarity to the question if there is one.

        Raises
        ------
        InputError
            If no sentence fits the budget, an id in `of` is unknown or ambiguous, or an argument
            has the wrong type.
        """
        from hierindex.retrieve.retrieval import outlined
        from hierindex.retrieve.retriever import retrieved_nodes

        found = outlined(self.table, self.encoder, budget, question, of, filters)
        return retrieved_nodes(found)

    def tree(self, node_id: str | None = None, depth: int | None = None) -> dict[str, Any]:
        """Return a table of contents of the tree, or of one subtree, as nested dicts.

        Parameters
        ----------
        node_id : str, optional
            Id or unique id prefix of the node to start from; by default all roots.
        depth : int, optional
            How many levels of children to list. By default as many as keep the result at 40 nodes
            or fewer, but at least one.

        Returns
        -------
        dict
            `nodes`, and `hidden`, the number of deeper nodes that are not listed. A node is a dict
            of `id`, `title`, `level`, `document` (the id of the document whose chunks are exactly
            those under the node, or None), the counts of `documents` and `chunks` under it, and
            `nodes`, its children in reading order.

        Raises
        ------
        InputError
            If `depth` is negative, or `node_id` matches no node or more than one.

        Notes
        -----
        A node with several parents is listed only under the one with the highest weight, so that
        each chunk is counted once. For nodes not listed, only ids, levels and links are read.
        """
        from hierindex.retrieve.tree import contents

        return contents(self.table, node_id, depth)

    @on_newest
    def info(self) -> dict[str, Any]:
        """Return a description of the index as a dict.

        Returns
        -------
        dict
            `generation`; the number of `documents`; `levels`, a list of dicts of `level`, `nodes`
            and `tokens`; the ids of the `roots` and their `titles`; `method` ("semantic", "raptor"
            or "document"), `embed_model`, its `precision`, and `summarizer`; `usage` of the
            language model, as in `BuildReport`; `stale`, the number of nodes that lost a parent or
            a child to a deletion; and `read_in_part`, the files that were not read completely, as
            dicts.

        Raises
        ------
        IndexNotFoundError
            If the index no longer exists.
        """
        from hierindex.store.snapshot import overview

        return overview(self.table.snapshot())

    def node(self, node_id: str) -> "BaseNode":
        """Return a node by its id, a unique prefix of it, or the id of the document it covers.

        Raises
        ------
        InputError
            If no node or more than one node matches.
        """
        from hierindex.text_node import to_text_node

        return to_text_node(self._node(node_id))

    def describe(self, node_id: str) -> dict[str, Any]:
        """Return a node as a dict with `id`, `title`, `text`, `level`, `kind` and other fields.

        `node_id` is its id, a unique prefix of it, or the id of the document that it summarises.

        Raises
        ------
        InputError
            If no node or more than one node matches.
        """
        from hierindex.store.rows import describe

        return describe(self._node(node_id))

    @on_newest
    def sources(self, node_id: str, *, context: int = CONTEXT) -> "list[SourcePassage]":
        """Return the passages that a node cites, with the text around them.

        They are put together from the chunks of the index; no file is read.

        Parameters
        ----------
        node_id : str
            Id or unique id prefix, or the id of a document.
        context : int
            Maximum number of characters before and after each passage; 300 by default.

        Raises
        ------
        InputError
            If no node or more than one node matches, or the positions of its chunks in their
            documents are unknown.
        """
        from hierindex.retrieve.sources import source_passages

        require(is_whole(context, 0), "context", "an integer of at least 0", context)
        snapshot = self.table.snapshot()
        return source_passages(snapshot, snapshot.node_beginning(node_id), context)

    def as_retriever(self, **options: Any) -> "HierarchyRetriever":
        """Return a retriever with the given options of `HierarchyRetriever`.

        LlamaIndex's names `similarity_top_k` and `node_postprocessors` are accepted, too.

        Raises
        ------
        InputError
            If an option does not exist or options cannot be combined.
        """
        from hierindex.retrieve.retrieval import retriever_options
        from hierindex.retrieve.retriever import HierarchyRetriever

        given = retriever_options(options)  # fails before the embedding model is loaded
        return HierarchyRetriever(self.store, self.embed_model, **given)

    def as_query_engine(
        self,
        *,
        llm: "LLMLike | None" = None,
        response_mode: str | None = None,
        level: "Level | Sequence[Level] | None" = None,
        synthesizer: dict[str, Any] | None = None,
        **options: Any,
    ) -> "ReadingOrderEngine":
        """Return a LlamaIndex query engine that quotes passages, or answers with an LLM.

        Parameters
        ----------
        llm : LLM or callable, optional
        response_mode : str, optional
            "extractive" (the default without an LLM) or a mode of LlamaIndex, such as
            "tree_summarize" (the default with an LLM), "compact" and "refine".
        level : int or str, or a sequence of them, optional
            Levels to search, by number or name; see `HierarchyRetriever`.
        synthesizer : dict, optional
            Further options of the response synthesizer, such as `answer_tokens`.
        **options
            Options of `as_retriever`, and those that LlamaIndex's query engines take directly:
            templates, `streaming`, `use_async` and `output_cls`. With `text_qa_template` or
            `refine_template`, the default mode is "compact", which uses these templates.

        Raises
        ------
        InputError
            If the options cannot be combined.
        """
        from hierindex.respond.engine import query_engine_of

        return query_engine_of(
            self.table,
            self.as_retriever,
            llm=llm,
            response_mode=response_mode,
            level=level,
            synthesizer=synthesizer,
            **options,
        )

    def as_chat_engine(
        self,
        *,
        llm: "LLMLike | None" = None,
        chat_mode: str = "condense_plus_context",
        **options: Any,
    ) -> "BaseChatEngine":
        """Return a LlamaIndex chat engine, which remembers the conversation.

        In mode "condense_question", the engine of `as_query_engine` answers, and its citations are
        in `response.sources[0].raw_output.metadata`. The other modes return no citations.

        Parameters
        ----------
        llm : LLM or callable
            Required; LlamaIndex's `Settings.llm` is ignored.
        chat_mode : {"condense_plus_context", "best", "context", "condense_question"}
            "best" is LlamaIndex's name for the default.
        **options
            Options of the chat engine, such as `memory`, `chat_history` and prompts, and those of
            `as_retriever`; in mode "condense_question", those of `as_query_engine` instead.

        Raises
        ------
        InputError
            If no LLM is given, or the options cannot be combined.
        """
        from hierindex.respond.chat import chat_engine

        return chat_engine(self.as_retriever, self.as_query_engine, llm, chat_mode, options)

    def update(
        self,
        sources: "Source | Sequence[Source] | None" = None,
        *,
        hierarchy: "Hierarchy | None" = None,
        llm: "LLMLike | None" = None,
        splitter: "NodeParser | None" = None,
        purge: bool = False,
        dry_run: bool = False,
        progress: "Progress | None" = None,
        **llm_options: Any,
    ) -> "BuildReport":
        """Read sources again, or add new ones, and publish the updated tree.

        Documents are compared by content: new and changed ones are indexed, missing ones are
        removed, and documents of other sources are kept. A document that was removed with `delete`
        stays out until you pass its path. A file with a new date but the same content keeps its old
        `last_modified_date`. If nothing has changed, no model is loaded and nothing is published.
        Existing groups of documents are reused where possible. If `max_levels` is set, there may
        therefore be more roots than after `build` or `regrow`.

        Parameters
        ----------
        sources : str, Path or Document, or a sequence of them, optional
            By default all files and folders that the index was built from. A path inside one of
            them updates only that part. If a source was moved, pass its new path. A LlamaIndex
            document replaces the one with the same id.
        hierarchy : Hierarchy, optional
            By default made from the settings of the index. A different one raises an error.
        llm : LLM or callable, optional
            The model that wrote the summaries; required if that was a language model.
        splitter : NodeParser, optional
            The splitter that the index was built with; required if it was a custom one.
        purge : bool
            Whether to remove earlier generations, so that no file of the index contains replaced or
            removed text. By default the previous generation is kept, as after a build.
        dry_run : bool
            Whether to only estimate the cost, as in `build`.
        progress : Progress, optional
        **llm_options
            `concurrency`, `timeout`, `token_limit` and `record` of `LLMRewriter`, and `strict` of
            `TwoStageSummarizer`.

        Returns
        -------
        BuildReport
            It is also set as `last_build`, unless `dry_run`.

        Raises
        ------
        SourceError
            If a source cannot be found, or documents of two sources have the same id.
        InputError
            If an argument contradicts the settings of the index, a required model is not passed, or
            more than half of the documents would be removed.
        IndexNotFoundError, FormatError
            If there is no index, or another version of hierindex wrote it.
        ModelError, SummaryError, LimitError
            If a model fails, or the token limit is reached; the index is unchanged.
        """
        from hierindex.jobs.sources import updated

        given = self._given(hierarchy, llm, progress, llm_options, splitter=splitter, purge=purge)
        return self._revise("update", partial(updated, sources), given, dry_run=dry_run)

    def insert(self, document: "Document", **options: Any) -> None:
        """Add a LlamaIndex document, or replace the document with the same id; see `update`."""
        self.update(document, **options)

    def refresh_ref_docs(self, documents: "Sequence[Document]", **options: Any) -> list[bool]:
        """Add new and changed LlamaIndex documents; return whether each changed the index.

        Documents without text are removed from the index.
        """
        if not documents:
            return []
        names = self.update(documents, **options).names
        differ = {*names.added, *names.changed, *names.removed, *chain(*names.renamed)}
        return [document.doc_id in differ for document in documents]

    def delete(
        self,
        *documents: str,
        hierarchy: "Hierarchy | None" = None,
        llm: "LLMLike | None" = None,
        dry_run: bool = False,
        progress: "Progress | None" = None,
        **llm_options: Any,
    ) -> "BuildReport":
        """Delete documents, and update the tree.

        Earlier generations are removed, so that no file of the index contains the deleted text.

        Parameters
        ----------
        *documents : str
            Ids of documents. A mailbox is deleted with its e-mails, and an e-mail with its
            attachments. Later updates skip these documents, even if their folder is passed, until
            their files are passed by name.
        hierarchy, llm, dry_run, progress, **llm_options
            As in `update`.

        Returns
        -------
        BuildReport
            It is also set as `last_build`, unless `dry_run`.

        Raises
        ------
        InputError
            If a document is not in the index, or no document would remain. Any error that `update`
            raises is possible here, too.
        """
        from hierindex.jobs.sources import without

        if not documents:
            raise InputError("Name the documents to delete.")
        given = self._given(hierarchy, llm, progress, llm_options, purge=True)
        return self._revise("delete", partial(without, documents), given, dry_run=dry_run)

    def delete_ref_doc(
        self, ref_doc_id: str, delete_from_docstore: bool = False, **options: Any
    ) -> None:
        """Delete one document, as `delete` does; `delete_from_docstore` has no effect."""
        self.delete(ref_doc_id, **options)

    def regrow(
        self,
        hierarchy: "Hierarchy | None" = None,
        *,
        llm: "LLMLike | None" = None,
        progress: "Progress | None" = None,
        **llm_options: Any,
    ) -> "BuildReport":
        """Rebuild the tree over the chunks of the index.

        Use it after an `IngestionPipeline` has changed the index, which may leave stale nodes or
        several trees.

        Parameters
        ----------
        hierarchy : Hierarchy, optional
            By default made from the settings that the index stores. Any hierarchy with the same
            embedding model may be passed.
        llm, progress, **llm_options
            As in `update`.

        Returns
        -------
        BuildReport
            It is also set as `last_build`.

        Raises
        ------
        InputError
            If the hierarchy uses another embedding model, or the default hierarchy cannot be made
            from the stored settings.
        ModelError, SummaryError, LimitError
            As in `update`.
        """
        from hierindex.jobs.sources import without

        given = self._given(hierarchy, llm, progress, llm_options, may_differ=True)
        return self._revise("regrow", partial(without, ()), given)

    def watch(
        self,
        sources: "str | Path | Sequence[str | Path] | None" = None,
        *,
        failed: "Failed | None" = None,
        hierarchy: "Hierarchy | None" = None,
        llm: "LLMLike | None" = None,
        splitter: "NodeParser | None" = None,
        purge: bool = False,
        progress: "Progress | None" = None,
        **llm_options: Any,
    ) -> "Iterator[BuildReport]":
        """Update the index, then again whenever files change; yield a report of each update.

        Changes less than a quarter of a second apart are combined into one update. Hidden files and
        binary data are ignored, as in `update`. The models are loaded once. The first update runs
        when the first report is requested. The iterator never ends by itself.

        Parameters
        ----------
        sources : str or Path, or a sequence of them, optional
            As in `update`. If one disappears, updates fail until it is back.
        failed : callable, optional
            Called with the `HierindexError` when an update fails, for example because a language
            model does not answer. It is not called again if retries fail in the same way. The
            update is retried at the next change, or after 30 seconds unless the token limit was
            reached. By default the error is raised.
        hierarchy, llm, splitter, purge, progress, **llm_options
            As in `update`.

        Yields
        ------
        BuildReport
            One for each update, even if nothing has changed.

        Raises
        ------
        SourceError
            If a source cannot be found, or the index has no files to watch.
        InputError
            If an argument contradicts the settings of the index, a required model is not passed, or
            the system cannot watch the sources.
        """
        from hierindex.jobs.watch import watched

        given = self._given(hierarchy, llm, progress, llm_options, splitter=splitter, purge=purge)
        return watched(self.table, self.update, sources, failed, given)

    def verify(self, *, repair: bool = False) -> "Verification":
        """Check the integrity of files, links, texts, quotes, vectors and search indices.

        Parameters
        ----------
        repair : bool
            Whether to delete a damaged cache and to recreate missing, damaged or incomplete search
            indices. False by default.

        Returns
        -------
        Verification
            Problems are reported in it, not raised.

        Raises
        ------
        IndexNotFoundError, FormatError
            If there is no index, or another version of hierindex wrote it.
        """
        from hierindex.verify import verify

        return verify(self.table, repair=repair)

    def _given(
        self,
        hierarchy: "Hierarchy | None",
        llm: "LLMLike | None",
        progress: "Progress | None",
        llm_options: dict[str, Any],
        **options: Any,
    ) -> "UpdateOptions":
        from hierindex.jobs.build import UpdateOptions

        return UpdateOptions(hierarchy, self._embed_model, llm, progress, llm_options, **options)

    def _revise(
        self, what: str, change: "Revise", given: "UpdateOptions", *, dry_run: bool = False
    ) -> "BuildReport":
        from hierindex.jobs.build import revise

        report = revise(self.table, what, change, given, dry_run=dry_run)
        self.last_build = self.last_build if dry_run else report
        return report

    @on_newest
    def _node(self, node_id: str) -> "Node":
        return self.table.snapshot().node_beginning(node_id)


@cache
def _loaded(name: str, precision: "Precision") -> "EmbedModel":
    """Load a model, which all indexes of this process share."""
    try:
        # The CPU backend does not import torch, which takes longer than the query.
        return load_encoder(name, device="cpu", precision=precision)
    except ModelError as error:
        raise ModelError(
            f"The index was built with the embedding model {name!r}, which cannot be "
            "loaded by name; pass it as embed_model=."
        ) from error
