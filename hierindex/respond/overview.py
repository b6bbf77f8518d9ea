"""Overviews without a language model: a line for each of the parts that were found."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hierindex.core.arrays import Floats1d, Ints1d
from hierindex.core.salience import centroid_similarity
from hierindex.embed.embedder import Embedder
from hierindex.node import Node
from hierindex.respond.evidence import words_of
from hierindex.respond.legible import END, LABEL, Pool
from hierindex.respond.quoted import Extract, Passage, citation_of, passages_of, select_runs
from hierindex.retrieve.retrieval import Retrieved
from hierindex.store.snapshot import Snapshot
from hierindex.summarize.summary import Budget
from hierindex.text.stop_words import UNTITLED

MIN_WORDS = 4  # of a sentence that tells something; stop words do not count
ASKS, CLOSING = ("?", "\uff1f"), "\"')]*_\u201d\u2019"
LINES = 5  # in a budget, if the parts have short sentences


def overview(
    retrieved: Retrieved,
    pool: Pool,
    n_tokens: Ints1d,
    embedder: Embedder,
    budget: Budget,
) -> Extract:
    """Return a line for each node: its title, its share of the text, and a sentence of it.

    A single node has up to three passages instead, see `_opening`.

    Parameters
    ----------
    retrieved : Retrieved
        With nodes in the order of the lines. If the lines exceed the budget, those of the largest
        shares are kept. Without shares, which only nodes of an outline have, the line of the most
        central sentence counts for most.
    pool : Pool
        The sentences of the nodes.
    n_tokens : (n_sentences,) int
    embedder : Embedder
        Of the sentences, unless there are shares.
    budget : Budget
        Of all lines.
    """
    nodes, snapshot = [node for node, _ in retrieved.found], retrieved.snapshot
    shares = [retrieved.shares.get(node.id) for node in nodes]
    if len(nodes) == 1 and (
        opening := _opening(nodes[0], shares[0], snapshot, pool, n_tokens, budget)
    ):
        return opening
    first = [_first(pool, n_tokens, k, budget) for k in range(len(nodes))]
    known = [share for share in shares if share is not None]
    are_known = len(known) == len(nodes)
    weights = np.array(known) if are_known else _central(pool, first, embedder)
    leads = [_lead(node, share) for node, share in zip(nodes, shares, strict=True)]
    lead_tokens = budget.count([*leads, _more(len(nodes), 1.0)])
    room = budget.max_tokens - (int(lead_tokens[-1]) if len(nodes) > 1 else 0)
    best_first, chosen = np.argsort(-weights, kind="stable").tolist(), list[int]()
    for k in best_first:
        i = first[k]
        cost = int(lead_tokens[k]) + (0 if i is None else int(n_tokens[i]))
        if cost <= room or not chosen:
            chosen.append(k)
            room -= cost
    best = first[chosen[0]]
    left = set(range(len(nodes))).difference(chosen)
    return Extract(
        [_line(nodes[k], leads[k], pool, first[k]) for k in sorted(chosen)],
        "" if best is None else pool.sentences[best].text,
        1.0,
        _more(len(left), sum(known[k] for k in left) if are_known else None),
    )


def _first(pool: Pool, n_tokens: Ints1d, node: int, budget: Budget) -> int | None:
    """Return the sentence that stands for a node; None if no sentence can be quoted alone.

    Prefer the first informative sentence that fits; otherwise the shortest, otherwise the most
    informative.
    """
    fits = (pool.node == node) & pool.own & (n_tokens <= budget.max_tokens)
    rows = [i for i in np.flatnonzero(fits).tolist() if not pool.needs[i]]
    told = {i: _told(pool.sentences[i].text) for i in rows}
    tells = [i for i in rows if told[i] >= MIN_WORDS]
    if not tells:
        return max(rows, key=told.__getitem__, default=None)
    short = (i for i in tells if n_tokens[i] * LINES <= budget.max_tokens)
    return next(short, min(tells, key=lambda i: n_tokens[i]))


def _opening(
    node: Node,
    share: float | None,
    snapshot: Snapshot | None,
    pool: Pool,
    n_tokens: Ints1d,
    budget: Budget,
) -> Extract | None:
    """Return the first sentences of a node that tell something, and the titles of its children."""
    lead, parts = _lead(node, share), _parts(node, snapshot, budget)
    used = budget.count([lead, parts]).sum()
    room = replace(budget, max_tokens=budget.max_tokens - int(used))
    says, n = pool.own & (n_tokens <= room.max_tokens), len(n_tokens)
    for i in np.flatnonzero(says).tolist():
        goes_on = i > 0 and says[i - 1] and pool.joined[i]
        says[i] = goes_on or _told(pool.sentences[i].text) >= MIN_WORDS
    scores = np.where(says, -np.arange(n) / (2 * n), -np.inf)  # all near the first
    runs = select_runs(pool, scores, np.zeros((n, 0), dtype=np.bool_), n_tokens, room)
    if not runs:
        return None
    first, *others = passages_of(pool, runs, scores)
    best = pool.sentences[runs[0][0]].text
    return Extract([first._replace(lead=lead), *others], best, 1.0, parts)


def _parts(node: Node, snapshot: Snapshot | None, budget: Budget) -> str:
    """Return the titles of a node's children, in half of a budget; empty if they are not known."""
    if not (node.children and snapshot):
        return ""
    rows = snapshot.rows(node.children, columns=("id", "title"))
    titles = [*dict.fromkeys(row["title"] for row in rows if row["title"])]

    def said() -> str:
        return f"In {len(node.children):,} parts: {'; '.join(titles)}" if titles else ""

    while budget.count([said()])[0] * 2 > budget.max_tokens:
        titles.pop()
    return said()


def _told(text: str) -> int:
    """Return how many words of a sentence tell something; -1 if it asks or does not end.

    >>> [_told(text) for text in ("Ada Bo: Good morning, all.", "Why?", "Ada: The pump failed.")]
    [1, -1, 2]
    """
    if text.rstrip(CLOSING).endswith(ASKS) or not END.search(text):
        return -1
    label = LABEL.match(text)
    words = words_of(text[label.end() - 1 :] if label else text)
    return sum(len(word) > 1 and word not in UNTITLED for word in words)


def _central(pool: Pool, first: Sequence[int | None], embedder: Embedder) -> Floats1d:
    """Return how central the first sentence of each node is; -inf for nodes that have none."""
    weights, rows = np.full(len(first), -np.inf), [i for i in first if i is not None]
    if rows:
        S = embedder.embed([pool.sentences[i].text for i in rows])  # (n_rows, n_dims)
        weights[[i is not None for i in first]] = centroid_similarity(S)
    return weights


def _line(node: Node, lead: str, pool: Pool, sentence: int | None) -> Passage:
    """Return a line; if no sentence of the node can be quoted, only its title is shown."""
    if sentence is not None:
        quote = pool.sentences[sentence].quote
        return Passage(pool.sentences[sentence].text, citation_of(quote, quote), lead)
    quotes = node.quotes
    citation = citation_of(quotes[0], quotes[0]) if quotes else None
    return Passage("", citation, lead.removesuffix(":"))


def _lead(node: Node, share: float | None) -> str:
    """Return a node's title and share, as in "Weather (50%):"."""
    title = " ".join(node.title.split())
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
