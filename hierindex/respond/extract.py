"""Passages of nodes that answer a question, without a language model."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from numpy.typing import NDArray

from hierindex.core.calibration import Scale
from hierindex.core.context import places_of
from hierindex.core.membership import Floats1d
from hierindex.core.passages import (
    relevance,
    select_passages,
    word_weights,
    words_around,
)
from hierindex.core.ranking import reading_order
from hierindex.core.relevance import centroid_similarity
from hierindex.embed.embedder import Embedder, unit_vectors
from hierindex.embed.failures import named_errors
from hierindex.record import NodeRecord, Quote
from hierindex.respond.answer_types import has_what_is_asked_for
from hierindex.respond.evidence import Asked, words_about, words_in, words_of
from hierindex.respond.legible import Pool
from hierindex.retrieve.known_questions import about_the_whole, known_vectors
from hierindex.store.rows import matched_words
from hierindex.summarize.extractive import fitting_sentences
from hierindex.summarize.sentences import telling
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

    `score` in [0, 1] tells how well it answers, see `ExtractiveSynthesizer`. `missing` are the
    numbers and names of the question that stand neither in the passages nor in titles above them.
    """

    passages: list[Passage]
    best: str
    score: float
    missing: list[str]


NOTHING = Extract([], "", 0.0, [])


def extract(
    query: QueryBundle, nodes: Sequence[NodeWithScore], embedder: Embedder, budget: Budget
) -> Extract:
    """Find the passages of nodes that answer a question.

    Parameters
    ----------
    query : QueryBundle
    nodes : sequence of NodeWithScore
        A sentence counts for a little more the higher the score of its node.
    embedder : Embedder
        Of the question and the sentences.
    budget : Budget
        Of all passages.
    """
    pool = Pool.of((_text(node), NodeRecord.from_metadata(node.metadata).quotes) for node in nodes)
    n_tokens = budget.costs(pool.sentences)
    own = pool.own & (pool.sums(n_tokens) <= budget.max_tokens)
    if not own.any():
        pool = pool.in_pieces(fitting_sentences(telling(pool.sentences), budget))
        n_tokens, own = budget.costs(pool.sentences), pool.own
    if not pool.sentences:
        return NOTHING
    model, q, asked = embedder.embed_model, _embedded(query, embedder), Asked.of(query.query_str)
    whole, texts = about_the_whole(q, model), [sentence.text for sentence in pool.sentences]
    has = _has(() if whole.decided else asked.words, texts)
    weights = word_weights(has)
    words = words_around(has, pool.node) @ weights
    needed = () if whole.decided else asked.needed
    about = _about(pool, nodes)
    another = np.array([asked.has_another_number(about[i]) for i in pool.paragraph])
    of_type = np.array([has_what_is_asked_for(query.query_str, text) for text in texts])
    best_first = np.argsort([-(node.score or 0.0) for node in nodes], kind="stable")
    place = np.argsort(best_first)[pool.node]

    def scored(likeness: Floats1d) -> Floats1d:
        scores = relevance(likeness, words, of_type, another, place, pool.node)
        return np.where(own, scores, -np.inf)

    near = np.sort(np.argsort(-scored(np.zeros(len(place))), kind="stable")[:MOST_EMBEDDED])
    S = embedder.embed([texts[i] for i in near])  # (n_near, n_dims)
    Q, A, _ = known_vectors(model)
    shares = Scale.of(Q @ A.T).shares(S @ q)
    likeness = np.full(len(place), shares.min())
    likeness[near] = centroid_similarity(S) if whole.decided else shares
    scores = scored(likeness)
    runs = select_passages(
        scores, has, weights, n_tokens, pool.needs, pool.joined, budget=budget.max_tokens
    )
    best = np.full(len(nodes), -np.inf)
    np.maximum.at(best, pool.node, scores)
    told = [words_about(nodes[i]) for i in np.argsort(-best, kind="stable")]
    chosen = [i for first, last in runs for i in range(first, last + 1)]
    said = words_of("\n".join(about[pool.paragraph[i]] for i in chosen))
    missing = {word for word in needed if word not in said}
    return Extract(
        _passages(pool, runs, scores, budget),
        texts[int(scores.argmax())],
        min(whole.score, 1.0) if whole.decided else asked.score(float(shares.max()), told),
        [word for word in words_in(query.query_str) if word.lower() in missing],
    )


def _text(node: NodeWithScore) -> str:
    return node.get_content(MetadataMode.NONE)


def _embedded(query: QueryBundle, embedder: Embedder) -> Floats1d:
    with named_errors(embedder.embed_model):
        vector = query.embedding or embedder.embed_model.get_query_embedding(query.query_str)
    return np.asarray(unit_vectors([vector])[0], dtype=np.float64)


def _has(words: Sequence[str], texts: Sequence[str]) -> NDArray[np.bool_]:
    """Return which words each text has, (n_texts, n_words)."""
    told = map(words_of, texts)
    has = [[word in each for word in words] for each in told]
    return np.array(has, dtype=bool).reshape(len(texts), len(words))


def _about(pool: Pool, nodes: Sequence[NodeWithScore]) -> dict[int, str]:
    """Return the text of each paragraph with the titles and file names above it."""
    about = {
        paragraph: matched_words(nodes[child].metadata, "")
        for paragraph, child in zip(pool.paragraph, pool.node, strict=True)
    }
    for paragraph, sentence in zip(pool.paragraph, pool.sentences, strict=True):
        about[paragraph] += f"\n{sentence.text}"
    return about


def _passages(
    pool: Pool, runs: Sequence[tuple[int, int]], scores: Floats1d, budget: Budget
) -> list[Passage]:
    """Return the passages in reading order, the document with the best of them first.

    The weakest are left out if they are longer together than their sentences are.
    """
    best = np.array([scores[first : last + 1].max() for first, last in runs])
    sources = [pool.sentences[first].quote.source for first, _ in runs]
    spans = [(s.document, s.start, s.end) if s else (i, 0, 0) for i, s in enumerate(sources)]
    document, start, _ = places_of(spans)
    order = [*reading_order(best, document, start)]
    texts = [pool.text(*run) for run in runs]
    while len(order) > 1 and _length([texts[i] for i in order], budget) > budget.max_tokens:
        order.remove(min(order, key=lambda i: best[i]))
    ends = [(pool.sentences[first].quote, pool.sentences[last].quote) for first, last in runs]
    return [Passage(texts[i], citation_of(*ends[i])) for i in order]


def _length(texts: Sequence[str], budget: Budget) -> int:
    return int(budget.count(["\n\n".join(texts)])[0])


def citation_of(first: Quote, last: Quote) -> dict[str, Any] | None:
    """Return the span from one quote to another, with those of copies as `also`."""
    spans = [
        start._replace(end=end.end).to_json()
        for start, end in zip(first.sources, last.sources, strict=False)
        if start.document == end.document and start.start <= end.end
    ]
    if not spans:
        return None
    return {**spans[0], "also": spans[1:]} if spans[1:] else spans[0]
