"""Searches of a tree, and the selection of results: without copies, and within a budget."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from hierindex.core.arguments import Floats1d
from hierindex.core.identity import hash_text
from hierindex.core.ranking import (
    DENSE_SHARE,
    blended,
    cosines,
    in_context,
    nearness,
    places_of,
    reading_order,
)
from hierindex.errors import InputError, NotFoundError
from hierindex.models.record import llm_tokenizer
from hierindex.node import Found, Node, Quote, Span
from hierindex.store.filters import (
    CHUNKS,
    EVERY_ROW,
    WHOLE,
    Filters,
    Prefilter,
    Scope,
    at_cut,
    by_ids,
    by_texts,
    of_documents,
    on_chunks,
)
from hierindex.store.rows import NODE_COLUMNS, node_of, quotes_in, to_nodes
from hierindex.store.search import DEPTH, fused, matching, nearest, united
from hierindex.store.snapshot import Snapshot
from hierindex.text.characters import UNSPACED
from hierindex.text.words import is_foreign, known_language, without_question_words
from hierindex.threads import each

if TYPE_CHECKING:
    import pyarrow as pa

By = Literal["dense", "hybrid", "text", "context"]
BY: tuple[By, ...] = get_args(By)
CANDIDATES = 50  # of each search, at least, to be ranked in context; 100 find no more
SHARE_OF_A_NAME = 0.2  # of vectors, if the question is a single word or a name: it is looked up
SHARE_ACROSS = 0.8  # of vectors, if the text is in another language; tests/benchmarks/languages.py
LONGEST_NAME = 5  # words, or characters in a script without blanks
MOST_COMPARED = 500  # nodes, as scores in context cost their square
MAX_SEARCHED = 1000  # nodes that are searched for more texts
WIDER = 2  # times as many in each search
TEXT = attrgetter("node.text")
N_BEST = 5  # nodes whose documents may be meant
WROTE = re.compile(
    r"\b(?:authors?|autor(?:en|in|innen)?|geschrieben|verfasst|written by|wrote)\b", re.IGNORECASE
)
WHAT_IS = re.compile(  # something of one or two words
    r"\W*(?:what(?: is|['\u2019]s)|was ist|qu\u00e9 es) (?:(?:an?|the|eine?|una?) )?\S+(?: \S+)?$",
    re.IGNORECASE,
)
Quotes = Sequence[Quote]


@dataclass(frozen=True)
class Search:
    """A question and the snapshot to search; see `HierarchyRetriever` for the options."""

    snapshot: Snapshot
    question: str
    embedding: list[float]
    by: By = "dense"
    filters: Filters | None = None
    partial_summaries: bool = False

    def best(self, n: int, where: Prefilter = EVERY_ROW) -> list[Found]:
        """Return at most n nodes, best first, that pass the filters and meet a condition.

        In context, nodes with the same text count as one, and the best node by meaning and the best
        by words are among the nodes if there is room.
        """
        in_context = self.by == "context"
        if not self.snapshot.exists:
            return []
        scope = self.snapshot.scope(
            self.filters,
            where,
            partial_summaries=self.partial_summaries,
            columns=(*NODE_COLUMNS, "vector") if in_context else NODE_COLUMNS,
        )
        if in_context:
            return self._in_context(n, scope)
        rows = self._rows(n, scope)
        return list(map(Found, to_nodes(rows), rows["score"].to_pylist()))

    def _rows(self, n: int, scope: Scope) -> "pa.Table":
        if self.by == "text":
            return matching(scope, self.question, n)
        if self.by == "dense":
            return nearest(scope, self.embedding, n)
        depth = max(n, DEPTH)
        return fused(scope, self.embedding, self.question, dense=depth, sparse=depth)[:n]

    def _in_context(self, n: int, scope: Scope) -> list[Found]:
        most = max(n, CANDIDATES)
        searches = (
            partial(nearest, scope, self.embedding, most),
            partial(matching, scope, without_question_words(self.question), most),
        )
        by_meaning, by_words = each(searches, 2)
        lexical = dict(zip(by_words["id"].to_pylist(), by_words["score"].to_pylist(), strict=True))
        rows = united(by_meaning, by_words, columns=scope.columns)
        if not rows.num_rows:
            return []
        cosine = cosines(np.stack(rows["vector"].to_numpy()), np.asarray(self.embedding))
        nodes = to_nodes(rows.drop_columns(["vector"]))
        words = np.array([lexical.get(node.id, 0.0) for node in nodes])
        ranked = ranked_in_context(nodes, blended(cosine, words, self._shares(nodes)))
        first = [rows["text"].to_pylist()[:1] for rows in (by_meaning, by_words)]
        best, texts = {*chain(*first)}, dict.fromkeys(map(TEXT, ranked))
        others = [text for text in texts if text not in best]
        kept = {*best, *others[: n - len(best)]} if n > len(best) else {*[*texts][:n]}
        return [each for each in ranked if TEXT(each) in kept]

    def _shares(self, nodes: Sequence[Node]) -> Floats1d:
        """Return the weight of the vectors for each node: high if its words mean little."""
        share = SHARE_OF_A_NAME if is_name(self.question) else DENSE_SHARE
        language = known_language(self.question)
        foreign = [is_foreign(node.metadata, language) for node in nodes]
        return np.where(foreign, SHARE_ACROSS, share)


def is_name(question: str) -> bool:
    """Return whether a question is a single word, or up to five that all begin with capitals.

    In scripts without spaces between words, up to five characters count as one word.

    >>> is_name("chapter-3.md"), is_name("Jack Ruby"), is_name("pump failures")
    (True, True, False)
    """
    words = question.split()
    if UNSPACED.search(question):
        return len(question) <= LONGEST_NAME
    capital = not any(word[0].islower() for word in words)
    return len(words) == 1 or (capital and len(words) in range(2, LONGEST_NAME + 1))


def ranked_in_context(nodes: Sequence[Node], own: Floats1d) -> list[Found]:
    """Rank distinct nodes of one level by their scores in context.

    Parameters
    ----------
    nodes : sequence of Node
    own : (n_nodes,) floats
        The score of each node alone, see `blended`.

    Returns
    -------
    list[Found]
        Best first; ties stay in the order of the nodes. Scores are standard deviations above the
        mean of all nodes, see `hierindex.core.ranking`. Of more than 500 nodes, the best are ranked
        in context and the others follow by their own scores.

    Notes
    -----
    Nodes are neighbours in reading order if their spans are. A node that quotes several documents,
    or has no known position, has no neighbours. Adding neighbours that no search found, or the
    scores of the summaries above, does not improve the ranking.
    """
    document, start, end = places_of([_span(node.citations) for node in nodes])
    near, scores = np.sort(np.argsort(-own, kind="stable")[:MOST_COMPARED]), own.copy()
    K = nearness(document[near], start[near], end[near])
    scores[near] = in_context(own[near], document[near], K)  # not below their own scores
    return [Found(nodes[i], float(scores[i])) for i in np.argsort(-scores, kind="stable")]


def in_reading_order(found: Sequence[Found]) -> list[int]:
    """Return the order of nodes by document and start, the document of the best node first.

    A node that quotes several documents, or has no known position, counts as a document of its own.
    """
    relevance = np.array([each.score for each in found], dtype=np.float64)
    sources = [[quote.source for quote in each.node.quotes if quote.source] for each in found]
    document, start, _ = places_of([_span(spans) for spans in sources])
    return [int(i) for i in reading_order(relevance, document, start)]


def _span(spans: Sequence[Span]) -> tuple[str, int, int] | None:
    """Return the document, start and end around spans; None if of no or several documents."""
    if len({span.document for span in spans}) != 1:
        return None
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    return spans[0].document, start, end


def selected(
    found: Sequence[Found], top_k: int | None = None, token_budget: int | None = None
) -> list[Found]:
    """Select at most `top_k` nodes within the token budget, without redundant parents.

    Nodes are taken best first, and a node that does not fit is skipped. A parent whose children
    are all taken is dropped in favour of the next best node. Tokens are those of
    `MetadataMode.LLM`, counted by LlamaIndex's global tokenizer.

    Raises
    ------
    NotFoundError
        If there are nodes and none fits the token budget.
    """
    n_tokens = dict.fromkeys((each.node.id for each in found), 0)
    if token_budget is not None:
        tokens = llm_tokenizer()
        n_tokens = {node.id: len(tokens(node.llm_text)) for node, _ in found}
    rest, taken, room = list(found), list[Found](), token_budget or 0
    while True:
        for node in rest:
            if len(taken) == top_k:
                break
            if n_tokens[node.node.id] <= room:
                taken.append(node)
                room -= n_tokens[node.node.id]
        ids, redundant = {each.node.id for each in taken}, complete_parents(taken)
        if not redundant:
            break
        rest = [each for each in rest if each.node.id not in ids]
        room += sum(n_tokens[each] for each in redundant)
        taken = [each for each in taken if each.node.id not in redundant]
    if found and not taken:
        least = min(n_tokens.values())
        raise NotFoundError(
            f"No retrieved node fits token_budget={token_budget}; the shortest has {least} tokens."
        )
    return [each for each in found if each.node.id in ids]


def complete_parents(found: Sequence[Found]) -> set[str]:
    """Return the ids of parents whose children are all among the nodes."""
    ids = {node.id for node, _ in found}
    return {node.id for node, _ in found if node.children and ids.issuperset(node.children)}


def best_texts(best: Callable[[int], list[Found]], n: int) -> list[Found]:
    """Return the best nodes of `n` distinct texts, best first.

    Parameters
    ----------
    best : callable
        Returns at most the given number of nodes, best first.
    n : int
    """
    most = n
    while True:
        found = best(most)
        texts = dict.fromkeys(map(TEXT, found))
        if len(texts) >= n or len(found) < most or most >= MAX_SEARCHED:
            kept = {*[*texts][:n]}
            return [node for node in found if TEXT(node) in kept]
        most *= WIDER


def without_copies(found: Sequence[Found], search: Search) -> list[Found]:
    """Return one node for each text, with the positions of all nodes of this text in the index.

    Of several nodes, the one of the lowest level is kept, then the one whose document id comes
    first. It gets the best score and rank of them. So copies of a document are merged into one of
    the documents. Positions must pass the filters of the search.
    """
    copies = defaultdict[str, list[Found]](list)
    for node in found:
        copies[TEXT(node)].append(node)
    quotes = _quotes_of_copies(copies, search)
    return [merged(nodes, quotes[text]) for text, nodes in copies.items()]


def _quotes_of_copies(texts: Iterable[str], search: Search) -> defaultdict[str, list[Quotes]]:
    """Return the quotes of all nodes with these texts, for texts that several nodes have."""
    copied = search.snapshot.copied_texts()
    several = [text for text in texts if hash_text(text) in copied]
    quotes = defaultdict[str, list[Quotes]](list)
    if several:
        rows = search.snapshot.rows(
            filters=search.filters,
            where=by_texts(several),
            partial_summaries=search.partial_summaries,
            columns=("id", "text", "record"),
        )
        for row in rows:
            quotes[row["text"]].append(quotes_in(row["record"]))
    return quotes


def merged(found: Sequence[Found], copies: Iterable[Quotes]) -> Found:
    """Return the first node by level and position, with the positions of its quotes' copies."""
    node = min(found, key=lambda each: (each.node.level, first_place(each))).node
    places = defaultdict[tuple[int, int], set[Span]](set)
    for quote in chain.from_iterable(copies):
        places[quote.at, quote.to].update(quote.sources)

    def others(quote: Quote) -> tuple[Span, ...]:
        elsewhere = places[quote.at, quote.to].difference(quote.sources)
        return (*quote.also, *sorted(elsewhere, key=itemgetter(0, 1)))

    quotes = tuple(quote._replace(also=others(quote)) for quote in node.quotes)
    return Found(replace(node, quotes=quotes), max(each.score for each in found))


def first_place(found: Found) -> tuple[str, int]:
    """Return the first document of a node by id, and the first position in it, -1 if unknown."""
    places = ((span.document, span.start) for span in found.node.citations)
    return min(places, default=(found.node.documents[0], -1))


def best_of_documents(search: Search, n: int, *, n_documents: int) -> list[Found]:
    """Return the best chunks of the documents whose summaries are most similar to the question.

    Raises
    ------
    InputError
        If the tree has no summary of a whole document.
    """
    found = _documents(search, n_documents)
    return search.best(n, CHUNKS & of_documents(found))


def all_of_documents(search: Search, *, n_documents: int) -> list[Found]:
    """Return all chunks of the documents with the best summaries, in reading order.

    The best document is first.

    Each chunk has the score of its document.

    Raises
    ------
    InputError
        If the tree has no summary of a whole document.
    """
    found = _documents(search, n_documents)
    where = CHUNKS & of_documents(found)
    nodes = search.snapshot.nodes(filters=search.filters, where=where)
    place = {document: i for i, document in enumerate(found)}
    nodes.sort(key=lambda node: (place[node.documents[0]], node.start))
    return [Found(node, found[node.documents[0]]) for node in nodes]


def title_pages(search: Search, found: Sequence[Found]) -> list[Found]:
    """Return the first chunks of the best documents if a question asks who wrote or what is X.

    They get the score of the best node.
    """
    question = search.question
    if not found or not (WROTE.search(question) or WHAT_IS.match(question)):
        return []
    documents = dict.fromkeys(each for node, _ in found[:N_BEST] for each in node.documents)
    where = search.snapshot.of_each_document & of_documents(documents)
    rows = search.snapshot.rows(filters=search.filters, where=where)
    return [Found(node, found[0].score) for node in map(node_of, rows) if not node.previous]


def _documents(search: Search, n: int) -> dict[str, float]:
    """Return the scores of the best documents with a chunk that passes, and of their copies."""
    with_a_chunk = replace(search, by="dense", partial_summaries=True)
    found = best_texts(lambda most: with_a_chunk.best(most, WHOLE), n)
    has_summaries = found or replace(with_a_chunk, filters=None).best(1, WHOLE)
    if not has_summaries and search.snapshot.highest_level():
        raise InputError(
            "mode 'document' needs a tree with a summary of each document; build it with method "
            "semantic or document, or with RaptorHierarchy(scope='document')."
        )
    return {node.whole_document: score for node, score in found}


def traversal(search: Search, n: int, *, beam: int, level: int) -> list[Found]:
    """Return the best nodes of a level that a beam search from the roots reaches.

    At each step the `beam` best nodes above the level are replaced by their children. They are
    compared by cosine similarity. Only summaries with a chunk that passes the filters are
    followed, and results must pass the filters themselves.

    Parameters
    ----------
    search : Search
    n : int
        Maximum number of nodes.
    beam : int
        Number of nodes kept at each step.
    level : int
        The level of the results.

    Notes
    -----
    Costs one search for each level. It finds less than a search of the level and takes longer: on
    two sets of 1,700 chunks, a beam of 10, 30 and 100 reached 0.4 to 0.7, 0.75 to 0.9 and 0.95 to
    0.99 of the ten most similar chunks. Scores smoothed along the path (LATTICE, arXiv 2510.13217)
    reach no more.
    Sarthi et al., RAPTOR (ICLR 2024), section 3: tree traversal.
    """
    above, chunks = Prefilter(f"level > {level:d}"), on_chunks(search.filters)
    followed = replace(search, by="dense", filters=chunks, partial_summaries=True)
    coming = reached = {*search.snapshot.roots()}
    while kept := followed.best(beam, above & by_ids(coming)):
        coming = {child for each in kept for child in each.node.children} - reached
        reached = reached | coming
    return search.best(n, at_cut(level) & by_ids(reached))
