"""Claims: links from the sentences of a summary to excerpts of its children."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hierindex.node import Quote
from hierindex.text.sentences import Excerpt


class Claim(NamedTuple):
    """The part `text[at:to]` of a summary, and the excerpts of its children that support it.

    `excerpts` are sorted by similarity, best first. A verbatim claim has a single excerpt with the
    same characters; a claim that no source supports has none. Claims do not name documents, so
    they stay valid if documents are renamed.
    """

    at: int
    to: int
    excerpts: tuple[Excerpt, ...]
    verbatim: bool = True


def resolve_claims(
    claims: Sequence[Claim], children: Sequence[Sequence[Quote]]
) -> tuple[Quote, ...]:
    """Resolve the claims of a summary to quotes, using the quotes of its children.

    Parameters
    ----------
    claims : Sequence[Claim]
    children : Sequence[Sequence[Quote]]
        The quotes of each child.

    Returns
    -------
    tuple[Quote, ...]
        In the order of the claims. A verbatim claim gives one quote for each of the child's
        quotes that its excerpt overlaps, any other claim gives a single quote.

    Examples
    --------
    >>> from hierindex.node import Span
    >>> child = [Quote(0, 9, Span("a.txt", 100, 109))]
    >>> [quote] = resolve_claims([Claim(0, 4, (Excerpt(0, 5, 9),))], [child])
    >>> quote.at, quote.to, quote.source.start, quote.source.end
    (0, 4, 105, 109)
    """
    quotes: list[Quote] = []
    for claim in claims:
        parts = [part for e in claim.excerpts for part in _parts(e, children[e.child])]
        if claim.verbatim:
            moved = claim.at - claim.excerpts[0].at
            quotes += [part._replace(at=part.at + moved, to=part.to + moved) for part in parts]
        else:
            spans = tuple(dict.fromkeys(span for part in parts for span in part.sources))
            best = spans[0] if spans else None
            quotes.append(Quote(claim.at, claim.to, best, verbatim=False, beside=spans[1:]))
    return tuple(quotes)


def _parts(excerpt: Excerpt, quotes: Sequence[Quote]) -> Iterator[Quote]:
    for quote in quotes:
        at, to = max(quote.at, excerpt.at), min(quote.to, excerpt.to)
        if at < to:
            yield quote.part(at, to)
