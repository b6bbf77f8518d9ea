"""Retrieval: its options, and the steps from a question to scored nodes."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from inspect import signature
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

import numpy as np

from hierindex.core.arguments import is_whole, require
from hierindex.core.ranking import blended
from hierindex.errors import InputError, nearest
from hierindex.models.embedder import EmbedModel, as_embed_model, check_same_model, named_errors
from hierindex.models.load import load_reranker
from hierindex.models.openvino import Reranker
from hierindex.node import Found, Node
from hierindex.retrieve.known_questions import about_the_whole
from hierindex.retrieve.levels import Level, check_mode, cut_of, levels_of, numbers
from hierindex.retrieve.listing import Listing, asked_of, listing
from hierindex.retrieve.named import called, named
from hierindex.retrieve.outline import outline
from hierindex.retrieve.search import (
    BY,
    By,
    Search,
    all_of_documents,
    best_of_documents,
    best_texts,
    complete_parents,
    selected,
    title_pages,
    traversal,
    without_copies,
)
from hierindex.settings import SearchSettings
from hierindex.store.filters import Filters, Part, combined, on_documents, with_known_keys
from hierindex.store.generations import on_newest
from hierindex.store.snapshot import Snapshot
from hierindex.text.characters import paired
from hierindex.text.display import shortened

if TYPE_CHECKING:
    from llama_index.core.vector_stores.types import MetadataFilters

    from hierindex.store.table import Table
    from hierindex.store.vector_store import HierarchyStore

Mode = Literal["auto", "collapsed", "level", "traversal", "document"]
MODES: tuple[Mode, ...] = get_args(Mode)
TOP_K = 10
TOKEN_BUDGET = SearchSettings.token_budget  # RAPTOR's, for collapsed retrieval
MODE_OF = {"beam": "traversal", "n_documents": "document", "whole_documents": "document"}
"""Options of a single mode."""
N_DOCUMENTS = 3
SPARE = 2  # candidates per result, where overlap drops some
CANDIDATES = 25  # at least; a cross-encoder reads each together with the question
SHARE = 0.5  # of the cross-encoder's score; not tuned
PARTS = 20  # of an overview
LETTER = r"\s*[a-zA-Z]?[\s?.!]*"  # no question; also read by clients in JavaScript
OF_OTHERS = " of other documents: "
READS = "the question reads like one about the whole"
OURS = {"similarity_top_k": "top_k", "node_postprocessors": "postprocessors"}


class Question(NamedTuple):
    """A question and its vector."""

    text: str
    embedding: list[float]


class Choice(NamedTuple):
    """Whether to answer from an outline or from chunks, and why.

    `documents` are the ids of the documents to use; None for all. It is empty if none of the named
    documents exist.
    """

    outline: bool = False
    why: str | None = None
    documents: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Retrieved:
    """The nodes retrieved for a question, best first.

    `snapshot` is the searched generation, None if unknown. `why` is the reason why mode "auto"
    chose chunks or an outline. `shares` are the shares of an outline's nodes, by id.
    """

    question: Question
    snapshot: Snapshot | None
    found: Sequence[Found]
    why: str | None = None
    shares: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read what `path` needs, while the generation is there."""
        if self.snapshot is not None:
            self.snapshot.parents_of_summaries()

    def path(self, node: Node) -> list[str]:
        """Return the ids from a node's strongest parent up to the root; empty for a root."""
        return path_of(node, self.snapshot) if self.snapshot else []


def path_of(node: Node, snapshot: Snapshot) -> list[str]:
    """Return the ids from a node's strongest parent up to the root; empty for a root."""
    parents, path = snapshot.parents_of_summaries(), list[str]()
    parent = next((parent for parent, _ in node.parents), "")
    while parent in parents and parent not in path:  # ends early if a parent is not stored yet
        path.append(parent)
        parent = next(iter(parents[parent]), "")
    return path


@dataclass(eq=False, repr=False)
class Retrieval:
    """Finds the nodes of a tree most similar to a question; see `HierarchyRetriever`.

    It has the options of `HierarchyRetriever` except postprocessors.
    """

    store: "Table | HierarchyStore"
    embed_model: EmbedModel
    _: KW_ONLY
    mode: Mode | None = None
    level: Level | Sequence[Level] | None = None
    top_k: int | None = None
    token_budget: int | None = TOKEN_BUDGET
    filters: "MetadataFilters | Filters | None" = None
    partial_summaries: bool = False
    by: By | None = None
    beam: int | None = None
    n_documents: int | None = None
    whole_documents: bool = False
    rerank: str | Reranker | None = None

    def __post_init__(self) -> None:
        """Check the options, and load the reranker."""
        self.embed_model = as_embed_model(self.embed_model)
        self.levels: tuple[Level, ...] = levels_of(self.level)
        self.filters = self._filters = Filters.of(self.filters)
        self._others = False
        self._may_outline = self.mode in (None, "auto") and self.levels != (0,)
        mode = self.mode = self.mode or ("level" if self.levels else "auto")
        if mode not in MODES:
            near = nearest(str(mode), MODES)
            raise InputError(f"mode must be one of {', '.join(MODES)}, got {mode!r}{near}.")
        check_mode(mode, self.levels)
        if self.by == "context" and (mode == "collapsed" or len(self.levels) > 1):
            raise InputError("by='context' cannot search several levels; name one, or omit mode.")
        self._by: By = self.by or ("context" if mode == "auto" else "dense")
        require(self._by in BY, "by", f"one of {', '.join(BY)}", self.by)
        for name in ("top_k", "token_budget", "beam", "n_documents"):
            count = getattr(self, name)
            require(count is None or is_whole(count, 1), name, "an integer of at least 1", count)
        for name, needed in MODE_OF.items():
            if getattr(self, name) and mode != needed:
                raise InputError(f"{name} needs mode {needed!r}, got mode {mode!r}.")
        if self.rerank is not None and (
            mode == "collapsed" or any(self.levels) or self.whole_documents
        ):
            raise InputError(
                f"rerank needs a search of chunks, got mode {mode!r}, levels {[*self.levels]} and "
                f"whole_documents={self.whole_documents}; use level=0, or omit rerank."
            )
        self._reranker = load_reranker(self.rerank) if isinstance(self.rerank, str) else self.rerank

    def narrowed(
        self, top_k: int | None = None, filters: "MetadataFilters | Filters | None" = None
    ) -> Self:
        """Return a copy of this retrieval with another `top_k`, or with additional filters."""
        require(top_k is None or is_whole(top_k, 1), "top_k", "an integer of at least 1", top_k)
        narrow, also = copy(self), Filters.of(filters)
        narrow.top_k = top_k or self.top_k
        if also is not None:
            narrow.filters = narrow._filters = combined(self._filters, also)
        return narrow

    def others(self) -> Self:
        """Exclude the documents that the question names; if it names none, find nothing."""
        retrieval = copy(self)
        retrieval._others = True
        return retrieval

    def embedded(self, question: str) -> Question:
        """Return a question with its vector.

        Raises
        ------
        InputError
            If the question is empty or a single letter.
        ModelError, HierindexError
            If the embedding model cannot be reached or fails.
        """
        check_question(question)
        question = paired(question)  # a shell passes on any byte
        with named_errors(self.embed_model):
            return Question(question, self.embed_model.get_query_embedding(question))

    @on_newest
    def find(self, question: Question) -> Retrieved:
        """Return the nodes of the newest generation that are found for a question."""
        search = self.search(question)
        snapshot, choice = search.snapshot, Choice()
        if self._may_outline and snapshot.exists:
            choice = choose(search, self.embed_model, self.levels)
        if choice.outline:
            outlined = self._outlined(search, choice)
            shares = {node.id: share for node, share in outlined}
            return Retrieved(question, snapshot, outlined, choice.why, shares)
        why, documents = choice.why, choice.documents
        if self._others and not documents:
            return Retrieved(question, snapshot, [], why)
        if documents:
            part: Part = on_documents(documents)
            if self._others:
                passes = " that passes the filters" if self._filters else ""
                nothing = f"Nothing in {shortened(documents)}{passes} answers this"
                why = f"{_searched(self.levels)}{OF_OTHERS}{nothing}"
                part = Filters((part,), "not")
            search = replace(search, filters=combined(part, search.filters))
        found = self._found(search)
        if self.mode == "auto":
            found = [*title_pages(search, found), *found]
        top_k = None if self.whole_documents else self.top_k or TOP_K
        found = selected(without_copies(found, search), top_k, self.token_budget)
        return Retrieved(question, snapshot, found, why)

    def search(self, question: Question) -> Search:
        """Prepare a search of the newest generation."""
        snapshot = self.store.snapshot()
        snapshot.check_dimension(len(question.embedding))
        if snapshot.exists:
            built = snapshot.maker()
            check_same_model(self.embed_model, built.embed_model, built.embed_settings)
        return Search(
            snapshot, *question, self._by, self._known_filters(snapshot), self.partial_summaries
        )

    def _known_filters(self, snapshot: Snapshot) -> Filters | None:
        return self._filters and with_known_keys(snapshot, self._filters, strict=True)

    def listing(self, question: str, snapshot: Snapshot | None) -> Listing | None:
        """Return all documents with the words of a question that counts or lists, or None."""
        if snapshot is None or not snapshot.exists:
            return None
        return listing(Search(snapshot, question, [], filters=self._known_filters(snapshot)))

    def _outlined(self, search: Search, choice: Choice) -> list[Found]:
        """Return the chosen outline, the largest share first.

        It has nodes of the requested levels, if any of them have text of the chosen
        documents alone.
        """
        budget, most = self.token_budget or TOKEN_BUDGET, self.top_k or PARTS
        made = partial(outline, search, budget, of=choice.documents, most=most, whole=True)
        found = made(at=cut_of(search.snapshot, self.levels) if self.levels else None)
        if not found and choice.documents:
            found = made()
        return sorted(found, key=attrgetter("score"), reverse=True)

    def _found(self, search: Search) -> list[Found]:
        """Return the best nodes with their copies, and spare ones if some will be dropped."""
        if self.whole_documents:
            return all_of_documents(search, n_documents=self.n_documents or N_DOCUMENTS)
        best, top_k = partial(self._best, search), self.top_k or TOP_K
        if self._reranker is not None:
            candidates = best_texts(best, max(top_k, CANDIDATES))
            return reranked(candidates, search.question, self._reranker)
        found = best_texts(best, top_k)
        return best_texts(best, SPARE * top_k) if complete_parents(found) else found

    def _best(self, search: Search, n: int) -> list[Found]:
        match self.mode:
            case "traversal":
                level = max(numbers(search.snapshot, self.levels), default=0)
                beam = self.beam or self.top_k or TOP_K
                return traversal(search, n, beam=beam, level=level)
            case "document":
                return best_of_documents(search, n, n_documents=self.n_documents or N_DOCUMENTS)
            case "collapsed":
                return search.best(n)
        return search.best(n, cut_of(search.snapshot, self.levels or (0,)))


KNOWN = {*signature(Retrieval).parameters, "postprocessors"} - {"store", "embed_model"}


def retriever_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of `HierarchyRetriever` with LlamaIndex's names replaced by ours.

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


def check_question(question: str) -> None:
    """Raise InputError if a question is empty, or a single letter."""
    if not question.strip():
        raise InputError("The question is empty; pass some text.")
    if re.fullmatch(LETTER, question):
        raise InputError(f"A question needs a word of two or more letters, got {question!r}.")


def reranked(found: Sequence[Found], question: str, reranker: Reranker) -> list[Found]:
    """Order nodes by the mean of a cross-encoder's scores and their own, both standardised.

    The cross-encoder reads the embedded text. Returned scores are standard deviations from the
    mean.

    Raises
    ------
    InputError
        If the reranker does not return one finite number per text.
    """
    if not found:
        return []
    texts = [node.embedded_text for node, _ in found]
    row = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    x = np.asarray(reranker.rank(question, [*row]), dtype=np.float64)  # (n_texts,)
    is_valid = x.shape == (len(row),) and bool(np.isfinite(x).all())
    require(is_valid, "rerank", f"a function that returns {len(row)} finite numbers", x)
    own = np.array([score for _, score in found])
    mixed = blended(x[[row[text] for text in texts]], own, SHARE)
    return [Found(found[i].node, float(mixed[i])) for i in np.argsort(-mixed, kind="stable")]


def choose(search: Search, model: EmbedModel, levels: Sequence[Level] = ()) -> Choice:
    """Choose an outline or chunks, by comparing a question to questions about the whole.

    A question that names documents is compared with "it" in place of their names. If it is about
    the whole, it is answered by an outline of these documents. The outline is empty if it names
    only files that are not in the index. A question for the documents that contain some words is
    answered from chunks.

    Parameters
    ----------
    search : Search
    model : EmbedModel
        The model of the question's vector.
    levels : sequence of int or str
        Levels of an outline; by default all.
    """
    where = _searched(levels) if levels else "all levels"
    documents, rest, unknown, files = named(search.question, search.snapshot)
    vector = search.embedding
    if documents:
        with named_errors(model):
            vector = model.get_query_embedding(rest)
    if about_the_whole(rest, vector, model) and not asked_of(search.question).for_documents:
        documents = documents or called(search.question, search.snapshot)
        if documents:
            said = f"{shortened(documents)}, which the question names: {READS}"
            return Choice(True, f"{where} for an outline of {said}", documents)
        if unknown:
            said = f"{shortened(unknown)}: no such document"
            return Choice(True, f"{where} for an outline of {said}", ())
        return Choice(True, f"{where} for an outline: {READS}")
    said = READS.replace("reads", "does not read")
    if levels and files:  # summaries of groups are of no single document
        own, cut = Filters((on_documents(files),)), cut_of(search.snapshot, levels)
        files = files if search.snapshot.ids(own, cut) else ()
    if levels and not files:
        return Choice()
    of = f" of {shortened(files)}, which the question names," if files else ""
    return Choice(False, f"{_searched(levels)}{of} by {search.by}: {said}", files or None)


def _searched(levels: Sequence[Level]) -> str:
    return f"level {', '.join(map(str, levels))}" if levels else "the chunks"


@on_newest
def outlined(
    table: "Table",
    load: Callable[[], EmbedModel],
    budget: int,
    question: str | None = None,
    of: str | Iterable[str] | None = None,
    filters: "MetadataFilters | Filters | None" = None,
) -> Retrieved:
    """Return the nodes of an outline; see `HierarchicalIndex.outline`.

    `load` returns the embedding model, which only a question needs.
    """
    require(is_whole(budget, 1), "budget", "an integer of at least 1", budget)
    named = None if of is None else [of] if isinstance(of, str) else [*of]
    known = Filters.of(filters)
    if question is not None:
        retrieval = Retrieval(table, load(), filters=known)
        search = retrieval.search(retrieval.embedded(question))
    else:
        snapshot = table.snapshot()
        known = known and with_known_keys(snapshot, known, strict=True)
        search = Search(snapshot, "", [], filters=known)
    found = outline(search, budget, of=named, question=question is not None)
    return Retrieved(Question(question or "", search.embedding), search.snapshot, found)
