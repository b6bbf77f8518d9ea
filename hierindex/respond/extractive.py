"""Answers without a language model, made of cited passages of the retrieved nodes."""

import re
from collections.abc import Sequence, Set
from dataclasses import replace

import numpy as np

from hierindex.core.arguments import Floats1d, is_number, is_whole, require
from hierindex.core.ranking import Scale
from hierindex.models.embedder import Embedder, EmbedLike, unit_vectors
from hierindex.models.record import Usage
from hierindex.node import Node
from hierindex.progress import Stopwatch
from hierindex.respond.answer import Answer, Passage, listing_texts, seconds_of, sources_of
from hierindex.respond.evidence import QuestionWords, source_scores, text_about, words_in
from hierindex.respond.overview import overview
from hierindex.respond.quotable import (
    NO_CONTENT,
    Extract,
    Unit,
    depends,
    passage_of,
    units_of,
    window,
)
from hierindex.retrieve.known_questions import about_the_whole, known_vectors
from hierindex.retrieve.listing import asked_of
from hierindex.retrieve.named import unknown_names
from hierindex.retrieve.retrieval import OF_OTHERS, Retrieval, Retrieved
from hierindex.retrieve.search import WROTE, in_reading_order
from hierindex.settings import AnswerSettings
from hierindex.store.rows import matched_words
from hierindex.store.snapshot import Snapshot
from hierindex.summarize.summary import Budget
from hierindex.text.characters import LITERAL, UNSPACED
from hierindex.text.words import EVERY_STOP_WORD, UNTITLED, WORD

ANSWER_TOKENS = 500
MIN_SCORE = AnswerSettings.min_score  # chosen by tests/benchmarks/refusals.py

# Chosen by tests/benchmarks/facts.py and notes.py.
LIKENESS = 0.5  # weight of similarity beside that of words
TITLE = 0.6  # weight of a word in titles above a unit
LENGTH = 0.01  # discount of the words of the question for each word of a unit
DEFINED = 0.5  # added to a unit that defines, explains or emphasises what the question names
OPENING = 0.5  # added to the beginning of a document if a question asks who wrote it
RANK = 0.02  # penalty for each rank of a unit's node
ASIDE = 0.5  # penalty of front matter, references, contents, furniture, and other subjects
UNSAID = 0.2  # penalty of headings, code, and sentences that depend on one that is not there
NEAR = 0.6  # minimum score of a passage, relative to the best
SURE = 0.85  # likeness of the nearest sentence from which only numbers and names are missing
CHANGED = 0.1  # minimum drop of a question's similarity to itself if a word is left out
MOST_ABSENT = 4  # words that no node has; if there are more, none is examined
SENTENCE = 4  # minimum words of a unit that is not shown twice
LONG = 20  # words of a sentence that another seldom has by chance
NEW = 0.1  # share of the words of a sentence that another with the same fact may lack
EMPHASISED = re.compile(  # in Markdown; no label such as "**Ada:**"
    r"(?<![\w*_])(\*\*|\*|_)(\w(?:[^*_]{,60}\w)?)\1(?![\w*_:])"
)
STEPS = re.compile(  # asks for them
    r"\W*(?:how (?:can|do|should|would) (?:i|one|we|you)|how to|what are the steps"
    r"|wie (?:kann|mache|muss|soll)|c\u00f3mo (?:hago|puedo|se puede))\b",
    re.IGNORECASE,
)
NEGATIONS = frozenset("no not never nicht nie kein keine keinen".split())
NO_QUESTION = "The question has no word to search for; ask a whole question."
MAX_PASSAGES = 5  # passages
FOREIGN = 0.1  # weight of words in another language than the question
FOREIGN_UNITS = 3  # times as many of them are embedded, as words do not choose them
MOST_EMBEDDED = 16  # units; each takes about as long as a search
ARTICLE = "(?:an?|the|another|one|eine?|der|die|das|una?|el|la)"
IS = r"(?:,[^.!?]{,80},|\s?\([^)]{,80}\))?\s(?:is|are|ist|sind|es|son) (?:yet )?"
EXPLAINED = re.compile(  # what a line begins with and explains: options, a number, or a term
    r"^(?:[*+-]?\s*`?(?P<options>-[\w-][^:\n]{,80})(?=:\s)|(?P<number>\d+(?:\.\d+)+)(?=\.?\s)"
    rf"|\W*(?:{ARTICLE} )?(?P<term>\w[^:\n]{{,80}}?)(?::\s|{IS}{ARTICLE} ))",
    re.IGNORECASE | re.MULTILINE,
)


def extract(retrieved: Retrieved, embedder: Embedder, budget: Budget) -> Extract:
    """Return the passages of nodes that answer a question, or an `overview` if it asks for one.

    The units of the nodes are scored by three things: the share of the question's words that they
    contain (rare words weigh more), their similarity to the question, and the rank of their node.
    The passages are the windows around the best units.

    Parameters
    ----------
    retrieved : Retrieved
    embedder : Embedder
        The model that embeds the question and the units.
    budget : Budget
        Maximum number of tokens in all passages together.
    """
    question, nodes = retrieved.question, [node for node, _ in retrieved.found]
    units = units_of(nodes)
    if not units:
        return Extract([])
    model, asked = embedder.embed_model, QuestionWords.of(question.text)
    if retrieved.shares or about_the_whole(question.text, question.embedding, model):
        return overview(retrieved, units, budget)
    place = np.argsort(np.argsort([-score for _, score in retrieved.found], kind="stable"))
    titles = [asked.stems(matched_words(node.metadata, "")) for node in nodes]
    is_foreign = np.array([asked.across(node) for node in nodes])[[unit.node for unit in units]]
    words = _words(asked, units, titles) * np.where(is_foreign, FOREIGN, 1.0)
    words += DEFINED * np.array([_explains(unit.text, asked) for unit in units])
    kinds = [unit.kind for unit in units]
    if WROTE.search(question.text):
        words += OPENING * (words > 0) * [unit.opens_document for unit in units]
    aside = np.isin(kinds, [*NO_CONTENT]) | (np.isin(kinds, "about") & (words == 0))
    unsaid = np.isin(kinds, ["code", "heading"]) | depends(units, nodes)
    scores = words - ASIDE * aside - UNSAID * unsaid
    scores -= RANK * place[[unit.node for unit in units]]
    most = MOST_EMBEDDED * (FOREIGN_UNITS if is_foreign.any() else 1)
    near = np.argsort(-scores, kind="stable")[:most]
    S = embedder.embed([units[i].text for i in near])  # (n_near, n_dims)
    Q, A, _ = known_vectors(model)
    scale = Scale.of(Q @ A.T)
    q = unit_vectors([question.embedding])[0].astype(np.float64)
    likeness = scale.shares(S @ q)
    scores[near] += LIKENESS * likeness
    near = near[np.argsort(-scores[near], kind="stable")]
    known = [asked.stems(text_about(node)) for node in nodes]
    names = asked.names or asked.parts
    named = np.array([not names.isdisjoint(known[units[i].node]) for i in near])
    scores[near] -= ASIDE * (named.any() & ~named)
    best = near[np.argsort(-scores[near], kind="stable")]
    least = min(scores[best[0]], NEAR * scores[best[0]])
    steps = bool(asked.parts or STEPS.match(question.text))
    passages = _windows(units, nodes, best[scores[best] >= least], budget, steps=steps)
    shown = [asked.stems(f"{matched_words(of.metadata, p.lead)} {p.text}") for of, p in passages]
    lacking = asked.lacks(set().union(*shown))
    if across := asked.across(nodes[units[near[0]].node]):
        lacking &= asked.numbers
    else:
        absent = _absent(asked, known, is_sure=likeness.max() >= SURE)
        lacking |= _important(question.text, asked, absent, embedder, scale)
    return Extract(
        [passage for _, passage in passages],
        asked.score(
            float(likeness.max()),
            [known[i] for i in dict.fromkeys(units[i].node for i in near)],
            across=across,
        ),
        missing=tuple(
            word
            for word in words_in(question.text)
            if asked.stem(word) in lacking and not UNSPACED.search(word)
        ),
    )


def _absent(asked: QuestionWords, known: list[set[str]], *, is_sure: bool) -> frozenset[str]:
    """Return the words of a question that no node about its subject contains.

    The subject is what the question names, and the nodes with most of the names are about it; all
    nodes if none has any. If a sentence is very similar to the question, only words count that
    other nodes contain.
    """
    most = max(len(asked.names & stems) for stems in known)
    absent = asked.words.difference(*(of for of in known if len(asked.names & of) == most))
    others = [stems for stems in known if most and asked.names.isdisjoint(stems)]
    return absent.intersection(*([set().union(*others)] if is_sure else []))


def _important(
    question: str, asked: QuestionWords, absent: Set[str], embedder: Embedder, scale: Scale
) -> frozenset[str]:
    """Return the stems without which a question would mean something else."""
    telling = (word for word in words_in(question) if word.lower() not in UNTITLED)
    words = [word for word in telling if asked.stem(word) in absent]
    if not 0 < len(words) <= MOST_ABSENT:
        return frozenset()
    without = [re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", "", question) for word in words]
    own, *others = embedder.embed([question, *without])
    changed = 1 - np.stack(others) @ own > CHANGED * (1 - scale.chance)
    return frozenset(asked.stem(words[i]) for i in np.flatnonzero(changed))


def _words(asked: QuestionWords, units: Sequence[Unit], titles: Sequence[Set[str]]) -> Floats1d:
    """Return the share of the question's words in each unit; rare words weigh more."""
    stems = [asked.stems(unit.text) for unit in units]
    has = np.array([[word in of for word in asked.words] for of in stems], dtype=np.float64)
    above = np.array([[word in of for word in asked.words] for of in titles], dtype=np.float64)
    has = np.maximum(has, TITLE * above[[unit.node for unit in units]])
    n = (has > 0).sum(axis=0)
    rarity = np.where(n, np.log(1 + len(units) / np.maximum(n, 1)), 0.0)
    length = np.array([unit.n_words for unit in units])
    return has @ rarity / max(float(rarity.sum()), 1.0) / (1 + LENGTH * length)


def _explains(text: str, asked: QuestionWords) -> bool:
    """Return whether a text explains what a question names.

    One of its lines begins with an option in the question or the number of a part, or with all of
    its words before a colon or in a definition; or it emphasises at least half of the question's
    words, and no others.

    >>> asked = QuestionWords.of("What does curl -k do?")
    >>> _explains("-k, --insecure: Go on.", asked), _explains("- Berlin -k: closed", asked)
    (True, False)
    >>> asked = QuestionWords.of("What is a trait object?")
    >>> _explains("A trait object (or type) is a pointer.", asked)
    True
    >>> _explains("A _trait object_ points to both.", asked)
    True
    """
    for found in EXPLAINED.finditer(text):
        options, number, term = (asked.stems(part or "") for part in found.groups())
        if options & asked.names or number & asked.parts or term == asked.words:
            return True
    emphasised = (asked.stems(words) for _, words in EMPHASISED.findall(text))
    return any(stems <= asked.words and 2 * len(stems) >= len(asked.words) for stems in emphasised)


def _windows(
    units: Sequence[Unit],
    nodes: Sequence[Node],
    best_first: Sequence[int],
    budget: Budget,
    *,
    steps: bool,
) -> list[tuple[Node, Passage]]:
    """Return at most five passages around the best units, within a budget, with their nodes.

    If `steps`, lists are quoted whole where they are short enough.
    """
    found, taken, room = list[tuple[Node, Passage]](), set[int](), budget.max_tokens
    best = list[str]()
    for i in map(int, best_first):
        unit = units[i]
        said = unit.kind != "about" and any(_says_the_same(unit.text, text) for text in best)
        if len(found) == MAX_PASSAGES or i in taken or said:
            continue
        run = window(units, i, taken, steps=steps)
        passage = passage_of(units, nodes, run, i)
        n_tokens = int(budget.count([f"{passage.lead}\n{passage.text}"])[0])
        if steps and n_tokens > room:
            run = window(units, i, taken)
            passage = passage_of(units, nodes, run, i)
            n_tokens = int(budget.count([f"{passage.lead}\n{passage.text}"])[0])
        if n_tokens > room and not found:
            break
        if n_tokens > room or units[run[1]].kind == "heading":
            continue
        again = (j for j, u in enumerate(units) if u.n_words >= SENTENCE and u.text in passage.text)
        taken.update(range(run[0], run[1] + 1), again)
        found.append((nodes[unit.node], passage))
        best.append(unit.text)
        room -= n_tokens
    if found:
        return found
    alone = units[best_first[0]]
    if alone.kind != "about":
        text, at = budget.beginning(alone.text), alone.quote.at
        alone = alone._replace(text=text, quote=alone.quote.part(at, at + len(text)))
    return [(nodes[alone.node], passage_of([alone], nodes, (0, 0), 0))]


def _says_the_same(text: str, other: str) -> bool:
    """Return whether the shorter of two sentences has almost no word that the other lacks.

    Sentences differ if only one is negated. They also differ by a number or a name; in long
    sentences, only by one in the shorter sentence.

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


class Extractive:
    """Answers questions by passages; see `ExtractiveSynthesizer` for the arguments and errors."""

    def __init__(
        self,
        embed_model: EmbedLike,
        *,
        answer_tokens: int = ANSWER_TOKENS,
        min_score: float | None = MIN_SCORE,
    ) -> None:
        valid = is_whole(answer_tokens, 1)
        require(valid, "answer_tokens", "an integer of at least 1", answer_tokens)
        within = min_score is None or (is_number(min_score) and 0 <= min_score <= 1)
        require(within, "min_score", "a number in [0, 1]", min_score)
        self.embedder: Embedder = Embedder(embed_model)
        self._budget = Budget(answer_tokens, self.embedder.count_text_tokens)
        self._min_score = min_score or 0.0

    def extracted(self, retrieved: Retrieved) -> Extract:
        """Return the passages that answer a question, or none if their score is too low."""
        question = retrieved.question.text
        if not has_content(question):
            return Extract([], refused=True)
        if asked_of(question).is_for_all:  # the listing answers
            return Extract([], 1.0)
        found = extract(retrieved, self.embedder, self._budget)
        refused = not found.passages or found.score < self._min_score
        return replace(found, passages=[], refused=True) if refused else found

    def _read_in_order(self, retrieved: Retrieved) -> Extract:
        order = in_reading_order(retrieved.found)
        return self.extracted(replace(retrieved, found=[retrieved.found[i] for i in order]))

    def answer(self, retrieval: Retrieval, question: str) -> Answer:
        """Retrieve nodes for a question and answer it from them, in reading order.

        If the documents that a question names do not answer it, other documents may. A question for
        the documents that contain some words is answered by passages with these words.
        """
        watch, wanted = Stopwatch(), asked_of(question)
        has_words = wanted.for_documents and not wanted.is_list
        with watch("embed"):
            asked = retrieval.embedded(" ".join(wanted.words) if has_words else question)
        with watch("search"):
            retrieved = retrieval.find(asked)
        with watch("respond"):
            listing, said = retrieval.listing(question, retrieved.snapshot), ""
            is_list = listing is not None and wanted.is_list
            extracted = Extract([], 1.0) if is_list else self._read_in_order(retrieved)
            if extracted.refused and has_content(question):
                others = retrieval.others().find(asked)
                from_others = self._read_in_order(others)
                if not from_others.refused:
                    said, retrieved, extracted = from_others_text(others.why), others, from_others
            known = source_scores(retrieved, self.embedder.embed_model)
            refusal = no_answer(retrieval) if has_content(question) else NO_QUESTION
            before, after = listing_texts(question, listing, extracted.refused)
            text = f"{before}{said}{extracted.answer(refusal)}{after}".strip()
        passages, snapshot = extracted.passages, retrieved.snapshot
        unknown = _not_there(question, snapshot, passages) if snapshot and not is_list else {}
        told = {*words_in(" ".join(unknown)), *(listing.words if listing else ())}
        return Answer(
            answer=text,
            answer_kind="extractive",
            citations=[passage.citation for passage in passages],
            sources=sources_of(retrieved, known),
            usage=Usage(),
            seconds=seconds_of(watch),
            why=retrieved.why if retrieved.found else None,
            score=extracted.score,
            best=extracted.best or None,
            refused=extracted.refused,
            missing=[word for word in extracted.missing if word not in told],
            unknown=unknown,
            listing=listing,
            passages=passages,
        )


def _not_there(
    question: str, snapshot: Snapshot, passages: Sequence[Passage]
) -> dict[str, list[str]]:
    """Return the file names in a question that neither a document nor a passage has."""
    said = "\n".join(f"{each.lead} {each.text}" for each in passages).casefold()
    unknown = unknown_names(question, snapshot)
    return {name: near for name, near in unknown.items() if name.casefold() not in said}


def has_content(question: str) -> bool:
    """Return whether a question has more than two words, a name, or a word to search for.

    >>> has_content("why?"), has_content("And then?"), has_content("WHO"), has_content("ferry")
    (False, False, True, True)
    """
    words = WORD.findall(question)
    is_name = any(word.isupper() for word in words) or any(word.istitle() for word in words[1:])
    is_name = is_name or LITERAL.search(question) is not None
    return is_name or len(words) > 2 or not EVERY_STOP_WORD.issuperset(map(str.lower, words))


def from_others_text(why: str | None) -> str:
    """Return the introduction of an answer from other documents than the question names."""
    return f"{(why or '').partition(OF_OTHERS)[2]}; other documents have:\n\n"


def no_answer(retrieval: Retrieval | None = None) -> str:
    """Return a sentence saying that nothing in the searched part of the index answers.

    >>> no_answer()
    'Nothing in the index answers this.'
    """
    levels, filters = (retrieval.levels, retrieval.filters) if retrieval else ((), None)
    where = f"at level {' or '.join(map(repr, levels))}" if levels else "in the index"
    more = "; without a level, the chunks are searched" if any(levels) else ""
    return f"Nothing {where}{' that passes the filters' if filters else ''} answers this{more}."


NO_ANSWER = no_answer()
