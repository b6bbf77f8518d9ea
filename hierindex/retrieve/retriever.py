"""The LlamaIndex retriever of a tree, and the nodes that it returns."""

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from threading import BoundedSemaphore
from typing import ClassVar

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import ConfigDict, Field
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from hierindex.errors import without_password
from hierindex.models.embedder import named_errors
from hierindex.node import SHOWN, Found, Span
from hierindex.retrieve.retrieval import Question, Retrieval, Retrieved, check_question
from hierindex.store.snapshot import Snapshot
from hierindex.store.vector_store import HierarchyStore
from hierindex.text.display import passage_html
from hierindex.text_node import from_text_node, to_text_node
from hierindex.threads import in_daemon_thread
from hierindex.unsafe import beginning


class RetrievedNode(NodeWithScore):
    """A `NodeWithScore` with its path in the tree.

    Parameters
    ----------
    path : list[str]
        Ids of the ancestors, starting with the parent with the highest weight; empty for a root.
    why : str, optional
        Why mode "auto" chose chunks or an outline.
    share : float, optional
        In an outline, the share of the outlined text that is under the node, in [0, 1].
    snapshot : Snapshot, optional
        The generation in which the node was found.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(arbitrary_types_allowed=True)

    path: list[str] = Field(default_factory=list)
    why: str | None = None
    share: float | None = None
    snapshot: Snapshot | None = Field(default=None, exclude=True, repr=False)

    @property
    def citations(self) -> list[Span]:
        """Spans of the documents that support the text."""
        return from_text_node(self.node).citations

    def __repr__(self) -> str:
        """Return the score, the level, the place and the beginning of the text."""
        node = from_text_node(self.node)
        text = beginning(node.text, SHOWN)
        score = f"{self.score or 0:.2f}"
        return f"RetrievedNode(score={score}, level={node.level}, {node.place!r}, {text!r})"

    def _repr_html_(self) -> str:
        node = from_text_node(self.node)
        head = f"{node.place} (score {self.score or 0:.2f}, level {node.level})"
        return passage_html(node.text, head)


def retrieved_of(question: Question, nodes: Sequence[NodeWithScore]) -> Retrieved:
    """Convert LlamaIndex's nodes to the nodes retrieved for a question."""
    placed = [node for node in nodes if isinstance(node, RetrievedNode)]
    return Retrieved(
        question,
        next((node.snapshot for node in placed), None),
        [Found(from_text_node(each.node), each.score or 0.0) for each in nodes],
        next((node.why for node in placed), None),
        {node.node_id: node.share for node in placed if node.share is not None},
    )


def retrieved_nodes(retrieved: Retrieved) -> list[RetrievedNode]:
    """Convert retrieved nodes to LlamaIndex's nodes."""
    nodes = [NodeWithScore(node=to_text_node(node), score=score) for node, score in retrieved.found]
    return placed(nodes, retrieved)


def placed(nodes: Sequence[NodeWithScore], retrieved: Retrieved) -> list[RetrievedNode]:
    """Return nodes with their paths in the tree; postprocessors may have replaced the nodes."""
    found = {node.id: node for node, _ in retrieved.found}
    return [
        RetrievedNode(
            node=each.node,
            score=each.score,
            path=retrieved.path(found.get(each.node_id) or from_text_node(each.node)),
            why=retrieved.why,
            share=retrieved.shares.get(each.node_id),
            snapshot=retrieved.snapshot,
        )
        for each in nodes
    ]


_searching = BoundedSemaphore(os.cpu_count() or 1)  # questions of event loops, searched at once


@dataclass(eq=False, repr=False)
class HierarchyRetriever(Retrieval, BaseRetriever):
    """A LlamaIndex retriever that finds the nodes of a tree most similar to a question.

    Each result is a `RetrievedNode` with its path to the root. Nodes with the same text are
    returned as one result that cites the positions of all of them.

    Parameters
    ----------
    store : HierarchyStore
    embed_model : BaseEmbedding or callable
        The model that the tree was built with.
    mode : {"auto", "collapsed", "level", "traversal", "document"}, optional
        What to search. "auto" by default, or "level" if `level` is given:

        * "auto": the chunks. If the question names documents by file name or id, only their chunks;
          if it asks who wrote something, also the first chunks of the best documents. A question
          about the whole index, or about all of a document or folder that it names, gets an outline
          instead, which ignores `by` and `rerank`.
        * "collapsed": the nodes of all levels.
        * "level": the nodes at `level`. If `mode` is omitted and `level` is not 0, questions that
          name documents or ask about the whole index are handled as in "auto", but with nodes of
          this level instead of chunks, if there are any.
        * "traversal": from the roots down, only the children of the best nodes of each step.
        * "document": the chunks of the documents with the best summaries.
    level : int or str, or a sequence of them, optional
        Levels to search: a number (0 is the chunks), "chunks", "top" for the highest level,
        "documents" for the summary of each document, or "sections" for the highest node of each
        section; see Notes. In mode "level", numbers, "chunks" and "top" can be combined in a
        sequence. A node that is not grouped with others passes unchanged to the next level, and
        belongs to both.
    top_k : int, optional
        Maximum number of results; 10 by default, 20 for an outline.
    token_budget : int, optional
        Maximum number of tokens in all results together, which are added best first; 2,000 by
        default. None means no limit, except for an outline, which then has at most 2,000. Counted
        by LlamaIndex's global tokenizer.
    filters : MetadataFilters, optional
        Metadata filters that every result must pass. A summary passes if every chunk under it
        does; see `HierarchyStore`.
    partial_summaries : bool
        Whether a summary passes if any chunk under it does. Its text may then reveal
        excluded chunks. False by default.
    by : {"dense", "hybrid", "text", "context"}, optional
        How to score: "dense" by vectors, "hybrid" by vectors and words, "text" by words (BM25), or
        "context" by vectors and words, with each node's score raised by those of its document's
        other nodes, most by its neighbours in reading order (only if one level is searched). By
        default "context" in mode "auto", otherwise "dense". The first three are the modes
        `default`, `hybrid` and `text_search` of `HierarchyStore`.
    beam : int, optional
        With mode "traversal": number of nodes kept at each step; by default `top_k` if given, else
        10.
    n_documents : int, optional
        With mode "document": number of documents to search; 3 by default.
    whole_documents : bool
        With mode "document": whether to return all chunks of these documents in reading order,
        within the token budget, instead of the best `top_k`. False by default.
    rerank : str or Reranker, optional
        Name or folder of a sentence-transformers cross-encoder, or an object with
        `rank(question, texts) -> scores`. The best `max(top_k, 25)`
        chunks are then ordered by the mean of the reranker's and the search's standardised scores.
        An outline is not reranked. See `load_reranker` to load a model once for several retrievers.
    postprocessors : sequence of BaseNodePostprocessor, optional
        Applied in turn to the selected nodes, as in LlamaIndex. The last one determines the results
        and their order. If they drop nodes, pass a larger `top_k`.

    Raises
    ------
    InputError
        If options cannot be combined or a number is out of range. While retrieving, if no chunk
        has the key of a filter, or no result fits `token_budget`.
    ModelError
        If the cross-encoder cannot be loaded.
    LevelError
        While retrieving, if the tree does not have the level.

    Notes
    -----
    Level "documents" has, for each document, the highest node whose chunks are exactly those of the
    document; it may be a chunk. Level "sections" has the highest nodes that lie within one section
    or subsection, and the chunks that none of them covers. A document's title is not a section.

    What a score means depends on the search, and so does a sensible cutoff for LlamaIndex's
    `SimilarityPostprocessor`:

    =================  ======================================================
    by "dense"         cosine similarity
    by "hybrid"        reciprocal rank fusion, in [0, 1]
    by "text"          BM25
    by "context"       standard deviations from the mean of the candidates
    with `rerank`      standard deviations from the mean of the candidates
    `whole_documents`  cosine similarity of the document's summary
    an outline         share of the outlined text under the node
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
