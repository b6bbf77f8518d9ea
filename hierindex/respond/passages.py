"""Passages of nodes that answer a question, without a language model."""

import re
from collections.abc import Sequence, Set

import numpy as np

from hierindex.core.arrays import Floats1d
from hierindex.core.calibration import Scale
from hierindex.models.embedder import Embedder, unit_vectors
from hierindex.node import Node
from hierindex.respond.answer import Passage
from hierindex.respond.evidence import Asked, text_about, words_in
from hierindex.respond.overview import overview
from hierindex.respond.quotable import NO_CONTENT, Extract, Unit, cut, passage_of, units_of, window
from hierindex.retrieve.documents import WROTE
from hierindex.retrieve.known_questions import about_the_whole, known_vectors
from hierindex.retrieve.question import UNSPACED
from hierindex.retrieve.retrieval import Retrieved
from hierindex.store.rows import matched_words
from hierindex.summarize.summary import Budget

# Chosen by tests/benchmarks/facts.py and notes.py.
LIKENESS = 0.5  # weight of similarity beside that of words
TITLE = 0.6  # weight of a word in titles above a unit
LENGTH = 0.01  # discount of the words of the question for each word of a unit
OPENING = 0.5  # added to the beginning of a document if a question asks who wrote it
RANK = 0.02  # penalty for each rank of a unit's node
ASIDE = 0.5  # penalty of front matter, references, contents and furniture
NEAR = 0.6  # minimum score of a passage, relative to the best
SURE = 0.85  # likeness of the nearest sentence from which only numbers and names are missing
CHANGED = 0.1  # minimum drop of a question's similarity to itself if a word is left out
MOST_ABSENT = 4  # words that no node has; if there are more, none is examined
SENTENCE = 4  # minimum words of a unit that is not shown twice
LONG = 20  # words of a sentence that another seldom has by chance
NEW = 0.1  # share of the words of a sentence that another with the same fact may lack
NEGATIONS = frozenset("no not never nicht nie kein keine keinen".split())
MOST = 5  # passages
MOST_EMBEDDED = 16  # units; each takes about as long as a search


def extract(retrieved: Retrieved, embedder: Embedder, budget: Budget) -> Extract:
    """Find the passages of nodes that answer a question, or an `overview` if it asks for one.

    The units of the nodes are scored by the share of the question's words that they have, of
    which rare ones weigh more, by their similarity to the question, and by the rank of their
    node. The passages are the windows around the best.

    Parameters
    ----------
    retrieved : Retrieved
    embedder : Embedder
        Of the question and the units.
    budget : Budget
        Of all passages.
    """
    question, nodes = retrieved.question, [node for node, _ in retrieved.found]
    units = units_of(nodes)
    if not units:
        return Extract([])
    model, asked = embedder.embed_model, Asked.of(question.text)
    q = np.asarray(unit_vectors([question.embedding])[0], dtype=np.float64)
    if retrieved.shares or about_the_whole(q, model).decided:
        return overview(retrieved, units, budget)
    place = np.argsort(np.argsort([-score for _, score in retrieved.found], kind="stable"))
    titles = [asked.stems(matched_words(node.metadata, "")) for node in nodes]
    words = _words(asked, units, titles)
    kinds = [unit.kind for unit in units]
    if WROTE.search(question.text):
        words += OPENING * (words > 0) * [unit.opens_document for unit in units]
    aside = np.isin(kinds, [*NO_CONTENT]) | (np.isin(kinds, "about") & (words == 0))
    scores = words - ASIDE * aside - RANK * place[[unit.node for unit in units]]
    near = np.argsort(-scores, kind="stable")[:MOST_EMBEDDED]
    S = embedder.embed([units[i].text for i in near])  # (n_near, n_dims)
    Q, A, _ = known_vectors(model)
    scale = Scale.of(Q @ A.T)
    likeness = scale.shares(S @ q)
    scores[near] += LIKENESS * likeness
    near = near[np.argsort(-scores[near], kind="stable")]
    least = min(scores[near[0]], NEAR * scores[near[0]])
    passages = _windows(units, nodes, near[scores[near] >= least], budget)
    known = [asked.stems(text_about(node)) for node in nodes]
    shown = (f"{matched_words(node.metadata, p.lead)} {p.text}" for node, p in passages)
    lacking = asked.lacks(asked.stems(" ".join(shown)))
    if likeness.max() < SURE:
        absent = asked.words.difference(*known)
        lacking |= _that_matter(question.text, asked, absent, embedder, scale)
    return Extract(
        [passage for _, passage in passages],
        asked.score(
            float(likeness.max()), [known[i] for i in dict.fromkeys(units[i].node for i in near)]
        ),
        missing=tuple(
            word
            for word in words_in(question.text)
            if asked.stem(word) in lacking and not UNSPACED.search(word)
        ),
    )


def _that_matter(
    question: str, asked: Asked, absent: Set[str], embedder: Embedder, scale: Scale
) -> frozenset[str]:
    """Return those of some stems without whose words a question means something else."""
    words = [word for word in words_in(question) if asked.stem(word) in absent]
    if not 0 < len(words) <= MOST_ABSENT:
        return frozenset()
    without = [re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "", question) for word in words]
    own, *others = embedder.embed([question, *without])
    changed = 1 - np.stack(others) @ own > CHANGED * (1 - scale.chance)
    return frozenset(asked.stem(words[i]) for i in np.flatnonzero(changed))


def _words(asked: Asked, units: Sequence[Unit], titles: Sequence[Set[str]]) -> Floats1d:
    """Return the share of the question's words that each unit has, rare words weighing more."""
    stems = [asked.stems(unit.text) for unit in units]
    has = np.array([[word in of for word in asked.words] for of in stems], dtype=np.float64)
    above = np.array([[word in of for word in asked.words] for of in titles], dtype=np.float64)
    has = np.maximum(has, TITLE * above[[unit.node for unit in units]])
    n = (has > 0).sum(axis=0)
    rarity = np.where(n, np.log(1 + len(units) / np.maximum(n, 1)), 0.0)
    length = np.array([unit.n_words for unit in units])
    return has @ rarity / max(float(rarity.sum()), 1.0) / (1 + LENGTH * length)


def _windows(
    units: Sequence[Unit], nodes: Sequence[Node], best_first: Sequence[int], budget: Budget
) -> list[tuple[Node, Passage]]:
    """Return at most five passages around the best units, within a budget, with their nodes."""
    found, taken, room = list[tuple[Node, Passage]](), set[int](), budget.max_tokens
    best = list[str]()
    for i in map(int, best_first):
        unit = units[i]
        said = unit.kind != "about" and any(_says_the_same(unit.text, text) for text in best)
        if len(found) == MOST or i in taken or said:
            continue
        run = window(units, i, taken)
        passage = passage_of(units, nodes, run, i)
        n_tokens = int(budget.count([f"{passage.lead}\n{passage.text}"])[0])
        if n_tokens > room and not found:
            break
        if n_tokens > room or units[run[1]].kind == "heading":
            continue
        taken.update(range(run[0], run[1] + 1))
        taken.update(
            j
            for j, each in enumerate(units)
            if each.n_words >= SENTENCE and each.text in passage.text
        )
        found.append((nodes[unit.node], passage))
        best.append(unit.text)
        room -= n_tokens
    if found:
        return found
    alone = cut(units[best_first[0]], budget)
    return [(nodes[alone.node], passage_of([alone], nodes, (0, 0), 0))]


def _says_the_same(text: str, other: str) -> bool:
    """Return whether the shorter of two sentences has nearly no word that the other lacks.

    A negation tells them apart, and so does a number or a name, of long ones only in the shorter.

    >>> _says_the_same("The pump failed in winter.", "The pump failed in winter, as before.")
    True
    >>> _says_the_same("Pump 12 failed in winter.", "Pump 15 failed in winter, as before.")
    False
    """
    fewer, more = sorted((words_in(text), words_in(other)), key=len)
    own, apart = fewer.keys() - more, fewer.keys() ^ more.keys()
    telling = own if len(fewer) >= LONG else apart
    is_near = len(fewer) >= SENTENCE and len(own) <= NEW * len(fewer)
    return is_near and NEGATIONS.isdisjoint(apart) and all(map(str.islower, telling))
