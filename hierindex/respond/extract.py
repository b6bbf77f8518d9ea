"""Passages of nodes that answer a question, without a language model."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.schema import QueryBundle
from numpy.typing import NDArray

from hierindex.core.calibration import Scale
from hierindex.core.context import places_of
from hierindex.core.membership import Floats1d, Ints1d
from hierindex.core.passages import relevance, select_passages, word_weights, words_around
from hierindex.core.ranking import reading_order
from hierindex.core.relevance import centroid_similarity
from hierindex.core.stop_words import QUESTION_WORDS
from hierindex.embed.embedder import Embedder, unit_vectors
from hierindex.embed.failures import named_errors
from hierindex.record import Quote
from hierindex.respond.answer_types import has_what_is_asked_for
from hierindex.respond.legible import Pool, Texts
from hierindex.retrieve.known_questions import about_the_whole, known_vectors
from hierindex.summarize.extractive import fitting_sentences
from hierindex.summarize.sentences import TOKEN, Sentence, telling
from hierindex.summarize.summary import Budget

MOST_EMBEDDED = 12  # sentences; each takes about as long as a search


class Passage(NamedTuple):
    """Consecutive sentences as they stand in their document, and where.

    `citation` is a span as JSON, with those of copies as `also`, or None if it is not known.
    """

    text: str
    citation: dict[str, Any] | None


class Extract(NamedTuple):
    """The passages that answer best, in reading order, and the best of their sentences.

    `score` in [0, 1] tells how well it answers, see `ExtractiveSynthesizer`.
    """

    passages: list[Passage]
    best: str
    score: float


NOTHING = Extract([], "", 0.0)


def extract(
    query: QueryBundle, texts: Texts, place: Ints1d, embedder: Embedder, budget: Budget
) -> Extract:
    """Find the passages that answer a question.

    Parameters
    ----------
    query : QueryBundle
    texts : iterable of (str, sequence of Quote)
        The nodes that were found.
    place : (n_nodes,) int
        The rank of each node in the search, from 0.
    embedder : Embedder
        Of the question and the sentences.
    budget : Budget
        Of all passages.
    """
    pool = Pool.of(texts)
    n_tokens = budget.costs(pool.sentences)
    if not (pool.own & (n_tokens <= budget.max_tokens)).any():
        pool = pool.in_pieces(fitting_sentences(telling(pool.sentences), budget))
        n_tokens = budget.costs(pool.sentences)
    if not pool.sentences:
        return NOTHING
    q = _embedded(query, embedder)
    whole = about_the_whole(q, embedder.embed_model)
    has = _has([] if whole.decided else _words(query.query_str), pool.sentences)
    weights = word_weights(has)
    rank = place[pool.node]
    of_type = np.array([has_what_is_asked_for(query.query_str, s.text) for s in pool.sentences])
    words = words_around(has, pool.node) @ weights

    def scored(likeness: Floats1d) -> Floats1d:
        scores = relevance(likeness, words, of_type, rank, pool.node)
        return np.where(pool.own & (n_tokens <= budget.max_tokens), scores, -np.inf)

    best = np.sort(np.argsort(-scored(np.zeros(len(rank))), kind="stable")[:MOST_EMBEDDED])
    S = embedder.embed([pool.sentences[i].text for i in best])  # (n_best, n_dims)
    Q, A, _ = known_vectors(embedder.embed_model)
    shares = Scale.of(Q @ A.T).shares(S @ q)
    likeness = np.full(len(rank), shares.min())
    likeness[best] = centroid_similarity(S) if whole.decided else shares
    score = float(np.clip(whole.score if whole.decided else shares.max(), 0, 1))
    scores = scored(likeness)
    runs = select_passages(
        scores, has, weights, n_tokens, pool.needs, pool.joined, budget=budget.max_tokens
    )
    return Extract(_passages(pool, runs, scores), pool.sentences[int(scores.argmax())].text, score)


def _embedded(query: QueryBundle, embedder: Embedder) -> Floats1d:
    with named_errors(embedder.embed_model):
        vector = query.embedding or embedder.embed_model.get_query_embedding(query.query_str)
    return np.asarray(unit_vectors([vector])[0], dtype=np.float64)


def _words(text: str) -> list[str]:
    """Return the distinct words of a question; those that ask only if there are no others."""
    words = dict.fromkeys(re.findall(TOKEN, text.lower()))
    return [word for word in words if word not in QUESTION_WORDS] or [*words]


def _has(words: Sequence[str], sentences: Sequence[Sentence]) -> NDArray[np.bool_]:
    told = [set(re.findall(TOKEN, sentence.text.lower())) for sentence in sentences]
    has = [[word in each for word in words] for each in told]
    return np.array(has, dtype=bool).reshape(len(sentences), len(words))


def _passages(pool: Pool, runs: Sequence[tuple[int, int]], scores: Floats1d) -> list[Passage]:
    """Return the passages in reading order, the document with the best of them first."""
    sources = [pool.sentences[first].quote.source for first, _ in runs]
    spans = [(s.document, s.start, s.end) if s else (i, 0, 0) for i, s in enumerate(sources)]
    document, start, _ = places_of(spans)
    best = np.array([scores[first : last + 1].max() for first, last in runs])
    return [
        Passage(
            pool.text(*runs[i]),
            _citation(pool.sentences[runs[i][0]].quote, pool.sentences[runs[i][1]].quote),
        )
        for i in reading_order(best, document, start)
    ]


def _citation(first: Quote, last: Quote) -> dict[str, Any] | None:
    """Return the span from one quote to another, with those of copies as `also`."""
    spans = [
        start._replace(end=end.end).to_json()
        for start, end in zip(first.sources, last.sources, strict=False)
        if start.document == end.document and start.start <= end.end
    ]
    if not spans:
        return None
    return {**spans[0], "also": spans[1:]} if spans[1:] else spans[0]
