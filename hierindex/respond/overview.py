"""Overviews without a language model: a line for each of the parts that were found."""

from collections.abc import Sequence

import numpy as np

from hierindex.node import Node, titles_of
from hierindex.respond.answer import Passage
from hierindex.respond.quotable import Extract, Unit, follows, quoted
from hierindex.retrieve.retrieval import Retrieved
from hierindex.store.snapshot import Snapshot
from hierindex.summarize.extractive import SalientSentences
from hierindex.summarize.summary import Budget
from hierindex.text.sentences import Sentence

REST = 4  # of a budget, the part that names what is left out
MOST = 80  # words of the text of a single node


def overview(retrieved: Retrieved, units: Sequence[Unit], budget: Budget) -> Extract:
    """Return a line for each node: its title, its share of the text, and its best sentence.

    Lines are in the order of the nodes. If not all fit the budget, those of the largest shares are
    kept, or of the best scores without shares, which only nodes of an outline have; the others are
    named. A single node has more of its text, and the titles of its children.
    """
    sentences = [
        Sentence(text, quote.at, quote.to, quote, k, kind, _name(retrieved.found[k].node))
        for k, _, kind, text, quote, _ in units
    ]
    best = SalientSentences().best(sentences)
    at = {(sentence.child, sentence.at): i for i, sentence in enumerate(sentences)}
    first = {k: at[k, sentence.at] for k, sentence in sorted(best.items())}
    found, shares = [retrieved.found[k] for k in first], retrieved.shares
    most = MOST if len(first) == 1 else 1
    lines = [
        _line(node, shares.get(node.id), units, i, most)
        for (node, _), i in zip(found, first.values(), strict=True)
    ]
    costs = budget.count([f"{line.lead} {line.text}" for line in lines])
    weights = [shares.get(node.id, score) for node, score in found]
    order = np.argsort([-weight for weight in weights], kind="stable")
    room, kept = budget.max_tokens, set[int]()
    if len(lines) > 1 and costs.sum() > room:
        room -= room // REST
    for k in order.tolist():
        if costs[k] <= room or not kept:
            kept.add(k)
            room -= int(costs[k])
    if len(lines) == 1:
        more = _parts(found[0].node, retrieved.snapshot, budget)
    else:
        left = [k for k in order.tolist() if k not in kept]
        share = sum(weights[k] for k in left) if shares else None
        more = _more([_name(found[k].node) for k in left], share, budget)
    return Extract([lines[k] for k in sorted(kept)], 1.0, more, after_lead=" ")


def _line(node: Node, share: float | None, units: Sequence[Unit], first: int, most: int) -> Passage:
    """Return a sentence of a node, and what follows it, after its name and its share."""
    known = "" if share is None else f"({_percent(share)})"
    lead = " ".join(filter(None, (_name(node), known)))
    last, n_words = first, units[first].n_words
    while last + 1 < len(units) and follows(units[last], units[last + 1]):
        if (n_words := n_words + units[last + 1].n_words) > most:
            break
        last += 1
    return quoted(node, units[first], units[last], f"{lead}:" if lead else "", units[first].text)


def _name(node: Node) -> str:
    """Return a node's title; of a part of a document without a heading, the document's name."""
    title = " ".join(node.title.split())
    headings = {each for span in node.citations for each in titles_of(span.section)}
    is_named = len(node.documents) > 1 or node.whole_document or title.split(", ")[0] in headings
    return title if is_named or not node.document_name else node.document_name


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


def _more(names: Sequence[str], share: float | None, budget: Budget) -> str:
    """Return how many parts are left out, their share, and those names that fit."""
    if not names:
        return ""
    known = "" if share is None else f" ({_percent(share)})"
    said = f"and {len(names):,} more part{'' if len(names) == 1 else 's'}{known}"
    listed = [*dict.fromkeys(filter(None, names))]
    while REST * budget.count([f"{said}: {'; '.join(listed)}"])[0] > budget.max_tokens and listed:
        listed.pop()
    return f"{said}: {'; '.join(listed)}" if listed else said
