"""Tree summarise with a bounded number of calls."""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

from llama_index.core.indices.prompt_helper import DEFAULT_PADDING, PromptHelper
from llama_index.core.llms import LLM
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.types import RESPONSE_TEXT_TYPE

from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError, ModelError
from hierindex.models.llm import language_model_of, with_retries
from hierindex.models.record import Calls, check_said
from hierindex.respond.citation import cited_end
from hierindex.text.sentences import split_sentences
from hierindex.threads import each, in_daemon_thread

BETWEEN = "\n\n"  # separator in a prompt, as in LlamaIndex
LEAST_ROOM = 32  # tokens; fewer do not hold two answers
N_BETWEEN = 2  # maximum tokens between two texts
PAIR = 2  # minimum number of answers in a prompt


class BoundedTreeSummarize(TreeSummarize):
    """LlamaIndex's `TreeSummarize` with a bounded number of calls.

    Texts that fit into one prompt take one call, as in LlamaIndex. Otherwise they are packed into
    at most as many prompts as LlamaIndex makes, and the next round summarises the answers. A text
    is split only if it is too long for a prompt. Answers are truncated to half a prompt, at the end
    of a sentence, so each round has at most half as many calls as the previous one: n prompts take
    fewer than 2n + log2(n) + 1 calls, whatever the model answers.

    Parameters
    ----------
    concurrency : int, optional
        Maximum number of concurrent calls of all questions together, 4 by default. Open streams
        are not counted.
    before : callable, optional
        Called before prompts are sent, with three integers: the maximum number of prompts, the
        number of prompts in the first round, and the approximate number of tokens of these.
    **options
        As in `TreeSummarize`, except `multimodal`. `use_async` has no effect.

    Raises
    ------
    InputError
        If `concurrency` is below 1, `multimodal` is set, or the template leaves no room in the
        model's window.
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
        if options.get("multimodal"):
            raise InputError("Tree summarise reads only text; omit multimodal.")
        # LlamaIndex's default would replace the model's.
        options.setdefault("callback_manager", llm.callback_manager)
        super().__init__(llm=with_retries(llm, concurrency=concurrency), **options)
        self._before = before

    def get_response(
        self, query_str: str, text_chunks: Sequence[str], **variables: Any
    ) -> RESPONSE_TEXT_TYPE:
        """Return the answer to a question from texts; `variables` fill the template."""
        last, calls = self._read(query_str, text_chunks, variables)
        return _checked(last(), calls)

    async def aget_response(
        self, query_str: str, text_chunks: Sequence[str], **variables: Any
    ) -> RESPONSE_TEXT_TYPE:
        """Do what `get_response` does, without blocking the event loop."""
        read = partial(self._read, query_str, text_chunks, variables, mark="a")
        last, calls = await in_daemon_thread(read)
        return _checked(await last(), calls)

    def _read(
        self, question: str, texts: Sequence[str], variables: dict[str, Any], mark: str = ""
    ) -> tuple[Callable[[], Any], Calls]:
        """Return a function that sends the last prompt, and the record of the calls.

        `mark` is the prefix of the model's method: "a" for an async one.
        """
        calls = Calls()
        template = self._summary_template.partial_format(query_str=question, **variables)
        form = None if self._streaming else self._output_cls
        beside = "" if form is None else PydanticOutputParser(form).format("")
        window = Window.of(self._prompt_helper, template, with_retries(self._llm, calls), beside)
        first = window.prompts(texts)
        if self._before is not None:
            n = len(first)
            most = math.ceil(2 * n + math.log2(n)) if n > 1 else 1
            frame = window.length(template.format(llm=window.llm, context_str=""))
            self._before(most, n, n * frame + sum(map(window.length, first)))
        texts, at_once = first, language_model_of(window.llm).limit.most
        while len(texts) > 1:
            asked = [partial(window.llm.predict, template, context_str=text) for text in texts]
            texts = window.read_on(each(asked, at_once))
        method = "stream" if self._streaming else "structured_predict" if form else "predict"
        send = getattr(window.llm, f"{mark}{method}")
        return partial(send, *([form] if form else []), template, context_str=texts[0]), calls


def _checked(answer: RESPONSE_TEXT_TYPE, calls: Calls) -> RESPONSE_TEXT_TYPE:
    """Check the last answer, unless it is a stream or structured."""
    if isinstance(answer, str):
        check_said("The model", calls.made[-1:])
    return answer


class Window(NamedTuple):
    """The part of a model's context window that a template leaves free.

    `room` is in tokens of the helper's tokenizer, by default LlamaIndex's global one. `padding` is
    the number of tokens reserved for text outside the template.
    """

    helper: PromptHelper
    template: BasePromptTemplate
    llm: LLM
    room: int
    padding: int

    @classmethod
    def of(
        cls, helper: PromptHelper, template: BasePromptTemplate, llm: LLM, beside: str = ""
    ) -> "Window":
        """Compute the window of a model whose prompts also contain the text `beside`.

        Raises
        ------
        InputError
            If the template leaves fewer than `LEAST_ROOM` tokens.
        """
        try:
            padding = DEFAULT_PADDING + helper._token_counter.get_string_tokens(beside)
            splitter = helper.get_text_splitter_given_prompt(template, padding=padding, llm=llm)
            room = splitter.chunk_size
        except ValueError:  # negative
            room = 0
        if room < LEAST_ROOM:
            raise InputError(
                f"The prompt leaves no room for texts in the {helper.context_window:,} tokens of "
                f"the model's window, of which its answer takes {helper.num_output:,}; shorten "
                "the question or the template, or set context_window= and max_tokens= of the model."
            )
        return cls(helper, template, llm, room, padding)

    def prompts(self, texts: Sequence[str]) -> list[str]:
        """Join texts into as many prompts as LlamaIndex makes, or fewer.

        Texts are split only if they do not fit a prompt.
        """
        packed = self.helper.repack(self.template, texts, padding=self.padding, llm=self.llm)
        if len(packed) == 1:
            return packed
        whole, room = list[list[str]](), 0
        for text in texts:
            n_tokens = self.length(text) + N_BETWEEN
            if n_tokens > self.room:
                return packed
            if n_tokens > room:
                whole.append([])
                room = self.room
            whole[-1].append(text)
            room -= n_tokens
        return list(map(BETWEEN.join, whole)) if len(whole) <= len(packed) else packed

    def read_on(self, answers: Sequence[str]) -> list[str]:
        """Return the prompt texts of the next round, which summarise the given answers.

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
        return self.helper._token_counter.get_string_tokens(text)

    def shortened(self, text: str) -> str:
        """Truncate a text so that two such texts fit one prompt.

        It ends after a sentence and its citations, or within the first sentence if that is too
        long.
        """
        most = self.room // PAIR - N_BETWEEN
        if self.length(text) <= most:
            return text
        ends = [cited_end(text, sentence.to) for sentence in split_sentences(text)]
        fitting = [*takewhile(lambda end: self.length(text[:end]) <= most, ends)]
        if fitting:
            return text[: fitting[-1]]
        lengths = range(len(text))  # of beginnings, in characters
        too_long = bisect_right(lengths, most, key=lambda n: self.length(text[:n]))
        return text[: too_long - 1]
