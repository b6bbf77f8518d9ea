"""The LlamaIndex retriever of a tree."""

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from threading import BoundedSemaphore
from typing import Self

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.embed.embedder import named_errors
from hierindex.embed.openvino import Reranker
from hierindex.errors import without_password
from hierindex.retrieve.levels import Level
from hierindex.retrieve.question import By
from hierindex.retrieve.retrieval import TOKEN_BUDGET, Mode, Question, Retrieval, check_question
from hierindex.retrieve.retrieved import placed, retrieved_nodes
from hierindex.store.filters import Filters
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import in_daemon_thread

_searching = BoundedSemaphore(os.cpu_count() or 1)  # questions of event loops, searched at once


class HierarchyRetriever(BaseRetriever):
    """A LlamaIndex retriever that finds the nodes of a tree most similar to a question.

    Each result is a `RetrievedNode` with its path to the root. Nodes of equal text are one result
    with the places of all.

    Parameters
    ----------
    store : HierarchyStore
    embed_model : BaseEmbedding
        The model that the tree was built with.
    mode : {"auto", "collapsed", "level", "traversal", "document"}, optional
        What to search: "auto", the chunks, unless the question is about the whole, or about
        documents that it names, which an outline of them answers (`by` and `rerank` do not
        change it), and only those of documents that the question names by file name or id, with
        the first chunks of the best documents if it asks who wrote something; "collapsed", all
        levels; "level", the nodes at `level`; "traversal", those under the best nodes above, from
        the roots down; "document", the chunks of the documents with the best summaries. By default
        "auto", or if `level` is given, "level", where above the chunks an outline of this level
        answers such questions.
    level : int or str, or a sequence of them, optional
        Levels to search, 0 or "chunks" for the chunks, "top" for the highest level, "documents"
        for the summary of each document, or "sections" for the highest node of each section; see
        Notes. Several, of numbers, "chunks" and "top", only with mode "level". A node promoted
        to a higher level belongs to it, too.
    top_k : int, optional
        Maximum number of results; by default 10, and of an outline what fits the token budget.
    token_budget : int, optional
        Maximum total tokens of the results, which are added best first; None for no limit, which
        for an outline is 2,000.
    filters : MetadataFilters, optional
        Metadata filters that every result must pass. A summary passes if every chunk under it
        does; see `HierarchyStore`.
    partial_summaries : bool
        Whether one passing chunk is enough for a summary. Its text may then reveal excluded
        chunks.
    by : {"dense", "hybrid", "text", "context"}, optional
        "dense" scores by vectors, "text" by words, "hybrid" by both, "context" also by neighbours
        in reading order (single level only). By default "context" in mode "auto", otherwise
        "dense". The first three are the modes `default`, `hybrid` and `text_search` of
        `HierarchyStore`.
    beam : int, optional
        With mode "traversal": number of nodes kept at each step; `top_k` by default.
    n_documents : int, optional
        With mode "document": number of documents to search; 3 by default.
    whole_documents : bool
        With mode "document": whether all chunks of its documents are returned in reading order,
        within the token budget, instead of the best `top_k`.
    rerank : str or Reranker, optional
        A sentence-transformers cross-encoder, by name or folder, or an object with
        `rank(question, texts) -> scores`. Chunks are then ordered by the mean of its score and
        that of the search, of at least 25 candidates. An outline is not reranked.
        See `load_reranker` to load a model once for several retrievers.
    postprocessors : sequence of BaseNodePostprocessor
        Applied in turn to the selected nodes, as in LlamaIndex; what the last one returns is the
        result, in its order. One that drops nodes needs a larger `top_k`.

    Raises
    ------
    InputError
        If options cannot be combined or a number is out of range; while retrieving, if no chunk
        has a key of the filters.
    ModelError
        If the cross-encoder cannot be loaded.
    LevelError
        While retrieving, if the tree does not have the level.

    Notes
    -----
    At level "documents", a document's node is the highest one that stands on all of the document
    and on nothing else, which may be a chunk. At level "sections", it is the highest one whose
    chunks share more titles than all chunks of their document do, or are all of one section;
    chunks under no such node belong to the level themselves.

    What a score means depends on the search, and so does a sensible cutoff of LlamaIndex's
    `SimilarityPostprocessor`:

    =================  ======================================================
    by "dense"         cosine similarity
    by "hybrid"        reciprocal rank fusion, in [0, 1]
    by "text"          BM25
    by "context"       standard deviations above the mean of the candidates
    with `rerank`      standard deviations from the mean of the candidates
    `whole_documents`  cosine similarity of the document's summary
    an outline         share of the text that the node tells of
    =================  ======================================================
    """

    def __init__(
        self,
        store: HierarchyStore,
        embed_model: BaseEmbedding,
        *,
        mode: Mode | None = None,
        level: Level | Sequence[Level] | None = None,
        top_k: int | None = None,
        token_budget: int | None = TOKEN_BUDGET,
        filters: MetadataFilters | None = None,
        partial_summaries: bool = False,
        by: By | None = None,
        beam: int | None = None,
        n_documents: int | None = None,
        whole_documents: bool = False,
        rerank: str | Reranker | None = None,
        postprocessors: Sequence[BaseNodePostprocessor] = (),
    ) -> None:
        super().__init__()
        self.store = store
        self.retrieval = Retrieval(
            store,
            embed_model,
            mode=mode,
            level=level,
            top_k=top_k,
            token_budget=token_budget,
            filters=Filters.of(filters),
            partial_summaries=partial_summaries,
            by=by,
            beam=beam,
            n_documents=n_documents,
            whole_documents=whole_documents,
            rerank=rerank,
        )
        self._embed_model = embed_model
        self.postprocessors = postprocessors

    def __repr__(self) -> str:
        """Return the address of the index, without a password, and what is searched."""
        searched = self.retrieval
        level = f", level={[*searched.levels]}" if searched.levels else ""
        uri = without_password(self.store.uri)
        return f"{type(self).__name__}({uri!r}, mode={searched.mode!r}{level})"

    def narrowed(self, top_k: int | None = None, filters: MetadataFilters | None = None) -> Self:
        """Return this retriever with another `top_k`, or with filters besides its own."""
        return self._with(self.retrieval.narrowed(top_k, Filters.of(filters)))

    def others(self) -> Self:
        """Exclude the documents that the question names; find nothing if it names none."""
        return self._with(self.retrieval.others())

    def _with(self, retrieval: Retrieval) -> Self:
        retriever = copy(self)
        retriever.retrieval = retrieval
        return retriever

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        model, questions = self._embed_model, query_bundle.embedding_strs
        if query_bundle.embedding is None:
            check_question(" ".join(questions))
        with named_errors(model):
            embedding = query_bundle.embedding or model.get_agg_embedding_from_queries(questions)
        retrieved = self.retrieval.find(Question(query_bundle.query_str, embedding))
        found: list[NodeWithScore] = [*retrieved_nodes(retrieved)]
        for postprocessor in self.postprocessors:
            found = postprocessor.postprocess_nodes(found, query_bundle)
        return [*placed(found, retrieved)] if self.postprocessors else found

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if query_bundle.embedding is None:
            model, questions = self._embed_model, query_bundle.embedding_strs
            check_question(" ".join(questions))
            with named_errors(model):
                embedding = await model.aget_agg_embedding_from_queries(questions)
            query_bundle = replace(query_bundle, embedding=embedding)

        def searched() -> list[NodeWithScore]:
            with _searching:
                return self._retrieve(query_bundle)

        return await in_daemon_thread(searched)
