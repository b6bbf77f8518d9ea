"""Answers without a language model: the sentences that are nearest to the question, each cited."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import MockLLM
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from hierindex.core.membership import Floats1d
from hierindex.core.salience import select_sentences
from hierindex.embed.embedder import Embedder, unit_vectors
from hierindex.errors import InputError
from hierindex.record import NodeRecord
from hierindex.summarize.extractive import fitting_sentences
from hierindex.summarize.sentences import Sentence, split_sentences, telling
from hierindex.summarize.summary import Budget

ANSWER_TOKENS = 150
NEAR = 0.6  # of the best sentence's similarity; what is further off does not answer
CITATIONS = "citations"
NO_ANSWER = "Nothing was found."


class ExtractiveSynthesizer(BaseSynthesizer):
    """Quotes the sentences of the found nodes that are most like the question.

    Each sentence stands as it stands in its node and is followed by a number in brackets;
    `response.metadata["citations"]` lists in that order where it stands in a document,
    `{document, start, end}`, or None for a chunk whose place is not known.

    Parameters
    ----------
    embed_model : BaseEmbedding
        Embeds the question and the sentences.
    answer_tokens : int
        Tokens of an answer at most.
    """

    def __init__(self, embed_model: BaseEmbedding, *, answer_tokens: int = ANSWER_TOKENS) -> None:
        super().__init__(
            llm=MockLLM()
        )  # never asked; without one LlamaIndex would look for OpenAI's
        self._embedder = Embedder(embed_model)
        if answer_tokens < 1:
            raise InputError(f"answer_tokens must be at least 1, got {answer_tokens}.")
        self._budget = Budget(answer_tokens, self._embedder.count_text_tokens)

    def synthesize(
        self,
        query: str | QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> Response:
        """An answer made of sentences of the nodes."""
        found = [
            sentence
            for node in nodes
            for sentence in split_sentences(
                node.node.get_content(MetadataMode.NONE),
                NodeRecord.from_metadata(node.node.metadata).quotes,
            )
        ]
        chosen = self._nearest(query, found)
        text = " ".join(f"{s.text} [{i}]" for i, s in enumerate(chosen, start=1))
        sources = [s.quote.source for s in chosen]
        return Response(
            text or NO_ANSWER,
            source_nodes=[*nodes, *(additional_source_nodes or ())],
            metadata={CITATIONS: [source and source.to_json() for source in sources]},
        )

    async def asynthesize(
        self,
        query: str | QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> Response:
        """As `synthesize`, in a thread."""
        return await asyncio.to_thread(self.synthesize, query, nodes, additional_source_nodes)

    def get_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        """The answer's sentences alone, from texts without a source."""
        found = [sentence for text in text_chunks for sentence in split_sentences(text)]
        return " ".join(s.text for s in self._nearest(query_str, found)) or NO_ANSWER

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        """As `get_response`, in a thread."""
        return await asyncio.to_thread(self.get_response, query_str, text_chunks)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """There are none."""

    def _nearest(self, question: str | QueryBundle, found: list[Sentence]) -> list[Sentence]:
        """The sentences near the question, few alike, in their order, within the budget."""
        pool = fitting_sentences(telling(found), self._budget)
        if not pool:
            return []
        towards = self._embedded(question)
        S = self._embedder.embed([sentence.text for sentence in pool])  # (n_sentences, n_dims)
        relevance = S @ towards
        best = relevance.max()
        near = np.flatnonzero(relevance >= min(best, NEAR * best))
        n_tokens = self._budget.costs([pool[i] for i in near])
        budget = self._budget.max_tokens
        chosen = select_sentences(S[near], n_tokens, relevance[near], budget=budget)
        return [pool[i] for i in near[chosen]]

    def _embedded(self, question: str | QueryBundle) -> Floats1d:
        query = QueryBundle(question) if isinstance(question, str) else question
        model = self._embedder.embed_model
        vector = query.embedding or model.get_query_embedding(query.query_str)
        return np.asarray(unit_vectors([vector])[0], dtype=np.float64)
