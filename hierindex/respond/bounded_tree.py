"""Tree summarise with a bounded number of calls."""

import math
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, TypeVar

from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.types import RESPONSE_TEXT_TYPE
from pydantic import BaseModel

from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError, ModelError
from hierindex.models.adapters import language_model_of, with_retries
from hierindex.models.record import Calls, check_said
from hierindex.respond.citation import cited_end
from hierindex.respond.citation_check import N_BETWEEN, packed
from hierindex.text.sentences import split_sentences
from hierindex.threads import each, in_daemon_thread

LEAST_ROOM = 32  # tokens; fewer do not hold two answers

T = TypeVar("T")


class BoundedTreeSummarize(TreeSummarize):
    """LlamaIndex's `TreeSummarize` with a bounded number of calls.

    Texts that fit into one prompt take one call, as in LlamaIndex. Otherwise they are packed into
    prompts, and the next round summarises the answers. A text is split only if it is too long for a
    prompt. Answers are truncated to half a prompt, at the end of a sentence, so each round has at
    most half as many calls as the previous one: n prompts take fewer than 2n + log2(n) + 1 calls,
    whatever the model answers.

    Parameters
    ----------
    llm : LLM
    concurrency : int, optional
        Maximum number of concurrent calls of all questions together, 4 by default. Open streams
        are not counted.
    before : callable, optional
        Called before prompts are sent, with three integers: the maximum number of prompts, the
        number of prompts in the first round, and the approximate number of tokens of these.
    **options
        As in `TreeSummarize`. `use_async` has no effect.

    Raises
    ------
    InputError
        If `concurrency` is below 1, or the template leaves no room in the model's window.
    ModelError
        If the model answers nothing, or repeats its prompt; streams are not checked.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        concurrency: int | None = None,
        before: Callable[[int, int, int], object] | None = None,
        **options: Any,
    ) -> None:
        within = concurrency is None or is_whole(concurrency, 1)
        require(within, "concurrency", "an integer of at least 1", concurrency)
        # LlamaIndex's default would replace the model's.
        options.setdefault("callback_manager", llm.callback_manager)
        super().__init__(llm=with_retries(llm, concurrency=concurrency), **options)
        self._before = before

    def get_response(
        self, query_str: str, text_chunks: Sequence[str], **variables: Any
    ) -> RESPONSE_TEXT_TYPE:
        """Return the answer to a question from texts; `variables` fill the template."""
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
            texts = window.read_on(each(asked, language_model_of(llm).limit.most))
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


async def read_in_threads(pieces: Iterator[T]) -> AsyncGenerator[T, None]:
    """Yield what an iterator yields, without blocking the event loop."""
    while (piece := await in_daemon_thread(partial(next, pieces, None))) is not None:
        yield piece


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
        lengths = range(len(text))  # of beginnings, in characters
        too_long = bisect_right(lengths, most, key=lambda n: self.length(text[:n]))
        return text[: too_long - 1]
