"""A stored tree, to look into without asking for an answer."""

from collections.abc import Iterable, Mapping
from copy import copy
from inspect import signature
from threading import Lock
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError, ModelError
from hierindex.models.load import load_encoder
from hierindex.models.model import EmbedModel
from hierindex.models.model_identity import built_precision
from hierindex.models.openvino import Precision
from hierindex.node import Node
from hierindex.retrieve.outline import outline
from hierindex.retrieve.question import Search
from hierindex.retrieve.reading_order import entries, reading_order
from hierindex.retrieve.retrieval import Question, Retrieval, Retrieved
from hierindex.retrieve.sources import SourcePassage, source_passages
from hierindex.store.filters import Filters
from hierindex.store.generations import on_newest
from hierindex.store.passing import with_known_keys
from hierindex.store.rows import describe
from hierindex.store.snapshot import Snapshot, overview
from hierindex.store.table import Table

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.schema import BaseNode
    from llama_index.core.vector_stores.types import MetadataFilters

    from hierindex.retrieve.retrieved import RetrievedNode
    from hierindex.retrieve.retriever import HierarchyRetriever
    from hierindex.store.vector_store import HierarchyStore

_loading = Lock()
KNOWN = {*signature(Retrieval).parameters, "postprocessors"} - {"store", "embed_model"}
OURS = {"similarity_top_k": "top_k", "node_postprocessors": "postprocessors"}
FIRST_LOOK = 40  # most nodes if no depth is given


class StoredTree:
    """A tree of summaries in a store: its outline, table of contents, nodes and sources.

    Parameters
    ----------
    store : HierarchyStore or Table
    embed_model : BaseEmbedding, optional
        The model that the tree was built with; by default loaded by the name stored in the tree.
    """

    def __init__(
        self, store: "HierarchyStore | Table", embed_model: "BaseEmbedding | None" = None
    ) -> None:
        self.table = store if isinstance(store, Table) else store.table
        self._store = None if isinstance(store, Table) else store
        self._embed_model = embed_model
        self._loaded = dict[tuple[str, Precision], EmbedModel]()  # at most one

    @property
    def store(self) -> "HierarchyStore":
        """The LlamaIndex vector store of the tree."""
        from hierindex.store.vector_store import HierarchyStore

        if self._store is None:
            self._store = HierarchyStore.of(self.table)
        return self._store

    def at(self, snapshot: Snapshot) -> Self:
        """Return this tree with a snapshot instead of the newest generation, to read from."""
        tree = copy(self)
        tree.table, tree._store = self.table.at(snapshot), None
        return tree

    @property
    def embed_model(self) -> "BaseEmbedding":
        """The embedding model that the tree was built with; another one after a build with it."""
        from hierindex.models.openvino_embedding import as_llama_index

        return as_llama_index(self._model)

    @property
    def _model(self) -> EmbedModel:
        """The embedding model, of LlamaIndex only if it was given."""
        if self._embed_model is not None:
            return self._embed_model
        maker = self.table.snapshot().maker()
        name, precision = maker.embed_model, built_precision(maker.embed_settings)
        with _loading:
            if (name, precision) not in self._loaded:
                self._loaded.clear()
                self._loaded[name, precision] = _load(name, precision)
            return self._loaded[name, precision]

    def as_retriever(self, **options: Any) -> "HierarchyRetriever":
        """Return a retriever with the given options of `HierarchyRetriever`.

        LlamaIndex's names `similarity_top_k` and `node_postprocessors` are accepted, too.

        Raises
        ------
        InputError
            If an option does not exist or options cannot be combined.
        """
        from hierindex.retrieve.retriever import HierarchyRetriever

        given = retriever_options(options)  # fails before the embedding model is loaded
        return HierarchyRetriever(self.store, self.embed_model, **given)

    def retrieval(self, **options: Any) -> Retrieval:
        """Return a retrieval with the given options of `HierarchyRetriever`."""
        given = retriever_options(options)
        given.pop("postprocessors", None)
        return Retrieval(self.table, self._model, **given)

    def outline(
        self,
        budget: int = 1000,
        question: str | None = None,
        of: str | Iterable[str] | None = None,
        filters: "MetadataFilters | None" = None,
    ) -> "list[RetrievedNode]":
        """Return the parts of the index, with the sentences that tell most of each.

        No part is an ancestor of another.

        Parameters
        ----------
        budget : int
            Maximum tokens of all sentences together, by LlamaIndex's global tokenizer.
        question : str, optional
            Text counts for more the more similar it is to the question.
        of : str or iterable of str, optional
            Ids of documents, and ids or unique id prefixes of nodes. The result stands on these
            documents and on the text under these nodes alone.
        filters : MetadataFilters, optional
            Metadata filters that every node must pass.

        Returns
        -------
        list[RetrievedNode]
            In reading order. A node has only the chosen sentences as text, with their citations,
            and its score is its share of the text, which is weighted by similarity to the
            question.

        Raises
        ------
        InputError
            If no sentence fits the budget, `of` names no document and no node, or an argument is of
            another type.
        """
        from hierindex.retrieve.retrieved import retrieved_nodes

        return retrieved_nodes(self.outlined(budget, question, of, filters))

    @on_newest
    def outlined(
        self,
        budget: int = 1000,
        question: str | None = None,
        of: str | Iterable[str] | None = None,
        filters: "MetadataFilters | Filters | None" = None,
    ) -> Retrieved:
        """Return the nodes of `outline` in our form."""
        require(is_whole(budget, 1), "budget", "an integer of at least 1", budget)
        is_text = question is None or isinstance(question, str)
        require(is_text, "question", "a string", question)
        ids: list[Any] = [*of] if isinstance(of, Iterable) and not isinstance(of, str) else [of]
        are_ids = of is None or all(isinstance(each, str) for each in ids)
        require(are_ids, "of", "an id or several ids", ids)
        known = Filters.of(filters)
        if question is not None:
            retrieval = Retrieval(self.table, self._model, filters=known)
            search = retrieval.search(retrieval.embedded(question))
        else:
            snapshot = self.table.snapshot()
            known = known and with_known_keys(snapshot, known, strict=True)
            search = Search(snapshot, "", [], filters=known)
        named = None if of is None else ids
        found = outline(search, budget, of=named, question=question is not None)
        return Retrieved(Question(question or "", search.embedding), search.snapshot, found)

    @on_newest
    def tree(self, node_id: str | None = None, depth: int | None = None) -> dict[str, Any]:
        """Return the titles of the tree, or of the nodes under one, as nested dicts.

        Parameters
        ----------
        node_id : str, optional
            Id or unique id prefix of the node to begin with; by default all roots.
        depth : int, optional
            Number of generations below the first nodes; by default as many as give at most 40
            nodes together, but at least one.

        Returns
        -------
        dict
            `nodes`, and `hidden`, the number of nodes below them that are left out. A node is a
            dict of `id`, `title`, `level`, `document` (the one that it is the whole of, or None),
            the numbers of `documents` and `chunks` under it, and `nodes`, its children in reading
            order.

        Raises
        ------
        InputError
            If `depth` is negative, or no node or more than one node matches.

        Notes
        -----
        A node with several parents is listed under its strongest parent only, so that each chunk
        is counted once. Of the nodes that are left out, only ids, levels and links are read.
        """
        require(depth is None or is_whole(depth, 0), "depth", "an integer of at least 0", depth)
        snapshot = self.table.snapshot()
        snapshot.require()
        order = reading_order(snapshot)
        icicle = order.icicle
        first = None if node_id is None else order.position(snapshot.id_beginning(node_id))
        part = icicle.part(first)
        below = icicle.depth[part] - icicle.depth[part][:1]
        if depth is None:
            depth = max(1, int((np.cumsum(np.bincount(below)) <= FIRST_LOOK).sum()) - 1)
        positions = (part.start + np.flatnonzero(below <= depth)).tolist()
        tops, nodes = list[dict[str, Any]](), dict[int, dict[str, Any]]()
        for position, entry in zip(positions, entries(snapshot, order, positions), strict=True):
            del entry["children"]
            nodes[position] = {**entry, "nodes": []}
            parent = nodes.get(int(icicle.parent[position]))
            (tops if parent is None else parent["nodes"]).append(nodes[position])
        return {"nodes": tops, "hidden": len(below) - len(positions)}

    @on_newest
    def info(self) -> dict[str, Any]:
        """Return the numbers of documents, nodes and tokens, the roots, models and usage."""
        return overview(self.table.snapshot())

    def node(self, node_id: str) -> "BaseNode":
        """Return the node with this id or unique id prefix.

        Raises
        ------
        InputError
            If no node or more than one node matches.
        """
        from hierindex.text_node import to_text_node

        return to_text_node(self._node(node_id))

    @on_newest
    def _node(self, node_id: str) -> Node:
        return self.table.snapshot().node_beginning(node_id)

    def describe(self, node_id: str) -> dict[str, Any]:
        """Return a node as a dict of its text, title, place, kind, similarity, links and citations.

        Raises
        ------
        InputError
            If no node or more than one node matches.
        """
        return describe(self._node(node_id))

    @on_newest
    def sources(self, node_id: str, *, context: int = 300) -> list[SourcePassage]:
        """Return the passages that a node cites, with the text around them.

        They are put together from the chunks of the index; no file is read.

        Parameters
        ----------
        node_id : str
            Id or unique id prefix.
        context : int
            Maximum characters before and after each passage.

        Raises
        ------
        InputError
            If no node or more than one node matches, or the places of its chunks are unknown.
        """
        require(is_whole(context, 0), "context", "an integer of at least 0", context)
        snapshot = self.table.snapshot()
        node = snapshot.node_beginning(node_id)
        return source_passages(snapshot, node, context)


def _load(name: str, precision: Precision) -> EmbedModel:
    try:
        # The CPU backend does not import torch, which takes longer than the query.
        return load_encoder(name, device="cpu", precision=precision)
    except ModelError as error:
        raise ModelError(
            f"The index was built with the embedding model {name!r}, which cannot be "
            "loaded by name; pass it as embed_model=."
        ) from error


def retriever_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `HierarchyRetriever` under our names.

    Raises
    ------
    InputError
        If an option is given under both names, or does not exist.

    Examples
    --------
    >>> retriever_options({"similarity_top_k": 3, "level": 0})
    {'top_k': 3, 'level': 0}
    """
    for theirs, name in OURS.items():
        if theirs in options and name in options:
            raise InputError(f"{theirs} and {name} are the same option; pass one of them.")
    given = {OURS.get(name, name): option for name, option in options.items()}
    for name in given.keys() - KNOWN:
        raise InputError(
            f"There is no option {name!r}; the retriever's are {', '.join(sorted(KNOWN))}, and "
            "those of response modes go into synthesizer={...}."
        )
    return given
