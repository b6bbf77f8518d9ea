"""Answers to questions about the whole: the parts of the text, with sentences of each."""

import json
from collections.abc import Mapping, Sequence, Set
from itertools import groupby
from typing import NamedTuple

from hierindex.core.titles import first_words
from hierindex.node import TITLE, Node, Span
from hierindex.respond.answer import Passage
from hierindex.respond.quotable import Extract, Unit, follows, quoted
from hierindex.retrieve.outline import name_of_part
from hierindex.retrieve.question import of_documents
from hierindex.retrieve.retrieval import Retrieved
from hierindex.store.filters import Filters
from hierindex.store.snapshot import Snapshot
from hierindex.summarize.extractive import SalientSentences
from hierindex.summarize.summary import Budget
from hierindex.text.display import percent
from hierindex.text.sentences import Sentence, tokens

REST = 4  # of a budget, the part that names what is left out
MOST_WORDS = 80  # words of the text of a single node
MOST_OF_PART = 3  # sentences
MOST_TITLES = 70  # characters of the titles of a group


class Part(NamedTuple):
    """A part of an overview: its nodes, by their positions among the found ones, with one name.

    The `lead` of its first sentence is the name or, for a group, the titles of some documents.
    """

    name: str
    lead: str
    nodes: list[int]


def overview(retrieved: Retrieved, units: Sequence[Unit], budget: Budget) -> Extract:
    """Return an overview: for each part its name, its share of the text, and its best sentences.

    A part is a node, or consecutive nodes of one document with the same heading. It has a sentence
    for each tenth of the text, at least one and at most three. If not all fit the budget, the parts
    with the largest shares are kept and the others are only named. Only nodes of an outline have
    shares; for others, the best scores are kept. A single node has more of its text, and the titles
    of its children.
    """
    found, shares = retrieved.found, retrieved.shares
    sentences = [
        Sentence(text, quote.at, quote.to, quote, k, kind, name_of_part(found[k].node))
        for k, _, kind, text, quote, _ in units
    ]
    at = {(sentence.child, sentence.at): i for i, sentence in enumerate(sentences)}
    best = {k: at[k, sentence.at] for k, sentence in SalientSentences().best(sentences).items()}
    weight = {k: shares.get(found[k].node.id, found[k].score) for k in sorted(best)}
    if len(best) == 1:
        (k,) = best
        node, share = found[k].node, weight[k] if shares else None
        line = _line(node, name_of_part(node), share, units, best[k], MOST_WORDS)
        return Extract([line], 1.0, _children(node, retrieved.snapshot, budget), after_lead=" ")
    quoted_from = {k: units[best[k]].quote.source for k in weight}
    parts = _parts({k: found[k].node for k in weight}, quoted_from, retrieved.snapshot)
    parts.sort(key=lambda part: -sum(weight[k] for k in part.nodes))
    passages = dict[int, Passage]()  # by node: the first of each part, then the others
    for part in parts:
        k, share = part.nodes[0], sum(weight[k] for k in part.nodes)
        known = share if shares and part.lead else None
        passages[k] = _line(found[k].node, part.lead, known, units, best[k])
    begins = {k: k for k in passages}  # the node that begins the part of each
    for part in parts if shares else ():
        n_more = min(MOST_OF_PART, round(10 * sum(weight[k] for k in part.nodes))) - 1
        largest = sorted(part.nodes[1:], key=lambda k: -weight[k])
        for k in largest[: max(0, n_more)]:
            passages[k], begins[k] = _line(found[k].node, "", None, units, best[k]), part.nodes[0]
    costs = budget.count([f"{each.lead} {each.text}" for each in passages.values()])
    room, kept = budget.max_tokens, dict[int, Passage]()
    if sum(costs[: len(parts)]) > room:
        room -= room // REST
    for (k, passage), cost in zip(passages.items(), costs.tolist(), strict=True):
        is_allowed = begins[k] == k or begins[k] in kept
        if not kept or (cost <= room and is_allowed):
            kept[k] = passage
            room -= cost
    left = [part for part in parts if part.nodes[0] not in kept]
    share = sum(weight[k] for part in left for k in part.nodes) if shares else None
    more = _more([part.name for part in left], share, budget)
    return Extract([kept[k] for k in sorted(kept)], 1.0, more, after_lead=" ")


def _parts(
    nodes: Mapping[int, Node], quoted_from: Mapping[int, Span | None], snapshot: Snapshot | None
) -> list[Part]:
    """Return the parts of an overview, given the source of each node's sentence.

    Nodes of one document are joined if they have the same heading; without headings, they have no
    names.
    """
    if len({document for node in nodes.values() for document in node.documents}) > 1:
        documents = {span.document for span in quoted_from.values() if span}
        title_of = _document_titles(snapshot, documents) if snapshot else {}
        parts = []
        for k, node in nodes.items():
            span, name = quoted_from[k], name_of_part(node)
            titles = _titles(node, title_of.get(span.document, "") if span else "")
            parts.append(Part(name, titles or name, [k]))
        return parts
    runs = [(name, [*run]) for name, run in groupby(nodes, lambda k: name_of_part(nodes[k]))]
    if len(runs) == 1:
        return [Part("", "", [k]) for k in nodes]
    return [Part(name, name, run) for name, run in runs]


def _document_titles(snapshot: Snapshot, documents: Set[str]) -> dict[str, str]:
    """Return the titles of those documents that have one."""
    of = Filters((of_documents([*documents]),))
    where, columns = snapshot.of_each_document, ("id", "documents", "metadata")
    rows = snapshot.rows(filters=of, where=where, columns=columns)
    titles = {row["documents"][0]: json.loads(row["metadata"]).get(TITLE) for row in rows}
    return {document: " ".join(str(title).split()) for document, title in titles.items() if title}


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


def _line(
    node: Node, name: str, share: float | None, units: Sequence[Unit], first: int, most: int = 1
) -> Passage:
    """Return a sentence of a node and the text after it, preceded by its name and share."""
    known = "" if share is None else f"({percent(share)})"
    lead = " ".join(filter(None, (name, known))) + ":" * bool(name)
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
