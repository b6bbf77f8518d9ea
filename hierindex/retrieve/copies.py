"""Copies among nodes: nodes of equal text, which become one with the places of all."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from llama_index.core.schema import MetadataMode, NodeWithScore

from hierindex.record import NodeRecord, Quote, Span
from hierindex.retrieve.question import Search
from hierindex.store.prefilter import by_texts
from hierindex.store.rows import quotes_in

MOST = 1000  # nodes that are searched for more texts
WIDER = 2  # times as many in each search

Quotes = Sequence[Quote]


async def best_texts(
    best: Callable[[int], Awaitable[list[NodeWithScore]]], n: int
) -> list[NodeWithScore]:
    """Return the best nodes of `n` distinct texts, best first.

    Parameters
    ----------
    best : callable
        Returns at most a number of nodes, best first.
    n : int
    """
    most = n
    while True:
        found = await best(most)
        texts = dict.fromkeys(map(_text, found))
        if len(texts) >= n or len(found) < most or most >= MOST:
            kept = {*[*texts][:n]}
            return [node for node in found if _text(node) in kept]
        most *= WIDER


async def without_copies(found: Sequence[NodeWithScore], search: Search) -> list[NodeWithScore]:
    """Return one node for each text, with the places of all nodes of this text in the index.

    Of several it is the one of the lowest level, of the document whose id comes first, with the
    best score and the rank of the best. So chunks of a document and of its copy become those of
    one document. Places must pass the filters of the search.
    """
    copies = defaultdict[str, list[NodeWithScore]](list)
    for node in found:
        copies[_text(node)].append(node)
    if not copies:
        return []
    rows = await search.snapshot.rows(
        filters=search.filters,
        where=by_texts(copies),
        partial_summaries=search.partial_summaries,
        columns=("id", "text", "record"),
    )
    quotes = defaultdict[str, list[Quotes]](list)
    for row in rows:
        quotes[row["text"]].append(quotes_in(row["record"]))
    return [_merged(nodes, quotes[text]) for text, nodes in copies.items()]


def _merged(nodes: Sequence[NodeWithScore], quotes: Iterable[Quotes]) -> NodeWithScore:
    """Return the first of nodes by level and place, with all places of quotes of its text."""
    records = [NodeRecord.from_metadata(found.metadata) for found in nodes]
    first = min(
        range(len(nodes)), key=lambda i: (records[i].level, _first_place(records[i].quotes))
    )
    node, record = nodes[first].node, records[first]
    for each in sorted(quotes, key=_first_place):
        if not all(_is_within(span, record.citations) for span in _spans(each)):
            record = replace(record, quotes=_with_places(record.quotes, each))
    if record is not records[first]:
        node = node.model_copy(update={"metadata": node.metadata | record.to_metadata()})
    return NodeWithScore(node=node, score=max(found.get_score() for found in nodes))


def _with_places(quotes: Quotes, copies: Quotes) -> tuple[Quote, ...]:
    """Add the sources of the quotes of an equal text, and divide quotes where those end."""
    bounds = ((q, c, max(q.at, c.at), min(q.to, c.to)) for q in quotes for c in copies)
    pairs = ((q.part(at, to), c.part(at, to)) for q, c, at, to in bounds if at < to)
    return tuple(
        q._replace(beside=(*q.beside, *c.sources), verbatim=q.verbatim and c.verbatim)
        for q, c in pairs
    )


def _is_within(span: Span, others: Iterable[Span]) -> bool:
    return any(
        span.document == other.document and other.start <= span.start and span.end <= other.end
        for other in others
    )


def _spans(quotes: Quotes) -> list[Span]:
    return [span for quote in quotes for span in quote.sources]


def _first_place(quotes: Quotes) -> tuple[str, int]:
    return min(((span.document, span.start) for span in _spans(quotes)), default=("", -1))


def _text(found: NodeWithScore) -> str:
    return found.node.get_content(MetadataMode.NONE)
