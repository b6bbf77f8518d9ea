"""The retriever: its options, and the steps from a question to scored nodes."""

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from threading import BoundedSemaphore
from typing import Literal, Self, get_args

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.core.arguments import is_whole, require
from hierindex.core.membership import Floats1d
from hierindex.core.ranking import blended
from hierindex.embed.embedder import named_errors
from hierindex.embed.load import load_reranker
from hierindex.embed.model_identity import check_same_model
from hierindex.embed.openvino import Reranker
from hierindex.errors import InputError
from hierindex.retrieve.auto import Choice, choose, chosen, narrowed, outlined
from hierindex.retrieve.copies import best_texts, without_copies
from hierindex.retrieve.documents import all_of_documents, best_of_documents
from hierindex.retrieve.levels import Level, check_levels, check_mode, cut_of, levels_of, numbers
from hierindex.retrieve.question import BY, By, Search
from hierindex.retrieve.retrieved import placed
from hierindex.retrieve.selection import check_budget, complete_parents, selected
from hierindex.retrieve.traversal import traversal
from hierindex.settings import MODE_OF
from hierindex.store.generations import on_newest
from hierindex.store.passing import with_known_keys
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import in_daemon_thread

Mode = Literal["auto", "collapsed", "level", "traversal", "document"]
MODES: tuple[Mode, ...] = get_args(Mode)
TOP_K = 10
TOKEN_BUDGET = 2000  # RAPTOR's, for collapsed retrieval
N_DOCUMENTS = 3
SPARE = 2  # candidates per result, where overlap drops some
CANDIDATES = 25  # at least; a cross-encoder reads each together with the question
SHARE = 0.5  # of the cross-encoder's score; not tuned
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
        change it), and only those of documents that the question names by file
        name or id; "collapsed", all levels; "level", the nodes at `level`;
        "traversal", those under the best nodes above, from the roots down; "document", the chunks
        of the documents with the best summaries. By default "auto", or if `level` is given,
        "level", where above the chunks an outline of this level answers such questions.
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
        levels = levels_of(level)
        self.mode: Mode = mode or ("level" if levels else "auto")
        require(self.mode in MODES, "mode", f"one of {', '.join(MODES)}", mode)
        check_mode(self.mode, levels)
        self._others = False
        self._may_outline = mode in (None, "auto") and levels != (0,)
        self._by: By = by or ("context" if self.mode == "auto" else "dense")
        require(self._by in BY, "by", f"one of {', '.join(BY)}", by)
        if by == "context" and (self.mode == "collapsed" or len(levels) > 1):
            raise InputError("by='context' cannot search several levels; name one, or omit mode.")
        of_modes = {"beam": beam, "n_documents": n_documents}
        for name, count in {"top_k": top_k, "token_budget": token_budget, **of_modes}.items():
            valid = count is None or is_whole(count, 1)
            require(valid, name, "an integer of at least 1", count)
        for name, option in {**of_modes, "whole_documents": whole_documents}.items():
            if option and self.mode != MODE_OF[name]:
                raise InputError(f"{name} needs mode {MODE_OF[name]!r}, got mode {self.mode!r}.")
        if rerank is not None:
            check_rerank(rerank, self.mode, levels, whole_documents)
        self.store = store
        self._embed_model = embed_model
        self.levels = levels
        self._top_k = top_k
        self._token_budget = token_budget
        self.filters = filters if filters and filters.filters else None
        self.partial_summaries = partial_summaries
        self._beam = beam or top_k or TOP_K
        self._n_documents = n_documents or N_DOCUMENTS
        self._whole_documents = whole_documents
        self._reranker = load_reranker(rerank) if isinstance(rerank, str) else rerank
        self.postprocessors = postprocessors

    def narrowed(self, top_k: int | None = None, filters: MetadataFilters | None = None) -> Self:
        """Return this retriever with another `top_k`, or with filters besides its own."""
        require(top_k is None or is_whole(top_k, 1), "top_k", "an integer of at least 1", top_k)
        narrow = copy(self)
        narrow._top_k = top_k or self._top_k
        if filters and filters.filters:
            narrow.filters = MetadataFilters(filters=[f for f in (self.filters, filters) if f])
        return narrow

    def others(self) -> Self:
        """Return a retriever of other documents than a question names; if of none, of nothing."""
        retriever = copy(self)
        retriever._others = True
        return retriever

    @on_newest
    def check_budget(self) -> None:
        """Raise InputError if no node asked for fits a token budget below the default."""
        if self._token_budget is not None and self._token_budget < TOKEN_BUDGET:
            check_budget(self.store.snapshot(), self.levels, self._token_budget)

    def search(self, query_bundle: QueryBundle) -> Search:
        """Embed a question and prepare a search of the current snapshot."""
        _check_question(query_bundle)
        model, questions = self._embed_model, query_bundle.embedding_strs
        with named_errors(model):
            embedding = query_bundle.embedding or model.get_agg_embedding_from_queries(questions)
        return self._search(query_bundle, embedding)

    @on_newest
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        search = self.search(query_bundle)
        found, choice = self._results(search)
        told = chosen(found, choice)
        for postprocessor in self.postprocessors:
            found = postprocessor.postprocess_nodes(found, query_bundle)
        return [*placed(found, search.snapshot, *told)]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        _check_question(query_bundle)
        if query_bundle.embedding is None:
            model, questions = self._embed_model, query_bundle.embedding_strs
            with named_errors(model):
                embedding = await model.aget_agg_embedding_from_queries(questions)
            query_bundle = replace(query_bundle, embedding=embedding)

        def searched() -> list[NodeWithScore]:
            with _searching:
                return self._retrieve(query_bundle)

        return await in_daemon_thread(searched)

    def _search(self, query_bundle: QueryBundle, embedding: list[float]) -> Search:
        """Prepare a search of the current snapshot."""
        snapshot = self.store.snapshot()
        snapshot.check_dimension(len(embedding))
        if snapshot.exists:
            built = snapshot.record()
            check_same_model(self._embed_model, built.embed_model, built.embed_settings)
        filters = self.filters and with_known_keys(snapshot, self.filters, strict=True)
        return Search(
            snapshot,
            query_bundle.query_str,
            embedding,
            self._by,
            filters,
            self.partial_summaries,
        )

    def _results(self, search: Search) -> tuple[list[NodeWithScore], Choice | None]:
        """Return the results, best first, and the choice of "auto"."""
        choice = None
        if self._may_outline and search.snapshot.exists:
            choice = choose(search, self._embed_model, self.levels)
            if choice.outline:
                budget = self._token_budget or TOKEN_BUDGET
                found = outlined(search, choice, self.levels, budget, self._top_k)
                return selected(found, self._top_k, self._token_budget), choice
            choice = None if self.levels else choice
        if choice and choice.documents:
            search, choice = narrowed(search, choice, others=self._others)
        elif self._others:
            return [], None
        found = self._found(search)
        if self.levels and (not found or len(self.levels) > 1):
            check_levels(search.snapshot, self.levels)
        top_k = None if self._whole_documents else self._top_k or TOP_K
        found = selected(without_copies(found, search), top_k, self._token_budget)
        return found, choice

    def _found(self, search: Search) -> list[NodeWithScore]:
        """Return the best nodes with their copies, and spare ones if some will be dropped."""
        if self._whole_documents:
            return all_of_documents(search, n_documents=self._n_documents)
        best, top_k = partial(self._best, search), self._top_k or TOP_K
        if self._reranker is not None:
            candidates = best_texts(best, max(top_k, CANDIDATES))
            return reranked(candidates, search.question, self._reranker)
        found = best_texts(best, top_k)
        return best_texts(best, SPARE * top_k) if complete_parents(found) else found

    def _best(self, search: Search, n: int) -> list[NodeWithScore]:
        match self.mode:
            case "traversal":
                level = max(numbers(search.snapshot, self.levels), default=0)
                return traversal(search, n, beam=self._beam, level=level)
            case "document":
                return best_of_documents(search, n, n_documents=self._n_documents)
            case "collapsed":
                return search.best(n)
        cut = cut_of(search.snapshot, self.levels or (0,))
        return search.best(n, cut.filters, highest_of=cut.highest_of)


def _check_question(query_bundle: QueryBundle) -> None:
    if query_bundle.embedding is None and not any(map(str.strip, query_bundle.embedding_strs)):
        raise InputError("The question is empty; pass some text.")


def reranked(
    found: Sequence[NodeWithScore], question: str, reranker: Reranker
) -> list[NodeWithScore]:
    """Order nodes by the mean of a cross-encoder's scores and their own, both standardised.

    The cross-encoder reads the text that was embedded. Returned scores are standard deviations
    from the mean.

    Raises
    ------
    InputError
        If the reranker does not return one finite number per text.
    """
    if not found:
        return []
    texts = [node.get_content(MetadataMode.EMBED) for node in found]
    distinct = list(dict.fromkeys(texts))
    scores = _checked(reranker.rank(question, distinct), len(distinct))
    score_of = dict(zip(distinct, scores, strict=True))
    mixed = blended(
        np.array([score_of[text] for text in texts]),
        np.array([node.get_score() for node in found]),
        SHARE,
    )
    return [
        NodeWithScore(node=found[i].node, score=float(mixed[i]))
        for i in np.argsort(-mixed, kind="stable")
    ]


def check_rerank(rerank: object, mode: str, levels: Sequence[Level], whole: bool) -> None:
    """Raise InputError if an option is not a reranker, or cannot be combined with others."""
    model = isinstance(rerank, str) or callable(getattr(rerank, "rank", None))
    require(model, "rerank", "a model's name or an object with rank(question, texts)", rerank)
    if mode == "collapsed" or any(levels):
        given = f"mode={mode!r}" if mode == "collapsed" else f"level {levels[-1]}"
        raise InputError(f"rerank scores chunks only, got {given}; use level=0, or omit rerank.")
    if whole:
        raise InputError("rerank cannot be combined with whole_documents; omit one of them.")


def _checked(scores: Sequence[float], n: int) -> Floats1d:
    try:
        x = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        x = np.zeros(0)
    if x.shape != (n,) or not np.isfinite(x).all():
        raise InputError(
            f"rerank must return a finite number for each of {n} texts, got {scores!r:.100}."
        )
    return x
