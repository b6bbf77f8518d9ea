"""The LlamaIndex retriever of a tree."""

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from threading import BoundedSemaphore

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from hierindex.errors import without_password
from hierindex.models.embedder import named_errors
from hierindex.retrieve.retrieval import Question, Retrieval, check_question
from hierindex.retrieve.retrieved import placed, retrieved_nodes
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import in_daemon_thread

_searching = BoundedSemaphore(os.cpu_count() or 1)  # questions of event loops, searched at once


@dataclass(eq=False, repr=False)
class HierarchyRetriever(Retrieval, BaseRetriever):
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
        Maximum number of results; by default 10, and 20 parts of an outline.
    token_budget : int, optional
        Maximum total tokens of the results, which are added best first, and of the sentences of an
        outline; None for no limit, which for an outline is 2,000.
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
    postprocessors : sequence of BaseNodePostprocessor, optional
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

    store: HierarchyStore
    embed_model: BaseEmbedding
    _: KW_ONLY
    postprocessors: Sequence[BaseNodePostprocessor] | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        BaseRetriever.__init__(self)
        super().__post_init__()

    def __repr__(self) -> str:
        """Return the address of the index, without a password, and what is searched."""
        level = f", level={[*self.levels]}" if self.levels else ""
        uri = without_password(self.store.uri)
        return f"{type(self).__name__}({uri!r}, mode={self.mode!r}{level})"

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        model, questions = self.embed_model, query_bundle.embedding_strs
        if query_bundle.embedding is None:
            check_question(" ".join(questions))
        with named_errors(model):
            embedding = query_bundle.embedding or model.get_agg_embedding_from_queries(questions)
        retrieved = self.find(Question(query_bundle.query_str, embedding))
        found: list[NodeWithScore] = [*retrieved_nodes(retrieved)]
        for postprocessor in self.postprocessors or ():
            found = postprocessor.postprocess_nodes(found, query_bundle)
        return [*placed(found, retrieved)] if self.postprocessors else found

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if query_bundle.embedding is None:
            model, questions = self.embed_model, query_bundle.embedding_strs
            check_question(" ".join(questions))
            with named_errors(model):
                embedding = await model.aget_agg_embedding_from_queries(questions)
            query_bundle = replace(query_bundle, embedding=embedding)

        def searched() -> list[NodeWithScore]:
            with _searching:
                return self._retrieve(query_bundle)

        return await in_daemon_thread(searched)
