"""Selection of results: by document, from the roots down, without copies, within a budget."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter, itemgetter

from hierindex.core.identity import hash_text
from hierindex.errors import InputError, NotFoundError
from hierindex.models.record import llm_tokenizer
from hierindex.node import Found, Quote, Span
from hierindex.retrieve.search import Search
from hierindex.store.filtering import without_a_passing_chunk
from hierindex.store.filters import (
    CHUNKS,
    WHOLE,
    Prefilter,
    at_cut,
    by_ids,
    by_texts,
    of_documents,
)
from hierindex.store.rows import node_of, quotes_in

MAX_SEARCHED = 1000  # nodes that are searched for more texts
WIDER = 2  # times as many in each search
TEXT = attrgetter("node.text")
N_BEST = 5  # nodes whose documents may be meant
WROTE = re.compile(
    r"\b(?:authors?|autor(?:en|in|innen)?|geschrieben|verfasst|written by|wrote)\b", re.IGNORECASE
)


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


Quotes = Sequence[Quote]


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
    """Return the first chunks of the best documents if a question asks who wrote something.

    They get the score of the best node.
    """
    if not WROTE.search(search.question) or not found:
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
    fruitless = without_a_passing_chunk(search.snapshot, search.filters)
    above, followed = Prefilter(f"level > {level:d}"), replace(search, by="dense", filters=None)
    coming = reached = {*search.snapshot.roots()}
    while kept := followed.best(beam, above & by_ids(coming - fruitless)):
        coming = {child for each in kept for child in each.node.children} - reached
        reached = reached | coming
    return search.best(n, at_cut(level) & by_ids(reached))
