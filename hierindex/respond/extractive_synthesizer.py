"""The LlamaIndex response synthesizer of answers without a language model."""

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.llms import MockLLM
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from hierindex.models.embedder import EmbedLike, named_errors
from hierindex.respond.extractive import ANSWER_TOKENS, MIN_SCORE, NO_ANSWER, Extractive
from hierindex.retrieve.retrieval import Question, Retrieved
from hierindex.retrieve.retriever import retrieved_of


class ExtractiveSynthesizer(BaseSynthesizer):
    """A response synthesizer that quotes the passages that answer the question.

    An answer is one to five passages of at most about 60 words each, the best first, each followed
    by its number in brackets. A passage is a paragraph, a list item with the sentence that
    introduces the list, a table row with the head of its table, a record, or some sentences of a
    long paragraph; short ones are extended by their neighbours. The author and the date in a
    document's metadata can be a passage, too. A passage is chosen by its best sentence, item or
    row, which is scored by three things: the share of the question's words in it or in the titles
    above it (rare words weigh more), its similarity to the question, and the rank of its node. A
    sentence that emphasises half of the words of the question, as a definition does, is preferred.
    Passages with much lower scores than the best are not shown, and no fact is shown twice. Front
    matter, references and tables of contents are quoted only if they match words of the question.

    A question about the whole index ("What is this about?") is answered by an overview: for each
    part in reading order its name, its share of the text if the nodes are an outline, and its best
    sentence, as in "Weather (50%): It rained all week. [1]". A part is a node. If all nodes are of
    one document, consecutive ones with the same heading are one part, which has a sentence for each
    tenth of the text, up to three. A group of documents is named by titles of its documents. If not
    all parts fit, those with the smallest shares are only named. For a single node, the overview
    continues with the following sentences and the titles of its children. An outline is always an
    overview.

    `response.metadata` has `citations`, one per passage, as `Citation.to_json` returns it;
    `passages`, see `Answer`; `best`, the part of the first passage that answers best; `score`;
    `refused`, True if nothing answers the question; and `missing`: numbers, names and quoted words
    of the question that are neither in the passages nor in the titles above them, and other
    important words of the question that no node contains.

    Parameters
    ----------
    embed_model : BaseEmbedding or callable
        Embeds the question and the sentences.
    answer_tokens : int
        Maximum tokens of an answer, counted by the tokenizer of `embed_model`; 500 by default.
    min_score : float in [0, 1], optional
        Minimum score of an answer, 0.4 by default. With 0 or None, a question is only refused if
        there is no sentence. The score is the probability that the nodes answer the question. It is
        computed from the question's similarity to the nearest sentence, the share of its words that
        a node contains, and whether its numbers and names are in one of the best five nodes. A
        search for words that a node contains is never refused, nor is a question about the whole
        index.

    Raises
    ------
    InputError
        If a number is out of range.
    """

    def __init__(
        self,
        embed_model: EmbedLike,
        *,
        answer_tokens: int = ANSWER_TOKENS,
        min_score: float | None = MIN_SCORE,
    ) -> None:
        super().__init__(llm=MockLLM())  # the default would be OpenAI's
        self._extractive = Extractive(embed_model, answer_tokens=answer_tokens, min_score=min_score)
        self._embed_model = self._extractive.embedder.embed_model

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
        """Return the answering passages of texts without sources."""
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
        """Ignore prompts, because none are used."""
