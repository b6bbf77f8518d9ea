"""Answers to questions about the whole: the parts of the text, with sentences of each."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from hierindex.core.titles import first_words
from hierindex.node import Node
from hierindex.respond.answer import Passage
from hierindex.respond.quotable import Extract, Unit, follows, quoted
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
MOST_TITLES = 90  # characters of the titles of a group


def overview(retrieved: Retrieved, units: Sequence[Unit], budget: Budget) -> Extract:
    """Return an overview: for each part its name, its share of the text, and its best sentence.

    A part is a node, or consecutive nodes of one document with the same heading. Such a part has a
    sentence for each tenth of the text, up to three. If not all fit the budget, the parts with the
    largest shares are kept and the others are only named. Only nodes of an outline have shares; for
    others, the best scores are kept. A single node has more of its text, and the titles of its
    children.
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
        return Extract([line], 1.0, _parts(node, retrieved.snapshot, budget), after_lead=" ")
    parts = _named({k: found[k].node for k in weight})
    share_of = [sum(weight[k] for k in run) for _, run in parts]
    first, others = dict[int, Passage](), dict[int, Passage]()
    for (name, run), share in zip(parts, share_of, strict=True):
        largest = sorted(run[1:], key=weight.__getitem__, reverse=True)
        n_more = max(0, min(MOST_OF_PART, round(10 * share)) - 1)
        for k in sorted([run[0], *largest[:n_more]]):
            lead, into = ("", others) if first.keys() & {*run} else (name, first)
            known = share if lead and shares else None
            into[k] = _line(found[k].node, lead, known, units, best[k])
    kept = _fitting(first, others, weight, budget)
    left = [i for i, (_, run) in enumerate(parts) if kept.keys().isdisjoint(run)]
    left.sort(key=lambda i: -share_of[i])
    share = sum(share_of[i] for i in left) if shares else None
    more = _more([parts[i][0] for i in left], share, budget)
    return Extract([kept[k] for k in sorted(kept)], 1.0, more, after_lead=" ")


def _named(nodes: Mapping[int, Node]) -> list[tuple[str, list[int]]]:
    """Return the parts of an overview: names, and the keys of their nodes.

    Nodes of one document are joined if they have the same heading; without headings, they have no
    names.
    """
    if len({document for node in nodes.values() for document in node.documents}) > 1:
        return [(_titles(node) or name_of_part(node), [k]) for k, node in nodes.items()]
    runs = [(name, [*run]) for name, run in groupby(nodes, lambda k: name_of_part(nodes[k]))]
    return runs if len(runs) > 1 else [("", [k]) for k in nodes]


def _titles(node: Node) -> str:
    """Return some titles of a group's documents, those with most words of its name first.

    The result is empty for a single document, and for documents that are called by their files.
    """
    titles = [title for title in node.titles if " " in title]
    if len(node.documents) == 1 or not titles:
        return ""
    words = {*tokens(node.title.lower())}
    titles.sort(key=lambda title: -len(words.intersection(tokens(title.lower()))))
    shown = [first_words(titles[0], MOST_TITLES)]
    for title in titles[1:]:
        if len("; ".join([*shown, title])) <= MOST_TITLES:
            shown.append(title)
    n_more = len(node.documents) - len(shown)
    return "; ".join([*shown, f"{n_more:,} more"] if n_more else shown)


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


def _fitting(
    first: Mapping[int, Passage],
    others: Mapping[int, Passage],
    weight: Mapping[int, float],
    budget: Budget,
) -> dict[int, Passage]:
    """Return the passages of the largest weights that fit a budget, the `first` before others."""
    lines = {
        k: of[k] for of in (first, others) for k in sorted(of, key=weight.__getitem__, reverse=True)
    }
    costs = budget.count([f"{line.lead} {line.text}" for line in lines.values()])
    room, kept = budget.max_tokens, dict[int, Passage]()
    if sum(costs[: len(first)]) > room:
        room -= room // REST
    for (k, line), cost in zip(lines.items(), costs.tolist(), strict=True):
        if cost <= room or not kept:
            kept[k] = line
            room -= cost
    return kept


def _parts(node: Node, snapshot: Snapshot | None, budget: Budget) -> str:
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
