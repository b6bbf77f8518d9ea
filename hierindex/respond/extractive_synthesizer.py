"""Answers without a language model, made of cited passages."""

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import MockLLM
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from hierindex.core.arguments import is_number, is_whole, require
from hierindex.embed.embedder import Embedder
from hierindex.respond.extract import extract
from hierindex.summarize.summary import Budget

ANSWER_TOKENS = 150
MIN_SCORE = 0.4  # chosen by tests/benchmarks/refusals.py
CITATIONS = "citations"
BEST = "best"
SCORE = "score"
REFUSED = "refused"
MISSING = "missing"


def no_answer(retriever: BaseRetriever | None = None) -> str:
    """Return a sentence saying that nothing answers in what a retriever searches.

    >>> no_answer()
    'Nothing in the index answers this.'
    """
    levels, filters = getattr(retriever, "levels", ()), getattr(retriever, "filters", None)
    where = f"at level {' or '.join(map(repr, levels))}" if levels else "in the index"
    return f"Nothing {where}{' that passes the filters' if filters else ''} answers this."


NO_ANSWER = no_answer()


class ExtractiveSynthesizer(BaseSynthesizer):
    """A response synthesizer that quotes the passages that answer the question.

    An answer is one to three passages, each followed by its number in brackets: consecutive
    sentences or lines as they stand in a document, with what they need to be read, such as the
    speaker, the head of a table, or the sentence that "this" refers to. Sentences are scored by
    embeddings, by the words of the question in and around them, by whether they have the number,
    time or name that is asked for, and by the rank of their node. The document with the best
    passage comes first, and passages of one document are in reading order.

    A question about the whole ("What is this about?") is answered by an overview: a paragraph for
    each node in reading order, with its title, its share of the text if the nodes are an outline,
    and a sentence of it, as in "Weather (50%): It rained all week. [1]". If not all nodes fit,
    those of the smallest shares are only counted. A single node is answered by up to three
    passages of it and by the titles of its children. Nodes of an outline always give an overview.

    `response.metadata` has `citations`, one `{document, start, end}` per passage, or None if
    its position is unknown, with a list `also` of other places that say the same, if there are
    any; `best`, the sentence that answers best; `score`; `refused`, which is True if nothing
    answers; and `missing`, the numbers, names and quoted words of the question that stand neither
    in the passages nor in the titles above them, which count less the fewer of them they have.

    Parameters
    ----------
    embed_model : BaseEmbedding
        Embeds the question and the sentences.
    answer_tokens : int
        Maximum tokens of an answer.
    min_score : float in [0, 1], optional
        Minimum score of an answer; 0 and None answer whenever there is a sentence. The score is
        the probability that the nodes answer, from the similarity of the question to the nearest
        sentence, the share of its words that a node has, and whether its numbers and names stand
        in one of the best five. A question that is nothing but words which a node has is never
        refused, nor is a question about the whole.

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
        """Return an answer made of passages of the nodes."""
        query = QueryBundle(query) if isinstance(query, str) else query
        found = extract(query, nodes, self._embedder, self._budget)
        refused = not found.passages or found.score < self._min_score
        passages = [] if refused else found.passages
        return Response(
            NO_ANSWER if refused else found.answer(),
            source_nodes=[*nodes, *(additional_source_nodes or ())],
            metadata={
                CITATIONS: [passage.citation for passage in passages],
                BEST: "" if refused else found.best,
                SCORE: found.score,
                REFUSED: refused,
                MISSING: [*found.missing],
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
        """Return the passages that answer, from texts without sources."""
        nodes = [NodeWithScore(node=TextNode(text=text)) for text in text_chunks]
        found = extract(QueryBundle(query_str), nodes, self._embedder, self._budget)
        refused = not found.passages or found.score < self._min_score
        return NO_ANSWER if refused else found.answer(numbered=False)

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        """Do what `get_response` does, in a thread."""
        return await asyncio.to_thread(self.get_response, query_str, text_chunks)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """Ignore prompts, as none are used."""
