"""Response synthesizers: one that quotes passages, and one that summarises in a tree."""

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

from llama_index.core.base.response.schema import Response
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer, TreeSummarize
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.types import RESPONSE_TEXT_TYPE
from pydantic import BaseModel

from hierindex.errors import InputError, ModelError
from hierindex.models.adapters import language_model_of, read_in_threads, with_retries
from hierindex.models.embedder import EmbedLike, named_errors
from hierindex.models.record import Calls, check_said
from hierindex.respond.citation_check import N_BETWEEN, packed
from hierindex.respond.cited_text import cited_end
from hierindex.respond.extractive import ANSWER_TOKENS, MIN_SCORE, NO_ANSWER, Extractive
from hierindex.retrieve.retrieval import Question, Retrieved
from hierindex.retrieve.retriever import retrieved_of
from hierindex.text.sentences import split_sentences
from hierindex.threads import each, in_daemon_thread

LEAST_ROOM = 32  # tokens; fewer do not hold two answers


class ExtractiveSynthesizer(BaseSynthesizer):
    """A response synthesizer that quotes the passages that answer the question.

    An answer is one to five passages, the best first, each followed by its number in brackets. A
    passage has at most about 60 words, or 150 if it is a list of steps. It is one of these:

    * a paragraph, or some sentences of a long one
    * a list item, with the sentence that introduces the list
    * a table row, with the header of the table
    * a record of "key: value" pairs, from a table or JSON
    * the author and the date of a document

    Short passages, except records, include neighbouring text.

    A passage is chosen by its best sentence, item or row. Three things count: the share of the
    question's words in it or in the titles above it (rare words weigh more), its similarity to the
    question, and the rank of its node. Definitions score higher; headings, code, front matter,
    references and tables of contents score lower, and so do nodes that lack the names in the
    question. Passages that score much lower than the best, or repeat a fact, are left out.

    A question about the whole index, such as "What is this about?", is answered by an overview. It
    gives the title and the best sentences of each node, as in "Weather (50%): It rained. [1]". The
    percentage is the node's share of the text. It is given only if the nodes are an outline (see
    `HierarchyRetriever`); large nodes then get more sentences. If not all nodes fit, only the
    titles of the smallest are given. Within one document, consecutive nodes with the same heading
    are joined.

    `response.metadata` has `citations`, one for each passage, as `Citation.to_json` returns it, and
    `passages`, `best`, `score`, `refused` and `missing`, as in `Answer`.

    Parameters
    ----------
    embed_model : BaseEmbedding or callable
        Embeds the question and the sentences.
    answer_tokens : int
        Maximum number of tokens in an answer, counted by the tokenizer of `embed_model`; 500 by
        default.
    min_score : float in [0, 1], optional
        Minimum score of an answer, 0.4 by default; below it, the question is refused. The score is
        the probability that the nodes answer the question. It depends on the question's similarity
        to the nearest sentence, the share of its words in a node, and whether the best five nodes
        contain its numbers and names. Questions about the whole index score 1; questions that
        consist only of keywords, all of which occur in one node, score at least 0.9. With 0 or
        None, a question is refused only if it has no words to search for, or the nodes have no
        text.

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
        """Return an answer made of passages from the nodes."""
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
        """Run `synthesize` in a thread."""
        return await asyncio.to_thread(self.synthesize, query, nodes, additional_source_nodes)

    def get_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        """Quote passages of the texts that answer the question."""
        nodes = [NodeWithScore(node=TextNode(text=text)) for text in text_chunks]
        retrieved = self._retrieved(QueryBundle(query_str), nodes)
        return self._extractive.extracted(retrieved).answer(NO_ANSWER, numbered=False)

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        """Run `get_response` in a thread."""
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


class BoundedTreeSummarize(TreeSummarize):
    """LlamaIndex's `TreeSummarize` with a bounded number of calls.

    Texts that fit into one prompt take one call, as in LlamaIndex. Otherwise they are packed into
    prompts, whose answers are summarised in further rounds. A text is split only if it is too long
    for a prompt. Answers are truncated to half a prompt, at the end of a sentence, so each round
    has at most half as many calls as the previous one: n prompts take fewer than 2n + log2(n) + 1
    calls, whatever the model answers.

    Parameters
    ----------
    llm : LLM
    before : callable, optional
        Called before prompts are sent, with three integers: the maximum number of prompts, the
        number of prompts in the first round, and the approximate number of tokens in that round.
    **options
        As in `TreeSummarize`. `use_async` has no effect.

    Raises
    ------
    InputError
        If the template leaves no room in the model's window.
    ModelError
        If the model returns no text, or repeats its prompt; streams are not checked.
    """

    def __init__(
        self, llm: LLM, *, before: Callable[[int, int, int], object] | None = None, **options: Any
    ) -> None:
        # LlamaIndex's default would replace the model's.
        options.setdefault("callback_manager", llm.callback_manager)
        super().__init__(llm=with_retries(llm), **options)
        self._before = before

    def get_response(
        self, query_str: str, text_chunks: Sequence[str], **variables: Any
    ) -> RESPONSE_TEXT_TYPE:
        """Answer a question from texts; `variables` go into the prompt template."""
        calls = Calls()
        llm = with_retries(self._llm, calls)
        template = self._summary_template.partial_format(query_str=query_str, **variables)
        window = Window(self._prompt_helper, template, llm)
        texts = window.prompts(text_chunks)
        if self._before is not None:
            n = len(texts)
            most = math.ceil(2 * n + math.log2(n)) if n > 1 else 1
            frame = window.length(template.format(llm=llm, context_str=""))
            self._before(most, n, n * frame + sum(map(window.length, texts)))
        while len(texts) > 1:
            asked = [partial(llm.predict, template, context_str=text) for text in texts]
            texts = window.read_on(each(asked, language_model_of(llm).concurrency))
        if self._streaming:
            return llm.stream(template, context_str=texts[0])
        if self._output_cls is not None:
            form: BaseModel = llm.structured_predict(
                self._output_cls, template, context_str=texts[0]
            )
            return form
        answer: str = llm.predict(template, context_str=texts[0])
        check_said("The model", calls.made[-1:])
        return answer

    async def aget_response(
        self, query_str: str, text_chunks: Sequence[str], **variables: Any
    ) -> RESPONSE_TEXT_TYPE:
        """Do what `get_response` does, without blocking the event loop."""
        answer = partial(self.get_response, query_str, text_chunks, **variables)
        given = await in_daemon_thread(answer)
        return read_in_threads(given) if isinstance(given, Iterator) else given


class Window:
    """The part of a model's context window that a template leaves free.

    `room` is in tokens of the helper's tokenizer, by default LlamaIndex's global one.

    Raises
    ------
    InputError
        If the template leaves fewer than `LEAST_ROOM` tokens.
    """

    def __init__(self, helper: PromptHelper, template: BasePromptTemplate, llm: LLM) -> None:
        self._counter = helper._token_counter
        try:
            self._splitter = helper.get_text_splitter_given_prompt(template, llm=llm)
            self.room: int = self._splitter.chunk_size
        except ValueError:  # negative
            self.room = 0
        if self.room < LEAST_ROOM:
            raise InputError(
                f"The prompt leaves no room for texts in the {helper.context_window:,} tokens of "
                f"the model's window, of which its answer takes {helper.num_output:,}; shorten "
                "the question or the template, or set context_window= and max_tokens= of the model."
            )

    def prompts(self, texts: Sequence[str]) -> list[str]:
        """Join texts until a prompt is full; see `packed`."""
        return packed(texts, self._splitter, self.length)

    def read_on(self, answers: Sequence[str]) -> list[str]:
        """Return the texts of the next round's prompts, which contain the given answers.

        Raises
        ------
        ModelError
            If all answers are empty.
        """
        said = [self.shortened(answer.strip()) for answer in answers if answer.strip()]
        if not said:
            raise ModelError(f"The model answered nothing to any of {len(answers)} prompts.")
        return self.prompts(said)

    def length(self, text: str) -> int:
        """Count the tokens of a text with the prompt helper's tokenizer."""
        return self._counter.get_string_tokens(text)

    def shortened(self, text: str) -> str:
        """Truncate a text so that two such texts fit one prompt.

        It ends after a sentence and its citations, or within the first sentence if that is too
        long.
        """
        most = self.room // 2 - N_BETWEEN
        if self.length(text) <= most:
            return text
        ends = [cited_end(text, sentence.to) for sentence in split_sentences(text)]
        fitting = [*takewhile(lambda end: self.length(text[:end]) <= most, ends)]
        if fitting:
            return text[: fitting[-1]]
        within = self._splitter.model_copy(update={"chunk_size": most})
        return within.split_text(text)[0]
