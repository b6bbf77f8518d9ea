"""Answers to questions about the whole: the parts of the text, with sentences of each."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby

from hierindex.core.titles import first_words
from hierindex.node import Node
from hierindex.respond.answer import Passage
from hierindex.respond.quotable import Extract, Unit, follows, quoted
from hierindex.retrieve.named import titles_of_documents
from hierindex.retrieve.outline import name_of_part
from hierindex.retrieve.retrieval import Retrieved
from hierindex.store.snapshot import Snapshot
from hierindex.summarize.extractive import SalientSentences
from hierindex.summarize.summary import Budget
from hierindex.text.display import percent
from hierindex.text.sentences import Sentence, tokens

REST = 4  # of a budget, the part that names what is left out
MOST_WORDS = 80  # words of the text of a single node
MOST_OF_PART = 3  # sentences
FOURTH = 4  # sentences of a part, of which one is quoted
UNTITLED_PART = 1 / 8  # of the text of a document without headings
MOST_TITLES = 70  # characters of the titles of a group


def overview(retrieved: Retrieved, units: Sequence[Unit], budget: Budget) -> Extract:
    """Return an overview: for each part its name, its share of the text, and its best sentences.

    A part has a sentence for each tenth of the text, at least one and at most three. If not all fit
    the budget, the parts with the largest shares are kept and the others are only named. Only nodes
    of an outline have shares; for others, the best scores are kept. A single node has more of its
    text, and the titles of its children.
    """
    nodes, shares = [node for node, _ in retrieved.found], retrieved.shares
    weight = {
        k: shares.get(nodes[k].id, retrieved.found[k].score)
        for k in dict.fromkeys(unit.node for unit in units)
    }
    parts = _parts(nodes, weight, bool(shares))
    part_of = {k: i for i, part in enumerate(parts) for k in part}
    at = {
        Sentence(text, quote.at, quote.to, quote, part_of[k], kind, name_of_part(nodes[k])): i
        for i, (k, _, kind, text, quote, _) in enumerate(units)
    }
    ranked = SalientSentences().ranked([*at])
    best = {i: [at[sentence] for sentence in ranked[i]] for i in sorted(ranked)}
    if len(parts) == 1 == len(parts[0]):
        (first, *_), node = best[0], nodes[parts[0][0]]
        lead = _lead(name_of_part(node), weight[parts[0][0]] if shares else None)
        line = _line(node, lead, units, first, MOST_WORDS)
        return Extract([line], 1.0, _children(node, retrieved.snapshot, budget), after_lead=" ")
    share = {i: sum(weight[k] for k in parts[i]) for i in best}
    names = _names(nodes, {i: units[each[0]] for i, each in best.items()}, retrieved.snapshot)
    leads = {i: _lead(name, share[i] if shares and name else None) for i, name in names.items()}

    def most(i: int) -> int:
        return max(1, min(MOST_OF_PART, round(10 * share[i]), len(best[i]) // FOURTH))

    lines = [
        (n, -share[i], i, first)
        for i, each in best.items()
        for n, first in enumerate(each[: most(i) if shares else 1])
    ]
    lines.sort()
    costs = budget.count([f"{leads[i] * (n == 0)} {units[first].text}" for n, _, i, first in lines])
    room, kept = budget.max_tokens, defaultdict[int, list[int]](list)
    if sum(costs[: len(best)]) > room:
        room -= room // REST
    for (n, _, i, first), cost in zip(lines, costs.tolist(), strict=True):
        if not kept or (cost <= room and (n == 0 or i in kept)):
            kept[i].append(first)
            room -= cost
    passages = [
        _line(nodes[units[first].node], leads[i] * (n == 0), units, first)
        for i in sorted(kept)
        for n, first in enumerate(sorted(kept[i]))
    ]
    left = [i for _, i in sorted((-share[i], i) for i in best if i not in kept)]
    of_left = sum(share[i] for i in left) if shares else None
    more = _more([names[i] or "" for i in left], of_left, budget)
    return Extract(passages, 1.0, more, after_lead=" ")


def _parts(nodes: Sequence[Node], weight: Mapping[int, float], are_shares: bool) -> list[list[int]]:
    """Return the parts of an overview, each as the positions of its nodes, in order.

    Consecutive nodes of one document are joined if they have the same heading, and up to an eighth
    of the text if the document has no headings.
    """
    if len({document for k in weight for document in nodes[k].documents}) > 1:
        return [[k] for k in weight]
    runs = [[*run] for _, run in groupby(weight, lambda k: name_of_part(nodes[k]))]
    if len(runs) > 1:
        return runs
    parts, share = list[list[int]](), math.inf
    for k in weight:
        if not are_shares or share + weight[k] / 2 > UNTITLED_PART:
            parts.append([])
            share = 0.0
        parts[-1].append(k)
        share += weight[k]
    return parts


def _names(
    nodes: Sequence[Node], first: Mapping[int, Unit], snapshot: Snapshot | None
) -> dict[int, str]:
    """Return the names of parts, given the first sentence of each, "" without headings.

    A group of documents is called by titles of documents, the quoted one first.
    """
    named = {i: nodes[unit.node] for i, unit in first.items()}
    names = {i: name_of_part(node) for i, node in named.items()}
    if len({document for node in named.values() for document in node.documents}) == 1:
        return names if len({*names.values()}) > 1 else dict.fromkeys(names, "")
    quoted_from = {i: unit.quote.source for i, unit in first.items()}
    documents = {span.document for span in quoted_from.values() if span}
    title_of = titles_of_documents(snapshot, [*documents]) if snapshot else {}
    return {
        i: _titles(node, title_of.get(span.document, "") if (span := quoted_from[i]) else "")
        or names[i]
        for i, node in named.items()
    }


def _titles(node: Node, first: str) -> str:
    """Return some titles of a group's documents: `first`, then those with most words of its name.

    The result is empty for a single document, and for documents that are called by their files.
    """
    titles = {title: None for title in node.titles if " " in title and title != first}
    if len(node.documents) == 1 or not (first or titles):
        return ""
    words = {*tokens(node.title.lower())}
    others = sorted(titles, key=lambda title: -len(words.intersection(tokens(title.lower()))))
    first, *others = filter(None, [first, *others])
    shown = [first_words(first, MOST_TITLES)]
    for title in others:
        if len("; ".join([*shown, title])) <= MOST_TITLES:
            shown.append(title)
    n_more = len(node.documents) - len(shown)
    return "; ".join(shown) + f" and {n_more:,} more" * (n_more > 0)


def _lead(name: str, share: float | None) -> str:
    """Return what stands before the first sentence of a part: its name and its share."""
    known = "" if share is None else f"({percent(share)})"
    return " ".join(filter(None, (name, known))) + ":" * bool(name)


def _line(node: Node, lead: str, units: Sequence[Unit], first: int, most: int = 1) -> Passage:
    """Return a sentence of a node and the text after it, up to a number of words."""
    last, n_words = first, units[first].n_words
    while last + 1 < len(units) and follows(units[last], units[last + 1]):
        if (n_words := n_words + units[last + 1].n_words) > most:
            break
        last += 1
    return quoted(node, units[first], units[last], lead, units[first].text)


def _children(node: Node, snapshot: Snapshot | None, budget: Budget) -> str:
    """Return the titles of a node's children, within half of a budget; empty if unknown."""
    if not (node.children and snapshot):
        return ""
    rows = snapshot.rows(node.children, columns=("id", "title"))
    said = f"In {len(node.children):,} parts"
    listed = _listed(said, [row["title"] for row in rows], budget.max_tokens / 2, budget)
    return listed if listed != said else ""


def _more(names: Sequence[str], share: float | None, budget: Budget) -> str:
    """Return the number and share of the omitted parts, and those names that fit."""
    if not names:
        return ""
    known = "" if share is None else f" ({percent(share)})"
    said = f"and {len(names):,} more part{'' if len(names) == 1 else 's'}{known}"
    return _listed(said, names, budget.max_tokens / REST, budget)


def _listed(said: str, names: Sequence[str], most: float, budget: Budget) -> str:
    """Return a text followed by distinct names that fit a number of tokens."""
    listed = [*dict.fromkeys(filter(None, names))]
    while listed and budget.count([f"{said}: {'; '.join(listed)}"])[0] > most:
        listed.pop()
    return f"{said}: {'; '.join(listed)}" if listed else said
