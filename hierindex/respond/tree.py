"""Answers by a tree of calls: as many texts as fit a prompt, then what was answered of them."""

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
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
from hierindex.llm.checks import check_said
from hierindex.llm.record import Calls
from hierindex.llm.served import served, service_of
from hierindex.respond.passages import Passage, condensed
from hierindex.respond.rounds import Window, rounds
from hierindex.retrieve.retrieved import RetrievedNode
from hierindex.store.vector_store import HierarchyStore
from hierindex.threads import each, wait_for

CALLS, SUMMARIES = "calls", "summaries"


class BoundedTreeSummarize(TreeSummarize):
    """LlamaIndex's tree summarise, made along the tree, and sure to end.

    What fits one prompt is one call, the same as LlamaIndex's. What does not is cut into as many
    prompts as LlamaIndex would make of it, or fewer, where the tree is cut least; their answers
    are what the next calls read. An answer is cut to half a prompt's room, at the end of a
    sentence, so that each round has at most half as many calls as the one before: from n prompts
    less than 2n + log2(n) + 1 calls, whatever the model answers.

    `response.metadata` has `calls`, each prompt with its answer and their tokens, and `summaries`,
    the ids of the summaries that were read in the place of their children.

    Parameters
    ----------
    num_children : int, optional
        Texts that a call reads at most, where that makes no more calls than full prompts; by
        default as many as fit.
    concurrency : int, optional
        Calls at once, of all questions that this is asked; a stream that is being read is none.
        By default 4.
    store : HierarchyStore, optional
        Of the nodes. With it, a summary of the index is read in the place of its children where
        all of them were found and a prompt is saved.
    **options
        As `TreeSummarize`, `multimodal` apart. `use_async` makes no difference.

    Raises
    ------
    InputError
        If a number is below 1, `multimodal` is set, or a prompt's template leaves no room in the
        model's window.
    ModelError
        If the model answers nothing, or repeats its prompt; the text of a stream is not looked at.
    """

    def __init__(
        self,
        llm: LLM,
        *,
        num_children: int | None = None,
        concurrency: int | None = None,
        store: HierarchyStore | None = None,
        **options: Any,
    ) -> None:
        for name, number in (("num_children", num_children), ("concurrency", concurrency)):
            within = number is None or is_whole(number, 1)
            require(within, name, "an integer of at least 1", number)
        if options.get("multimodal"):
            raise InputError("multimodal is not for tree summarise along the tree: it reads texts.")
        options.setdefault("callback_manager", llm.callback_manager)  # or LlamaIndex replaces it
        super().__init__(llm=served(llm, concurrency=concurrency), **options)
        self._num_children = num_children
        self._store = store

    def synthesize(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **variables: Any,
    ) -> RESPONSE_TYPE:
        """The answer to a question from nodes; `variables` are for the template."""
        read, calls = wait_for(self._read(query, nodes, variables)), Calls()
        given = {"passages": list(map(Passage.of, read)), "calls": calls, **variables}
        response = super().synthesize(query, nodes, additional_source_nodes, **given)
        return _traced(response, nodes, read, calls)

    async def asynthesize(
        self,
        query: str | QueryBundle,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
        **variables: Any,
    ) -> RESPONSE_TYPE:
        """As `synthesize`."""
        read, calls = await self._read(query, nodes, variables), Calls()
        given = {"passages": list(map(Passage.of, read)), "calls": calls, **variables}
        response = await super().asynthesize(query, nodes, additional_source_nodes, **given)
        return _traced(response, nodes, read, calls)

    def get_response(
        self,
        query_str: str,
        text_chunks: Sequence[str],
        passages: Sequence[Passage] = (),
        calls: Calls | None = None,
        **variables: Any,
    ) -> RESPONSE_TEXT_TYPE:
        """The answer from texts; `variables` are for the template."""
        calls = calls or Calls()
        window = self._window(query_str, variables, served(self._llm, calls))
        llm, template = window.llm, window.template
        n_threads = service_of(llm).limit.most
        going = rounds(window, passages or list(map(Passage, text_chunks)), self._num_children)
        try:
            shown = next(going)
            while True:
                asked = [partial(llm.predict, template, context_str=p.text) for p in shown]
                shown = going.send(each(asked, n_threads))
        except StopIteration as end:
            last = end.value
        method, given = self._last(template)
        return _checked(getattr(llm, method)(*given, context_str=last), calls)

    async def aget_response(
        self,
        query_str: str,
        text_chunks: Sequence[str],
        passages: Sequence[Passage] = (),
        calls: Calls | None = None,
        **variables: Any,
    ) -> RESPONSE_TEXT_TYPE:
        """As `get_response`."""
        calls = calls or Calls()
        window = self._window(query_str, variables, served(self._llm, calls))
        llm, template = window.llm, window.template
        going = rounds(window, passages or list(map(Passage, text_chunks)), self._num_children)
        try:
            shown = next(going)
            while True:
                asked = [llm.apredict(template, context_str=p.text) for p in shown]
                shown = going.send(await _aeach(asked))
        except StopIteration as end:
            last = end.value
        method, given = self._last(template)
        return _checked(await getattr(llm, f"a{method}")(*given, context_str=last), calls)

    def _last(self, template: BasePromptTemplate) -> tuple[str, tuple[Any, ...]]:
        """The method of a model that answers the last prompt, and what it is given."""
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

    async def _read(
        self, query: str | QueryBundle, nodes: list[NodeWithScore], variables: dict[str, Any]
    ) -> list[NodeWithScore]:
        """The nodes, or summaries in the place of some."""
        if self._store is None or not nodes:
            return nodes
        question = query if isinstance(query, str) else query.query_str
        window = self._window(question, variables, self._llm)
        found_in = (node.snapshot for node in nodes if isinstance(node, RetrievedNode))
        snapshot = next(found_in, None) or await self._store.asnapshot()
        read = await condensed(nodes, snapshot, window.n_tokens, window.room)
        if read == nodes:
            return nodes
        n_read, n_found = (
            len(next(rounds(window, list(map(Passage.of, some)), self._num_children), []))
            for some in (read, nodes)
        )
        return read if n_read < n_found else nodes


async def _aeach(asked: Iterable[Coroutine[Any, Any, str]]) -> list[str]:
    """What is answered, in order; the first failure ends the rest."""
    answers = list(map(asyncio.ensure_future, asked))
    try:
        return await asyncio.gather(*answers)
    finally:
        for answer in answers:
            answer.cancel()
        await asyncio.gather(*answers, return_exceptions=True)


def _checked(answer: RESPONSE_TEXT_TYPE, calls: Calls) -> RESPONSE_TEXT_TYPE:
    """The last call's answer, if it is one; neither a stream nor a form is looked at."""
    if isinstance(answer, str):
        check_said("The model", calls.made[-1:])
    return answer


def _traced(
    response: RESPONSE_TYPE,
    found: Sequence[NodeWithScore],
    read: Sequence[NodeWithScore],
    calls: Calls,
) -> RESPONSE_TYPE:
    """The response with what was read and asked; of a stream, the last call once it has ended."""
    ids = {node.node_id for node in found}
    summaries = [node.node_id for node in read if node.node_id not in ids]
    response.metadata = {**(response.metadata or {}), CALLS: calls.made, SUMMARIES: summaries}
    return response
