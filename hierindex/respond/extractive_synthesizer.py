"""The LlamaIndex response synthesizer of answers without a language model."""

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import Response
from llama_index.core.llms import MockLLM
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from hierindex.models.embedder import named_errors
from hierindex.respond.extractive import ANSWER_TOKENS, MIN_SCORE, NO_ANSWER, Extractive
from hierindex.retrieve.retrieval import Question, Retrieved
from hierindex.retrieve.retrieved import retrieved_of


class ExtractiveSynthesizer(BaseSynthesizer):
    """A response synthesizer that quotes the passages that answer the question.

    An answer is one to five passages of at most some 60 words each, the best first and each
    followed by its number in brackets: a paragraph, an item below what introduces its list, a row
    below the head of its table, a record, or sentences of a long paragraph, with what stands
    beside it if it is short. Who wrote a document and when, as its metadata tell, may be one, too.
    A passage is the one around the best sentence, item or row. These are scored by the share of
    the question's words that they, or the titles above them, have, rare words weighing more, by
    their similarity to the question, and by the rank of their node. Passages that are much worse
    than the best are not shown, and no fact is shown twice. Front matter, references and tables of
    contents are quoted only if the question asks for their words.

    A question about the whole ("What is this about?") is answered by an overview: a paragraph for
    each node in reading order, with its name, its share of the text if the nodes are an outline,
    and its best sentence, as in "Weather (50%): It rained all week. [1]". If not all nodes fit,
    those of the smallest shares are only named. A single node is told with what follows the
    sentence and the titles of its children. Nodes of an outline always give an overview.

    `response.metadata` has `citations`, one per passage, as `Citation.to_json` returns it;
    `passages`, see `Answer`; `best`, the part of the first passage that answers best; `score`;
    `refused`, which is True if nothing answers; and `missing`, the numbers, names and quoted words
    of the question that stand neither in the passages nor in the titles above them, and the other
    words that no node has and without which the question would mean something else.

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
        in one of the best five nodes. A question that is nothing but words which a node has is
        never refused, nor is a question about the whole.

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
        self._embed_model = embed_model
        self._extractive = Extractive(embed_model, answer_tokens=answer_tokens, min_score=min_score)

    def synthesize(
        self,
        query: str | QueryBundle,
        nodes: Sequence[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **response_kwargs: Any,
    ) -> Response:
        """Return an answer made of passages of the nodes."""
        query = QueryBundle(query) if isinstance(query, str) else query
        retrieved = self._retrieved(query, nodes)
        extract = self._extractive.extracted(retrieved)
        return Response(
            extract.answer(NO_ANSWER),
            source_nodes=[*nodes, *(additional_source_nodes or ())],
            metadata={
                "citations": [passage.citation.to_json() for passage in extract.passages],
                "best": extract.best,
                "score": extract.score,
                "refused": extract.refused,
                "missing": [*extract.missing],
                "passages": [passage.to_json() for passage in extract.passages],
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
        retrieved = self._retrieved(QueryBundle(query_str), nodes)
        return self._extractive.extracted(retrieved).answer(NO_ANSWER, numbered=False)

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        """Do what `get_response` does, in a thread."""
        return await asyncio.to_thread(self.get_response, query_str, text_chunks)

    def _retrieved(self, query: QueryBundle, nodes: Sequence[NodeWithScore]) -> Retrieved:
        has_text = any(node.text.strip() for node in nodes)
        with named_errors(self._embed_model):
            embed = self._embed_model.get_query_embedding
            vector = query.embedding or (embed(query.query_str) if has_text else [])
        return retrieved_of(Question(query.query_str, vector), nodes)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """Ignore prompts, as none are used."""
