"""Copies among nodes: nodes of equal text, which become one with the places of all."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter

from hierindex.core.identity import hash_text
from hierindex.node import Found, Quote, Span
from hierindex.retrieve.question import Search
from hierindex.store.prefilter import by_texts
from hierindex.store.rows import quotes_in

MOST = 1000  # nodes that are searched for more texts
WIDER = 2  # times as many in each search
TEXT = attrgetter("node.text")

Quotes = Sequence[Quote]


def best_texts(best: Callable[[int], list[Found]], n: int) -> list[Found]:
    """Return the best nodes of `n` distinct texts, best first.

    Parameters
    ----------
    best : callable
        Returns at most a number of nodes, best first.
    n : int
    """
    most = n
    while True:
        found = best(most)
        texts = dict.fromkeys(map(TEXT, found))
        if len(texts) >= n or len(found) < most or most >= MOST:
            kept = {*[*texts][:n]}
            return [node for node in found if TEXT(node) in kept]
        most *= WIDER


def without_copies(found: Sequence[Found], search: Search) -> list[Found]:
    """Return one node for each text, with the places of all nodes of this text in the index.

    Of several it is the one of the lowest level, of the document whose id comes first, with the
    best score and the rank of the best. So chunks of a document and of its copy become those of
    one document. Places must pass the filters of the search.
    """
    copies = defaultdict[str, list[Found]](list)
    for node in found:
        copies[TEXT(node)].append(node)
    quotes = _quotes_of_copies(copies, search)
    return [_merged(nodes, quotes[text]) for text, nodes in copies.items()]


def _quotes_of_copies(texts: Iterable[str], search: Search) -> defaultdict[str, list[Quotes]]:
    """Return the quotes of all nodes of those texts that several nodes have."""
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


def _merged(found: Sequence[Found], quotes: Iterable[Quotes]) -> Found:
    """Return the first of nodes by level and place, with all places of quotes of its text."""
    node = min((each.node for each in found), key=lambda n: (n.level, _first_place(n.quotes)))
    if new := _elsewhere(sorted(quotes, key=_first_place), node.quotes):
        node = replace(node, quotes=_with_places(node.quotes, new))
    return Found(node, max(each.score for each in found))


def _elsewhere(copies: Iterable[Quotes], quotes: Quotes) -> list[Quotes]:
    """Return the copies that name a place which is not within those of the ones before."""
    known, new = defaultdict[str, list[Span]](list), list[Quotes]()
    for span in _spans(quotes):
        known[span.document].append(span)
    for each in copies:
        spans = _spans(each)
        if not all(_is_within(span, known[span.document]) for span in spans):
            new.append(each)
            for span in spans:
                known[span.document].append(span)
    return new


def _with_places(quotes: Quotes, copies: Sequence[Quotes]) -> tuple[Quote, ...]:
    """Add the sources of the quotes of equal texts, and divide quotes where those end.

    Parts of the text that one of them does not quote, such as page breaks, are left out.
    """
    every = (quotes, *copies)
    ends = sorted({end for each in every for quote in each for end in (quote.at, quote.to)})
    divided = list[Quote]()
    for at, to in pairwise(ends):
        parts = [[q.part(at, to) for q in each if q.at <= at and to <= q.to] for each in every]
        if all(parts):
            (own, *_), *others = parts
            more = [span for each in others for part in each for span in part.sources]
            verbatim = all(part.verbatim for each in parts for part in each)
            divided.append(own._replace(beside=(*own.beside, *more), verbatim=verbatim))
    return tuple(divided)


def _is_within(span: Span, others: Iterable[Span]) -> bool:
    return any(other.start <= span.start and span.end <= other.end for other in others)


def _spans(quotes: Quotes) -> list[Span]:
    return [span for quote in quotes for span in quote.sources]


def _first_place(quotes: Quotes) -> tuple[str, int]:
    return min(((span.document, span.start) for span in _spans(quotes)), default=("", -1))
