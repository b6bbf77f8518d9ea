"""Answers without a language model, made of cited sentences."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import MockLLM
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from hierindex.core.arguments import is_number, is_whole, require
from hierindex.core.calibration import Scale
from hierindex.core.context import in_context, nearness, places_of
from hierindex.core.membership import Floats1d, Ints1d
from hierindex.core.ranking import blended, reading_order, shared_words
from hierindex.core.relevance import centroid_similarity
from hierindex.core.salience import select_sentences
from hierindex.embed.embedder import Embedder, unit_vectors
from hierindex.embed.failures import named_errors
from hierindex.record import NodeRecord, Quote
from hierindex.retrieve.known_questions import about_the_whole, known_vectors
from hierindex.summarize.extractive import fitting_sentences
from hierindex.summarize.sentences import TOKEN, Sentence, split_all, telling
from hierindex.summarize.summary import Budget

ANSWER_TOKENS = 150
MIN_SCORE = 0.75  # chosen by tests/benchmarks/answers.py
NEAR = 0.5  # minimum score of a sentence, relative to the best
REDUNDANCY = 0.5  # weight of the similarity to chosen sentences
MOST_COMPARED = 1_000  # sentences, as scores in context cost their square
CITATIONS = "citations"
SCORE = "score"
REFUSED = "refused"
NO_ANSWER = "Nothing in the index answers this."


class Extract(NamedTuple):
    """The sentences of an answer, empty if nothing answers, and its score in [0, 1]."""

    sentences: list[Sentence]
    score: float


class ExtractiveSynthesizer(BaseSynthesizer):
    """A response synthesizer that quotes the sentences that answer the question.

    Sentences are scored like nodes with `by="context"`: by embeddings, by words, and by their
    neighbours. They are quoted verbatim, each followed by its number in brackets. The document
    with the best sentence comes first, and sentences of one document are in reading order.

    `response.metadata` has `citations`, one `{document, start, end}` per sentence, or None if
    its position is unknown, with a list `also` of other places that say the same, if there are
    any; `score`; and `refused`, which is True if no sentence answers.

    Parameters
    ----------
    embed_model : BaseEmbedding
        Embeds the question and the sentences.
    answer_tokens : int
        Maximum tokens of an answer.
    min_score : float in [0, 1], optional
        Minimum score of an answer; 0 and None answer whenever there is a sentence. The score is
        the similarity of the question to the nearest sentence, scaled so that 0 is chance and
        1 is a known answer, see `known_questions`. A question about the whole ("What is this
        about?") has the score of `about_the_whole`, and is answered by the most central sentences.

    Raises
    ------
    InputError
        If a number is out of range.
    """

    def __init__(
        self,
        embed_model: BaseEmbedding,
        *,
        answer_tokens: int = ANSWER_TOKENS,
        min_score: float | None = MIN_SCORE,
    ) -> None:
        super().__init__(llm=MockLLM())  # the default would be OpenAI's
        valid = is_whole(answer_tokens, 1)
        require(valid, "answer_tokens", "an integer of at least 1", answer_tokens)
        within = min_score is None or (is_number(min_score) and 0 <= min_score <= 1)
        require(within, "min_score", "a number in [0, 1]", min_score)
        self._embedder = Embedder(embed_model)
        self._budget = Budget(answer_tokens, self._embedder.count_text_tokens)
        self._min_score = min_score or 0.0

    def synthesize(
        self,
        query: str | QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> Response:
        """Return an answer made of sentences of the nodes."""
        found = split_all(
            (node.get_content(MetadataMode.NONE), NodeRecord.from_metadata(node.metadata).quotes)
            for node in nodes
        )
        chosen, score = self._extract(query, found)
        return Response(
            " ".join(f"{s.text} [{i}]" for i, s in enumerate(chosen, start=1)) or NO_ANSWER,
            source_nodes=[*nodes, *(additional_source_nodes or ())],
            metadata={
                CITATIONS: [_citation(sentence.quote) for sentence in chosen],
                SCORE: score,
                REFUSED: not chosen,
            },
        )

    async def asynthesize(
        self,
        query: str | QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> Response:
        """Do what `synthesize` does, in a thread."""
        return await asyncio.to_thread(self.synthesize, query, nodes, additional_source_nodes)

    def get_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        """Return the sentences that answer, from texts without sources."""
        found = split_all((text, ()) for text in text_chunks)
        return " ".join(s.text for s in self._extract(query_str, found).sentences) or NO_ANSWER

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        """Do what `get_response` does, in a thread."""
        return await asyncio.to_thread(self.get_response, query_str, text_chunks)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """Ignore prompts, as none are used."""

    def _extract(self, question: str | QueryBundle, found: Sequence[Sentence]) -> Extract:
        """Choose diverse sentences that answer, in reading order, within the budget."""
        pool = fitting_sentences(_informative(found), self._budget)
        if not pool:
            return Extract([], 0.0)
        query = QueryBundle(question) if isinstance(question, str) else question
        q = self._embedded(query)
        S = self._embedder.embed([sentence.text for sentence in pool])  # (n_sentences, n_dims)
        nearest = np.sort(np.argsort(-(S @ q), kind="stable")[:MOST_COMPARED])
        pool, S = [pool[i] for i in nearest], S[nearest]
        Q, A, _ = known_vectors(self._embedder.embed_model)
        near = Scale.of(Q @ A.T).shares(S @ q)
        whole = about_the_whole(q, self._embedder.embed_model)
        score = float(np.clip(whole.score if whole.decided else near.max(), 0, 1))
        if score < self._min_score:
            return Extract([], score)
        if whole.decided:
            similarity, words, kept = centroid_similarity(S), [], np.arange(len(pool))
        else:
            similarity, words = S @ q, _words(query.query_str)
            kept = np.flatnonzero(near >= min(near.max(), NEAR * near.max()))
        relevance, document, start = _in_context(similarity, words, pool)
        chosen = kept[
            select_sentences(
                S[kept],
                self._budget.costs([pool[i] for i in kept]),
                relevance[kept],
                budget=self._budget.max_tokens,
                redundancy=REDUNDANCY,
            )
        ]
        order = chosen[reading_order(relevance[chosen], document[chosen], start[chosen])]
        return Extract(self._budget.trimmed([pool[i] for i in order]), score)

    def _embedded(self, query: QueryBundle) -> Floats1d:
        model = self._embedder.embed_model
        with named_errors(model):
            vector = query.embedding or model.get_query_embedding(query.query_str)
        return np.asarray(unit_vectors([vector])[0], dtype=np.float64)


def _citation(quote: Quote) -> dict[str, Any] | None:
    """Return the source of a quote, with the others as `also`."""
    if not quote.sources:
        return None
    first, *others = [span.to_json() for span in quote.sources]
    return {**first, "also": others} if others else first


def _informative(found: Sequence[Sentence]) -> list[Sentence]:
    """Drop stubs and sentences that end with a colon, unless nothing else is left."""
    sentences = telling(found)
    return [s for s in sentences if not s.text.endswith((":", "\uff1a"))] or sentences


def _in_context(
    similarity: Floats1d, words: Sequence[str], pool: Sequence[Sentence]
) -> tuple[Floats1d, Ints1d, Floats1d]:
    """Return the relevance of sentences to a question, their documents and their starts."""
    texts = [set(_words(sentence.text)) for sentence in pool]
    has = np.array([[word in text for word in dict.fromkeys(words)] for text in texts], dtype=bool)
    places = [
        (s.child, s.quote.at, s.quote.to)  # a node without a known position counts as a document
        if (source := s.quote.source) is None
        else (source.document, source.start, source.end)
        for s in pool
    ]
    document, start, end = places_of(places)
    scores = blended(similarity, shared_words(has))
    return in_context(scores, document, nearness(document, start, end)), document, start


def _words(text: str) -> list[str]:
    return re.findall(TOKEN, text.lower())
