"""Tree summarise along the index's tree, with a bounded number of calls."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.llms import LLM
from llama_index.core.output_parsers import PydanticOutputParser
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.types import RESPONSE_TEXT_TYPE

from hierindex.core.arguments import is_whole, require
from hierindex.errors import InputError
from hierindex.llm.record import Calls, check_said
from hierindex.llm.served import served, service_of
from hierindex.respond.rounds import PlacedText, Window, prompts, read_on
from hierindex.threads import aeach, each


class BoundedTreeSummarize(TreeSummarize):
    """A `TreeSummarize` that groups texts along the tree and bounds the number of calls.

    Texts that fit one prompt take one call, as in LlamaIndex. Others are split into at most as
    many prompts as LlamaIndex makes, with related texts together, and the next round of calls
    reads their answers. Answers are truncated to half a prompt, at the end of a sentence, so
    each round has at most half as many calls as the one before: n prompts take fewer than
    2n + log2(n) + 1 calls, whatever the model answers.

    Parameters
    ----------
    concurrency : int, optional
        Maximum number of concurrent calls, for all questions together, by default 4. Open
        streams do not count.
    before : callable, optional
        Called before prompts are sent, with how many are sent at most, how many of them in the
        first round, and about how many tokens those have together.
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
        super().__init__(llm=served(llm, concurrency=concurrency), **options)
        self._before = before

    def synthesize(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **variables: Any,
    ) -> RESPONSE_TYPE:
        """Return the answer to a question from nodes; `variables` fill the template."""
        given = {"passages": list(map(PlacedText.of, nodes)), **variables}
        return super().synthesize(query, nodes, additional_source_nodes, **given)

    async def asynthesize(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **variables: Any,
    ) -> RESPONSE_TYPE:
        """Do what `synthesize` does, without blocking the event loop."""
        given = {"passages": list(map(PlacedText.of, nodes)), **variables}
        return await super().asynthesize(query, nodes, additional_source_nodes, **given)

    def get_response(
        self,
        query_str: str,
        text_chunks: Sequence[str],
        passages: Sequence[PlacedText] = (),
        **variables: Any,
    ) -> RESPONSE_TEXT_TYPE:
        """Return the answer to a question from texts; `variables` fill the template."""
        calls = Calls()
        window = self._window(query_str, variables, served(self._llm, calls))
        llm, template = window.llm, window.template
        at_once = service_of(llm).limit.most
        texts = self._first(window, passages or list(map(PlacedText, text_chunks)))
        while len(texts) > 1:
            asked = [partial(llm.predict, template, context_str=t.text) for t in texts]
            texts = read_on(window, texts, each(asked, at_once))
        method, given = self._last(template)
        return _checked(getattr(llm, method)(*given, context_str=texts[0].text), calls)

    async def aget_response(
        self,
        query_str: str,
        text_chunks: Sequence[str],
        passages: Sequence[PlacedText] = (),
        **variables: Any,
    ) -> RESPONSE_TEXT_TYPE:
        """Do what `get_response` does, without blocking the event loop."""
        calls = Calls()
        window = self._window(query_str, variables, served(self._llm, calls))
        llm, template = window.llm, window.template
        at_once = service_of(llm).limit.most
        texts = self._first(window, passages or list(map(PlacedText, text_chunks)))
        while len(texts) > 1:
            asked = [partial(llm.apredict, template, context_str=t.text) for t in texts]
            texts = read_on(window, texts, await aeach(asked, at_once))
        method, given = self._last(template)
        return _checked(await getattr(llm, f"a{method}")(*given, context_str=texts[0].text), calls)

    def _first(self, window: Window, passages: Sequence[PlacedText]) -> list[PlacedText]:
        """Return the texts of the first prompts, after a call of `before`."""
        texts = prompts(window, passages)
        if self._before is not None:
            n = len(texts)
            most = math.ceil(2 * n + math.log2(n)) if n > 1 else 1
            frame = window.length(window.template.format(llm=window.llm, context_str=""))
            self._before(most, n, n * frame + sum(window.length(text.text) for text in texts))
        return texts

    def _last(self, template: BasePromptTemplate) -> tuple[str, tuple[Any, ...]]:
        """Return the method of the model for the last prompt, and its arguments."""
        if self._streaming:
            return "stream", (template,)
        if self._output_cls is not None:
            return "structured_predict", (self._output_cls, template)
        return "predict", (template,)

    def _window(self, question: str, variables: dict[str, Any], llm: LLM) -> Window:
        template = self._summary_template.partial_format(query_str=question, **variables)
        form = None if self._streaming else self._output_cls
        beside = "" if form is None else PydanticOutputParser(form).format("")
        return Window.of(self._prompt_helper, template, llm, beside)


def _checked(answer: RESPONSE_TEXT_TYPE, calls: Calls) -> RESPONSE_TEXT_TYPE:
    """Check the last answer, unless it is a stream or structured."""
    if isinstance(answer, str):
        check_said("The model", calls.made[-1:])
    return answer
