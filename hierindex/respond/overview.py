"""Overviews without a language model: a line for each of the parts that were found."""

from collections.abc import Sequence

import numpy as np
from llama_index.core.schema import NodeWithScore

from hierindex.core.membership import Floats1d, Ints1d
from hierindex.core.relevance import centroid_similarity
from hierindex.embed.embedder import Embedder
from hierindex.record import NodeRecord
from hierindex.respond.legible import Pool
from hierindex.respond.quoted import Extract, Passage, citation_of
from hierindex.retrieve.retrieved import RetrievedNode
from hierindex.summarize.summary import Budget

LINES = 3  # minimum number of parts that the budget has room for, if they have short sentences


def overview(
    nodes: Sequence[NodeWithScore],
    pool: Pool,
    n_tokens: Ints1d,
    embedder: Embedder,
    budget: Budget,
) -> Extract:
    """Return a line for each node: its title, its share of the text, and its first sentence.

    Parameters
    ----------
    nodes : sequence of NodeWithScore
        In the order of the lines. If the lines exceed the budget, those of the largest shares are
        kept. Without shares, which only nodes of an outline have, the line of the most central
        sentence counts for most.
    pool : Pool
        The sentences of the nodes.
    n_tokens : (n_sentences,) int
    embedder : Embedder
        Of the sentences, unless there are shares.
    budget : Budget
        Of all lines. While it has room for all of them, they get a second sentence, and so on.
    """
    own = _own(pool, n_tokens, len(nodes), budget)
    shares = [node.share if isinstance(node, RetrievedNode) else None for node in nodes]
    known = [share for share in shares if share is not None]
    weights = np.array(known) if len(known) == len(nodes) else _central(pool, own, embedder)
    leads = [_lead(node, share) for node, share in zip(nodes, shares, strict=True)]
    cost = budget.count([*leads, _more(len(nodes), 1.0)])
    best_first, chosen = np.argsort(-weights, kind="stable").tolist(), dict[int, list[int]]()
    room = budget.max_tokens - (int(cost[-1]) if len(nodes) > LINES else 0)
    for turn in range(max(map(len, own), default=0)):
        if turn and len(chosen) < len(nodes):
            break
        for k in best_first:
            more = own[k][turn : turn + 1]
            added = int(n_tokens[more].sum()) + (0 if turn else int(cost[k]))
            if (more or not turn) and (added <= room or not chosen):
                chosen.setdefault(k, []).extend(more)
                room -= added
    left = [k for k in best_first if k not in chosen]
    first = next((own[k][0] for k in best_first if chosen.get(k)), None)
    return Extract(
        [line for k in sorted(chosen) for line in _line(nodes[k], leads[k], pool, chosen[k])],
        "" if first is None else pool.sentences[first].text,
        1.0,
        _more(len(left), sum(known[k] for k in left) if len(known) == len(nodes) else None),
    )


def _own(pool: Pool, n_tokens: Ints1d, n_nodes: int, budget: Budget) -> list[list[int]]:
    """Return the sentences of each node that can be quoted alone, the one for its line first.

    That is the first that takes no more than its part of the budget.
    """
    node, own = pool.node, list[list[int]]()
    for k in range(n_nodes):
        fits = (node == k) & pool.own & (n_tokens <= budget.max_tokens)
        rows = [i for i in np.flatnonzero(fits).tolist() if not pool.needs[i]]
        short = (i for i in rows if n_tokens[i] * LINES <= budget.max_tokens)
        first = next(short, rows[0] if rows else None)
        own.append(sorted(rows, key=lambda i: i != first))
    return own


def _central(pool: Pool, own: Sequence[Sequence[int]], embedder: Embedder) -> Floats1d:
    """Return how central the first sentence of each node is; -inf for nodes that have none."""
    weights, told = np.full(len(own), -np.inf), [k for k, rows in enumerate(own) if rows]
    if told:
        S = embedder.embed([pool.sentences[own[k][0]].text for k in told])  # (n_told, n_dims)
        weights[told] = centroid_similarity(S)
    return weights


def _line(node: NodeWithScore, lead: str, pool: Pool, sentences: Sequence[int]) -> list[Passage]:
    """Return the passages of a line, the first with its lead; of a part without sentences, that."""
    quotes = [pool.sentences[i].quote for i in sorted(sentences)]
    if not quotes:
        quote = next(iter(NodeRecord.from_metadata(node.metadata).quotes), None)
        return [Passage("", quote and citation_of(quote, quote), lead.removesuffix(":"))]
    return [
        Passage(pool.sentences[i].text, citation_of(quote, quote), "" if at else lead)
        for at, (i, quote) in enumerate(zip(sorted(sentences), quotes, strict=True))
    ]


def _lead(node: NodeWithScore, share: float | None) -> str:
    """Return a node's title and share, as in "Weather (50%):"."""
    title = " ".join(NodeRecord.from_metadata(node.metadata).title.split())
    known = "" if share is None else f"({_percent(share)})"
    lead = " ".join(filter(None, (title, known)))
    return f"{lead}:" if lead else ""


def _percent(share: float) -> str:
    """Format a share.

    >>> _percent(0.234), _percent(0.002)
    ('23%', 'less than 1%')
    """
    return f"{share:.0%}" if share >= 0.005 else "less than 1%"


def _more(n: int, share: float | None) -> str:
    """Return how many parts are left out, and their share.

    >>> _more(2, 0.234)
    'and 2 more parts (23%)'
    """
    if not n:
        return ""
    known = "" if share is None else f" ({_percent(share)})"
    return f"and {n:,} more part{'' if n == 1 else 's'}{known}"
