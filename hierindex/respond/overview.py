"""Overviews of an index: answers to questions about the whole, and the explorer's first page."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, groupby, islice
from operator import attrgetter
from pathlib import PurePosixPath
from posixpath import splitext
from typing import Any, NamedTuple

import numpy as np

from hierindex.core.arguments import Ints1d
from hierindex.core.forest import select_cut
from hierindex.core.identity import file_of, name_of
from hierindex.core.titles import topic_names
from hierindex.node import TITLE, Node
from hierindex.respond.answer import Passage
from hierindex.respond.quotable import SHORTEST, Extract, Unit, follows, quoted, units_of
from hierindex.retrieve.outline import name_of_part, outline
from hierindex.retrieve.retrieval import Retrieved
from hierindex.retrieve.search import Search
from hierindex.retrieve.tree import reading_order, whole_tree
from hierindex.store.snapshot import Snapshot, once
from hierindex.summarize.extractive import SPEAKER, SalientSentences
from hierindex.summarize.summary import Budget
from hierindex.text.display import displayed, percent
from hierindex.text.sentences import Sentence, tokens

REST = 4  # of a budget, the part that names what is left out
MOST_WORDS = 80  # words of the text of a single node
MOST_OF_PART = 3  # sentences
SENTENCES_PER_QUOTE = 4  # of a part
UNTITLED_PART = 1 / 8  # of the text of a document without headings

BLOCKS = 240  # in a column
FEW = 24  # parts of the text, which have room for words
QUOTES = 6
WORDS_OF_PART = 200  # about, from which its quote is chosen
FILE = frozenset("folder file_name file_path encoding".split())  # metadata of a file
COLOURS = 7  # values of a key that have one of their own


class OverviewPart(NamedTuple):
    """A part of a text: one node, or consecutive nodes of one document under the same heading.

    `name` is "" without headings, and `weight` the share of the text or else the score. `best` are
    the positions of its units, the most informative first.
    """

    name: str
    weight: float
    best: list[int]


WEIGHT = attrgetter("weight")


def overview_parts(
    nodes: Sequence[Node],
    units: Sequence[Unit],
    weights: Sequence[float],
    snapshot: Snapshot | None,
    *,
    are_shares: bool,
) -> list[OverviewPart]:
    """Return the parts of an overview in order, from the nodes, their units and their weights."""
    weight = {k: weights[k] for k in dict.fromkeys(unit.node for unit in units)}
    runs = _runs(nodes, weight, are_shares)
    run_of = {k: i for i, run in enumerate(runs) for k in run}
    called = {k: name_of_part(nodes[k]) for k in weight}
    at = {
        Sentence(text, quote.at, quote.to, quote, run_of[k], kind, called[k]): i
        for i, (k, _, kind, text, quote, _) in enumerate(units)
    }
    ranked = SalientSentences().ranked([*at])
    best = {i: [at[sentence] for sentence in ranked[i]] for i in sorted(ranked)}
    names = {i: called[units[each[0]].node] for i, each in best.items()}
    documents = {document for node in nodes for document in node.documents}
    if len({*names.values()}) == len(documents) == 1:
        names = dict.fromkeys(names, "")  # the document's
    if snapshot and len(documents) == 1 and not any(names.values()):
        names = dict(enumerate(_topics([[nodes[k] for k in run] for run in runs], snapshot)))
    for i, all_of in best.items():
        if not any(span.section for k in runs[i] for span in nodes[k].citations):
            topics = {*tokens(names[i].lower())}
            best[i] = [
                unit for unit in all_of if topics.intersection(tokens(units[unit].text.lower()))
            ] or all_of
    return [
        OverviewPart(names[i], sum(weight[k] for k in runs[i]), each) for i, each in best.items()
    ]


def overview(retrieved: Retrieved, units: Sequence[Unit], budget: Budget) -> Extract:
    """Return an overview: for each part its name, its share of the text, and its best sentences.

    A part has a sentence for each tenth of the text, at least one and at most three, or six if it
    is the only one. If not all fit the budget, the parts with the largest shares are kept and the
    others are only named. Only nodes of an outline have shares; for others, the best scores are
    kept. A single node has more of its text, and the titles of its children.
    """
    nodes, shares = [node for node, _ in retrieved.found], retrieved.shares
    weights = [shares.get(node.id, score) for node, score in retrieved.found]
    parts = overview_parts(nodes, units, weights, retrieved.snapshot, are_shares=bool(shares))
    if len({unit.node for unit in units}) == 1:
        first = parts[0].best[0]
        node = nodes[units[first].node]
        lead = _lead(name_of_part(node), parts[0].weight if shares else None)
        line = _line(node, lead, units, first, MOST_WORDS)
        enough = min(SHORTEST, sum(unit.n_words for unit in units) / 3)
        if node.level or len(tokens(line.text)) >= enough:
            return Extract([line], 1.0, _children(node, retrieved.snapshot, budget), after_lead=" ")
    has_shares = shares and any(part.name for part in parts)
    leads = [_lead(part.name, part.weight if has_shares else None) for part in parts]

    def most(part: OverviewPart) -> int:
        share = 2 if len(parts) == 1 else 1
        n_best = share * len(part.best) // SENTENCES_PER_QUOTE
        return max(1, min(share * MOST_OF_PART, round(10 * part.weight), n_best))

    lines = sorted(
        (n, -part.weight, i, first)
        for i, part in enumerate(parts)
        for n, first in enumerate(part.best[: most(part) if shares else 1])
    )
    costs = budget.count([f"{leads[i] * (n == 0)} {units[first].text}" for n, _, i, first in lines])
    room, kept = budget.max_tokens, defaultdict[int, list[int]](list)
    if sum(costs[: len(parts)]) > room:
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
    left = [part for i, part in enumerate(parts) if i not in kept]
    left.sort(key=WEIGHT, reverse=True)
    of_left = sum(part.weight for part in left) if shares else None
    named = [part.name or nodes[units[part.best[0]].node].title for part in left]
    more = _more(named, of_left, budget)
    return Extract(passages, 1.0, more, after_lead=" ")


def _runs(nodes: Sequence[Node], weight: Mapping[int, float], are_shares: bool) -> list[list[int]]:
    """Return the nodes of each part by their positions, in order.

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


def _topics(parts: Sequence[Sequence[Node]], snapshot: Snapshot) -> list[str]:
    """Return names for the parts of a document from the phrases of their chunks."""
    order = reading_order(snapshot)
    inside = order.icicle.part
    below = [[inside(order.position(node.id)) for node in part] for part in parts]
    ids = [order.ids_at(chain(*(range(at.start, at.stop) for at in part))) for part in below]
    rows = snapshot.rows({*chain(*ids)}, columns=("id", "level", "text"))
    texts = {row["id"]: SPEAKER.sub("", row["text"]) for row in rows if row["level"] == 0}
    position = {chunk_id: i for i, chunk_id in enumerate(texts)}
    return topic_names(
        [*texts.values()], [[position[i] for i in part if i in position] for part in ids]
    )


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


@once
def overview_of_all(snapshot: Snapshot) -> dict[str, Any]:
    """Return an overview of an index: blocks, quotes, and questions to ask. Cached.

    There are up to three `columns`. The nodes of a column together cover all text, in reading
    order: few groups, more groups, documents, or parts of documents. A `share` is a share of the
    text. `keys` are properties that distinguish documents, each with its most frequent `values`:
    the folder, the type of the file, or a metadata key. The `values` of a block are
    indices into these lists, one for each key, for the value that most of its documents have; None
    if that value is not listed. `quotes` are from the largest parts, `parts` is the number of all
    parts, and `questions` are about the largest documents or sections.
    """
    order, tree = reading_order(snapshot), whole_tree(snapshot)
    forest, icicle = tree.forest, order.icicle
    text = np.where(forest.is_text, tree.n_tokens, 0)
    if not text.any():
        numbers = {"documents": 0, "tokens": 0, "parts": 0}
        return {**numbers, "columns": [], "keys": [], "quotes": [], "questions": []}
    share = forest.summed(text) / text.sum()
    inside = share > 0
    document = forest.highest(tree.is_whole & inside)
    groups = inside & (document == -1)
    tops = groups | (inside & (document == np.arange(len(document))))
    cuts = list[list[int]]()  # each of more nodes than the one before
    for may, most in ((groups, 6), (groups, FEW), (tops, BLOCKS), (inside, FEW), (inside, BLOCKS)):
        before = len(cuts[-1]) if cuts else 1
        rows = select_cut(forest, share, may, groups, most, tree.id_of)
        if before < min(FEW + 1, len(rows)):
            cuts.append(sorted(rows.tolist(), key=icicle.position.__getitem__))
    columns = cuts[:3] or [rows.tolist()]
    ids = tree.ids.take([row for column in columns for row in column]).to_pylist()
    found = snapshot.rows({*ids}, columns=("id", "title", "level", "documents", "whole_document"))
    nodes = {node["id"]: node for node in found}
    documents = sorted({each for node in found for each in node["documents"]})
    properties = _properties(snapshot, documents)
    keys = _keys(properties)

    def block(row: int) -> dict[str, Any]:
        node = nodes[tree.id_of(row)]
        return {
            "id": node["id"],
            "title": node["title"],
            "level": node["level"],
            "document": node["whole_document"] or None,
            "documents": len(node["documents"]),
            "share": round(float(share[row]), 6),
            "values": [
                values.index(value) if value in values else None
                for key, values in keys.items()
                for value in [_commonest(properties[key], node["documents"])]
            ],
        }

    blocks = [[*map(block, column)] for column in columns]
    quotes, n_parts = _quotes(snapshot, properties.get(TITLE, {}))
    return {
        "columns": blocks,
        "documents": len(documents),
        "tokens": int(text.sum()),
        "keys": [{"key": key, "values": values} for key, values in keys.items()],
        "quotes": quotes,
        "parts": n_parts,
        "questions": _questions([each for column in blocks for each in column]),
    }


def _quotes(snapshot: Snapshot, titles: Mapping[str, str]) -> tuple[list[dict[str, Any]], int]:
    """Return a sentence of each of the largest parts, and the number of parts.

    A sentence has the name, the share and the node of its part, and its position.
    """
    found = outline(
        Search(snapshot, "", []),
        WORDS_OF_PART * FEW,
        most=FEW,
        whole=True,
        count=_count_words,
    )
    nodes, shares = [node for node, _ in found], [share for _, share in found]
    units = [unit for unit in units_of(nodes) if unit.kind != "about"]
    parts = overview_parts(nodes, units, shares, snapshot, are_shares=True)
    parts.sort(key=WEIGHT, reverse=True)
    quotes = list[dict[str, Any]]()
    for part in parts[:QUOTES]:
        unit = units[part.best[0]]
        node = nodes[unit.node]
        if source := unit.quote.source:
            about = {
                "node": node.id,
                "name": part.name or name_of_part(node) or node.title,
                "share": part.weight,
                "text": " ".join(displayed(unit.text).split()),
                "title": titles.get(source.document, ""),
            }
            quotes.append({**source.to_json(), **about})
    return quotes, len(parts)


def _questions(blocks: Sequence[dict[str, Any]]) -> list[str]:
    """Return a question about the whole, and two about the largest documents or sections.

    Titles that are questions come first.
    """

    def rank(block: dict[str, Any]) -> tuple[bool, bool, float]:
        return not block["title"].endswith("?"), not block["document"], -block["share"]

    titled = [
        each for each in blocks if each["documents"] == 1 and (each["level"] or each["document"])
    ]
    titles = dict.fromkeys(map(_name_of_block, sorted(titled, key=rank)))
    asked = (title if title.endswith("?") else f"What is “{title}” about?" for title in titles)
    return ["What is this about?", *islice(asked, 2)]


def _name_of_block(block: Mapping[str, Any]) -> str:
    """Return a block's title, without the topics after a file name."""
    file = PurePosixPath(name_of(block["document"] or "")).stem
    return file if block["title"].startswith(f"{file}: ") else block["title"]


def _properties(snapshot: Snapshot, documents: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the values of documents by key: the folder, the type of the file, and metadata."""
    of_each = defaultdict[str, dict[str, str]](dict)
    of_each["folder"] = folders_of(documents)
    for each in documents:
        of_each["file type"][each] = splitext(file_of(each))[1].lower().lstrip(".")
    rows = snapshot.select("documents", "metadata", where=snapshot.of_each_document)
    for row in rows.to_pylist():
        known = [document for document in row["documents"] if document in of_each["folder"]]
        for key, value in json.loads(row["metadata"]).items() if known else ():
            if isinstance(value, str | int) and key not in FILE:
                of_each[key] |= dict.fromkeys(known, str(value))
    return of_each


def _keys(properties: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the commonest values of each key that divides documents, the most frequent first.

    A key is kept if it has at least two values and at most one for two documents, and its seven
    commonest values cover half of them.
    """
    keys = dict[str, list[str]]()
    for key, of in properties.items():
        numbers = Counter(of.values())
        common = numbers.most_common(COLOURS)
        others = len(of) - sum(n for _, n in common)
        if len(common) > 1 and 2 * max(len(numbers), others) <= len(of):
            keys[key] = [value for value, _ in common]
    return keys


def _count_words(texts: Sequence[str]) -> Ints1d:
    """Return the numbers of words: loading a tokenizer takes longer than the rest."""
    return np.array([len(tokens(text)) for text in texts], dtype=np.int64)


def _commonest(of: Mapping[str, str], documents: Iterable[str]) -> str:
    return Counter(of.get(each, "") for each in documents).most_common(1)[0][0]


def folders_of(documents: Iterable[str]) -> dict[str, str]:
    """Return the folder of each document below the common folder of all, "" for the common one.

    >>> folders_of(["a/b/c.md", "a/d/e/f.md", "a/g.md"])
    {'a/b/c.md': 'b', 'a/d/e/f.md': 'd', 'a/g.md': ''}
    """
    folder = {each: each[: each.rfind("/") + 1] for each in documents}
    parts = {each: PurePosixPath(each).parts for each in {*folder.values()}}
    names = [*zip(*parts.values(), strict=False)]
    common = next((i for i, name in enumerate(names) if len({*name}) > 1), len(names))
    return {each: "".join(parts[of][common : common + 1]) for each, of in folder.items()}
