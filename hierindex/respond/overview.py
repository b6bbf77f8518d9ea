"""Overviews without a language model: a line for each of the parts that were found."""

import re
from collections.abc import Sequence

import numpy as np

from hierindex.node import Node
from hierindex.respond.answer import Passage
from hierindex.respond.evidence import words_of
from hierindex.respond.quotable import Extract, Unit, follows, quoted
from hierindex.retrieve.retrieval import Retrieved
from hierindex.store.snapshot import Snapshot
from hierindex.summarize.summary import Budget
from hierindex.text.stop_words import UNTITLED

TELLING = frozenset({"paragraph", "item", "quotation"})
LEAST = 4  # words of a line that are no stop words
MOST = 80  # words of the text of a single node
END = re.compile(r"[.!\u2026\u0964\u3002\uff01][\"'*_)\]\u00bb\u2019\u201d]*$")


def overview(retrieved: Retrieved, units: Sequence[Unit], budget: Budget) -> Extract:
    """Return a line for each node: its title, its share of the text, and a sentence of it.

    Lines are in the order of the nodes. If not all fit the budget, those of the largest shares are
    kept, or of the best scores without shares, which only nodes of an outline have. A single node
    has more of its text, and the titles of its children.
    """
    told = sorted({unit.node for unit in units})
    found, shares = [retrieved.found[k] for k in told], retrieved.shares
    nodes = [node for node, _ in found]
    of = [[unit for unit in units if unit.node == k] for k in told]
    lines = [
        _line(node, shares.get(node.id), said, MOST if len(nodes) == 1 else 1)
        for node, said in zip(nodes, of, strict=True)
    ]
    more = _parts(nodes[0], retrieved.snapshot, budget) if len(nodes) == 1 else _more(len(nodes), 1)
    costs = budget.count([*(f"{line.lead} {line.text}" for line in lines), more])
    room, kept = budget.max_tokens - int(costs[-1]), list[int]()
    weights = [shares.get(node.id, score) for node, score in found]
    for k in np.argsort([-weight for weight in weights], kind="stable").tolist():
        if costs[k] <= room or not kept:
            kept.append(k)
            room -= int(costs[k])
    if len(nodes) > 1:
        left = set(range(len(nodes))).difference(kept)
        more = _more(len(left), sum(weights[k] for k in left) if shares else None)
    return Extract([lines[k] for k in sorted(kept)], 1.0, more, after_lead=" ")


def _line(node: Node, share: float | None, units: Sequence[Unit], most: int) -> Passage:
    """Return the first sentences of a node that tell something, after its title and its share."""
    title = " ".join(node.title.split())
    known = "" if share is None else f"({_percent(share)})"
    lead = " ".join(filter(None, (title, known)))
    first = next((i for i, unit in enumerate(units) if _tells(unit)), None)
    if first is None:
        first = max(range(len(units)), key=lambda i: units[i].n_words)
    last, n_words = first, units[first].n_words
    while last + 1 < len(units) and follows(units[last], units[last + 1]):
        if (n_words := n_words + units[last + 1].n_words) > most:
            break
        last += 1
    return quoted(node, units[first], units[last], f"{lead}:" if lead else "", units[first].text)


def _tells(unit: Unit) -> bool:
    """Return whether a unit is a whole sentence that does not ask and is more than a greeting."""
    words = [word for word in words_of(unit.text) if len(word) > 1 and word not in UNTITLED]
    return unit.kind in TELLING and len(words) >= LEAST and END.search(unit.text) is not None


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
