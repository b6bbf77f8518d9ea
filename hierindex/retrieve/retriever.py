"""From a question to nodes: candidates of some levels, best first, as many as are to be read."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.base_selector import BaseSelector
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.core.arguments import is_number, is_whole, require
from hierindex.embed.embedder import check_same_model
from hierindex.embed.failures import named_errors
from hierindex.errors import InputError, LevelError
from hierindex.retrieve.auto import Choice, choose_levels, select_levels
from hierindex.retrieve.documents import all_of_documents, best_of_documents
from hierindex.retrieve.merging import merged
from hierindex.retrieve.retrieved import placed
from hierindex.retrieve.search import BY, By, Search, cuts
from hierindex.retrieve.selection import selected, told
from hierindex.retrieve.traversal import traversal
from hierindex.store.snapshot import Snapshot
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import run_apart, wait_for

Mode = Literal["collapsed", "level", "traversal", "document", "auto"]
MODES: tuple[Mode, ...] = get_args(Mode)
WITH_LEVEL = ("level", "traversal")
TOP_K = 10
TOKEN_BUDGET = 2000  # RAPTOR's, for collapsed retrieval
N_DOCUMENTS = 3
SPARE = 2  # candidates for each node that is taken, where some are merged, or told by others


class Asked(NamedTuple):
    """Candidates, the version of the table they are of, and why of their levels."""

    found: list[NodeWithScore]
    snapshot: Snapshot
    why: str | None
    above: Mapping[str, Sequence[str]]

    def placed(self, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """Some of the candidates, with their places."""
        return [*placed(nodes, self.above, why=self.why, snapshot=self.snapshot)]


class HierarchyRetriever(BaseRetriever):
    """Nodes of a tree that are most like a question, each with its path to the root.

    Parameters
    ----------
    store : HierarchyStore
    embed_model : BaseEmbedding
        The one that the tree was built with.
    mode : {"collapsed", "level", "traversal", "document", "auto"}, optional
        All levels together; the cut at `level`; from the roots down to `level`, along the best;
        documents by their summaries, and their chunks; or the levels that the scores, or the
        `selector`, choose for the question. By default "collapsed", or "level" if one is given.
    level : int or sequence of int, optional
        0 for chunks, upwards; several only with mode "level". A node that passed up a level
        belongs to that cut, too.
    top_k : int
        Nodes at most.
    token_budget : int, optional
        Tokens at most of all nodes together, of which as many are taken as fit; None for no bound.
    filters : MetadataFilters, optional
        Metadata filters that every result must pass; a summary passes if every chunk under it
        does. See `HierarchyStore`.
    partial_summaries : bool
        Whether a summary passes if any chunk under it does. Its text then also says what chunks
        say that do not pass.
    by : {"dense", "hybrid", "text", "context"}
        Whether meaning, words or both count, or both and what stands around a node in reading
        order; see `HierarchyStore` for the scores of the first three, `hierindex.core.context`
        for those of the last, which compares nodes of one level.
    beam : int, optional
        Nodes that a traversal keeps at each step; `top_k` by default.
    n_documents : int
        Documents that mode "document" reads.
    whole_documents : bool
        Whether it returns all their chunks in their order, as far as the budget goes, and not
        the best `top_k`.
    merge : bool
        Whether a parent takes the place of its children where more than half of them are found.
    mmr : float in [0, 1], optional
        Maximal marginal relevance: 1 orders by likeness to the question alone, 0 by unlikeness
        to what stands before. None leaves the order as it is.
    selector : BaseSelector, optional
        LlamaIndex's `LLMMultiSelector` and the like, to choose the levels of mode "auto".
    postprocessors : sequence of BaseNodePostprocessor
        See the candidates, twice `top_k`, before the best of them are taken.

    Raises
    ------
    InputError
        If options do not go together, or a number is out of its range.
    LevelError
        While retrieving, if the tree has no such level.
    """

    def __init__(
        self,
        store: HierarchyStore,
        embed_model: BaseEmbedding,
        *,
        mode: Mode | None = None,
        level: int | Sequence[int] | None = None,
        top_k: int = TOP_K,
        token_budget: int | None = TOKEN_BUDGET,
        filters: MetadataFilters | None = None,
        partial_summaries: bool = False,
        by: By = "dense",
        beam: int | None = None,
        n_documents: int = N_DOCUMENTS,
        whole_documents: bool = False,
        merge: bool = False,
        mmr: float | None = None,
        selector: BaseSelector | None = None,
        postprocessors: Sequence[BaseNodePostprocessor] = (),
    ) -> None:
        super().__init__()
        levels = levels_of(level)
        self._mode = mode or ("level" if levels else "collapsed")
        require(self._mode in MODES, "mode", f"one of {', '.join(MODES)}", mode)
        _check_levels(self._mode, levels)
        require(by in BY, "by", f"one of {', '.join(BY)}", by)
        if by == "context" and (self._mode in ("collapsed", "auto") or len(levels) > 1):
            raise InputError("by 'context' needs one level, or mode traversal or document.")
        counts = {"top_k": top_k, "n_documents": n_documents}
        given = {"token_budget": token_budget, "beam": beam}
        counts |= {name: count for name, count in given.items() if count is not None}
        for name, count in counts.items():
            require(is_whole(count, 1), name, "an integer of at least 1", count)
        if whole_documents and (merge or mmr is not None):
            raise InputError(
                "whole_documents keeps chunks and their order; leave out merge and mmr."
            )
        within = mmr is None or (is_number(mmr) and 0 <= mmr <= 1)
        require(within, "mmr", "a number in [0, 1]", mmr)
        self.store = store
        self._embed_model = embed_model
        self.levels = levels
        self._top_k = top_k
        self._token_budget = token_budget
        self.filters = filters if filters and filters.filters else None
        self.partial_summaries = partial_summaries
        self._by = by
        self._beam = beam or top_k
        self._n_documents = n_documents
        self._whole_documents = self._mode == "document" and whole_documents
        self._merge = merge
        self._mmr = mmr
        self._selector = selector
        self._postprocessors = postprocessors

    @property
    def names_level(self) -> bool:
        """Whether nodes of certain levels are asked for, as a document's chunks are."""
        return bool(self.levels) or self._mode == "document"

    def retrieve_all(self, questions: Sequence[str]) -> list[list[NodeWithScore]]:
        """What is found for each question, in order."""
        return [self.retrieve(question) for question in _several(questions)]

    async def aretrieve_all(self, questions: Sequence[str]) -> list[list[NodeWithScore]]:
        """As `retrieve_all`, all at once."""
        return await asyncio.gather(*map(self.aretrieve, _several(questions)))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        _check_question(query_bundle)
        model, questions = self._embed_model, query_bundle.embedding_strs
        with named_errors(model):
            embedding = query_bundle.embedding or model.get_agg_embedding_from_queries(questions)
        run = wait_for if self._selector is None else run_apart  # LanceDB's loop waits for no model
        asked = run(self._asked(query_bundle, embedding))
        found = asked.found
        for postprocessor in self._postprocessors:
            found = postprocessor.postprocess_nodes(found, query_bundle)
        return asked.placed(self._selected(found))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        _check_question(query_bundle)
        model, questions = self._embed_model, query_bundle.embedding_strs
        with named_errors(model):
            embedding = query_bundle.embedding or await model.aget_agg_embedding_from_queries(
                questions
            )
        asked = await self._asked(query_bundle, embedding)
        found = asked.found
        for postprocessor in self._postprocessors:
            found = await postprocessor.apostprocess_nodes(found, query_bundle)
        return asked.placed(self._selected(found))

    async def _search(self, query_bundle: QueryBundle, embedding: list[float]) -> Search:
        """The question, put to the table as it is now."""
        snapshot = await self.store.asnapshot()
        snapshot.check_dimension(len(embedding))
        if snapshot.exists:
            built = await snapshot.record()
            check_same_model(self._embed_model, built.embed_model, built.embed_settings)
        return Search(
            snapshot,
            query_bundle.query_str,
            embedding,
            self._by,
            self.filters,
            self.partial_summaries,
        )

    async def _asked(self, query_bundle: QueryBundle, embedding: list[float]) -> Asked:
        """At least the nodes that are to be read, best first."""
        search, choice = await self._search(query_bundle, embedding), None
        if self._mode == "auto":
            choice = await self._choice(search)
        found = await self._found(search, choice.levels if choice else self.levels)
        if self.levels and (not found or len(self.levels) > 1):
            await _check_there(search.snapshot, self.levels)
        if self._merge:
            found = await merged(found, search)
        if self._mmr is not None:
            found = await _diverse(found, search, self._mmr)
        above = await search.snapshot.parents_of_summaries()
        return Asked(found, search.snapshot, choice and choice.why, above)

    async def _found(self, search: Search, levels: Sequence[int]) -> list[NodeWithScore]:
        """The best nodes: more than are read where some will be merged, or told by others."""
        spare = SPARE * self._top_k
        if self._merge or self._mmr is not None or self._postprocessors:
            return await self._best(search, levels, spare)
        found = await self._best(search, levels, self._top_k)
        return await self._best(search, levels, spare) if told(found) else found

    async def _best(self, search: Search, levels: Sequence[int], n: int) -> list[NodeWithScore]:
        match self._mode:
            case "traversal":
                return await traversal(search, n, beam=self._beam, level=max(levels, default=0))
            case "document" if self._whole_documents:
                return await all_of_documents(search, n_documents=self._n_documents)
            case "document":
                return await best_of_documents(search, n, n_documents=self._n_documents)
            case "collapsed":
                return await search.best(n)
        return await search.best(n, cuts(levels))

    async def _choice(self, search: Search) -> Choice:
        if self._selector is None or not search.snapshot.exists:
            return await choose_levels(search)
        return await select_levels(search, self._selector)

    def _selected(self, found: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        top_k = None if self._whole_documents else self._top_k
        return selected(found, top_k, self._token_budget)


async def _diverse(
    found: Sequence[NodeWithScore], search: Search, mmr: float
) -> list[NodeWithScore]:
    by_id = {node.node.node_id: node for node in found}
    nodes = await search.snapshot.nodes(list(by_id))
    vectors = [node.get_embedding() for node in nodes]
    ids = [node.node_id for node in nodes]
    _, order = get_top_k_mmr_embeddings(
        search.embedding, vectors, similarity_top_k=len(ids), embedding_ids=ids, mmr_threshold=mmr
    )
    return [by_id[node_id] for node_id in order]


async def _check_there(snapshot: Snapshot, levels: Sequence[int]) -> None:
    if snapshot.exists:
        highest = await snapshot.highest_level()
        for level in levels:
            check_level(level, highest)


def check_level(level: int, highest: int) -> None:
    """Refuse a level that no node reaches.

    Raises
    ------
    LevelError
        Names the levels that there are.
    """
    if not 0 <= level <= highest:
        raise LevelError(f"The index has levels 0 to {highest}, got level {level}.")


def _several(questions: Sequence[str]) -> Sequence[str]:
    if isinstance(questions, str):
        raise InputError(f"questions must be several, got one: [{questions[:40]!r}] would do.")
    return questions


def _check_question(query_bundle: QueryBundle) -> None:
    if query_bundle.embedding is None and not any(map(str.strip, query_bundle.embedding_strs)):
        raise InputError("The question is empty; ask something.")


def levels_of(level: int | Sequence[int] | None) -> tuple[int, ...]:
    """The levels that are named, ascending.

    Raises
    ------
    InputError
        If one is no whole number.
    """
    levels = () if level is None else tuple(level) if isinstance(level, Sequence) else (level,)
    if any(type(each) is not int for each in levels):
        raise InputError(f"level must be a whole number, or several, got {level!r}.")
    return tuple(sorted(set(levels)))


def _check_levels(mode: str, levels: Sequence[int]) -> None:
    if levels and mode not in WITH_LEVEL:
        modes = " and ".join(WITH_LEVEL)
        raise InputError(f"level is for the modes {modes}, got mode {mode!r}.")
    if mode == "level" and not levels:
        raise InputError("mode 'level' needs a level: level=0 (--level 0) for chunks, upwards.")
    if mode == "traversal" and len(levels) > 1:
        raise InputError(f"mode 'traversal' ends at one level, got {list(levels)}.")
