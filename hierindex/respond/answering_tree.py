"""A stored tree that answers questions, through engines of LlamaIndex or directly."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hierindex.errors import InputError
from hierindex.models.record import Calls
from hierindex.respond.answer import Answer
from hierindex.respond.extractive import Extractive
from hierindex.respond.modes import COMPACT, EXTRACTIVE, NEED_LLM, choose_mode
from hierindex.retrieve.levels import Level, cut_of, levels_of
from hierindex.retrieve.stored_tree import StoredTree
from hierindex.store.generations import on_newest

if TYPE_CHECKING:
    from llama_index.core.chat_engine.types import BaseChatEngine
    from llama_index.core.llms import LLM

    from hierindex.respond.compare import Comparison
    from hierindex.respond.reading import ReadingOrderEngine

ANSWERING = {"text_qa_template", "refine_template"}  # templates of "compact", LlamaIndex's default
IGNORED = {*ANSWERING, "summary_template", "simple_template", "use_async", "verbose"}
"""Ignored by modes that do not have them, as in LlamaIndex."""
SYNTHESIZER = {*IGNORED, "streaming", "output_cls"}
POSTPROCESSORS = {"postprocessors", "node_postprocessors"}
EXTRACTS = {"answer_tokens", "min_score"}
"""Options of extractive answers."""


class AnsweringTree(StoredTree):
    """A stored tree with engines of LlamaIndex, answers and comparisons of answers.

    See `StoredTree` for the parameters.
    """

    def as_query_engine(
        self,
        *,
        llm: "LLM | None" = None,
        response_mode: str | None = None,
        level: Level | Sequence[Level] | None = None,
        synthesizer: dict[str, Any] | None = None,
        **options: Any,
    ) -> "ReadingOrderEngine":
        """Return a query engine that quotes extracts or uses a LlamaIndex response mode.

        Parameters
        ----------
        llm : LLM, optional
        response_mode : str, optional
            "extractive" (the default without an LLM) or one of LlamaIndex's modes, such as
            "tree_summarize" (the default with one), "compact" and "refine".
        level : int or str, or a sequence of them, optional
            Levels to search, by number or word; see `HierarchyRetriever`.
        synthesizer : dict, optional
            Options of the response synthesizer, such as templates, `streaming`, `answer_tokens`.
        **options
            Options of `as_retriever`, and those of LlamaIndex's query engines: templates,
            `streaming`, `use_async` and `output_cls`. With `text_qa_template` or
            `refine_template`, the mode is by default "compact", which uses them.

        Raises
        ------
        InputError
            If the options cannot be combined.
        """
        from hierindex.respond.engine import query_engine

        # Fails before the embedding model is loaded.
        mode, answering, retriever = separated(options, synthesizer or {}, response_mode, llm)
        for name in ("llm", "response_mode", "retriever", "embed_model"):
            if name in (synthesizer or {}):
                raise InputError(f"{name} is not a synthesizer option; remove it from synthesizer.")
        cut_of(self.table.snapshot(), levels_of(level))  # fails if the tree lacks one
        made = self.as_retriever(level=level, **retriever)
        return query_engine(made, self.embed_model, llm=llm, response_mode=mode, **answering)

    def as_chat_engine(
        self, *, llm: "LLM | None" = None, chat_mode: str = "condense_plus_context", **options: Any
    ) -> "BaseChatEngine":
        """Return a chat engine of LlamaIndex, which remembers the conversation.

        Answers in mode "condense_question" are those of `as_query_engine`, with citations in
        `response.sources[0].raw_output.metadata`. Those of the other modes cite nothing.

        Parameters
        ----------
        llm : LLM
            It is required; LlamaIndex's `Settings.llm` is ignored.
        chat_mode : {"condense_plus_context", "context", "condense_question"}
        **options
            Options of the chat engine, such as `memory`, `chat_history` and prompts, and those of
            `as_retriever`, or in mode "condense_question" of `as_query_engine`.

        Raises
        ------
        InputError
            If no LLM is given, or the options cannot be combined.
        """
        from hierindex.respond.chat import chat_engine

        return chat_engine(self.as_retriever, self.as_query_engine, llm, chat_mode, options)

    def ask(
        self,
        question: str,
        *,
        llm: "LLM | None" = None,
        response_mode: str | None = None,
        show: Callable[[str], object] | None = None,
        **options: Any,
    ) -> Answer:
        """Ask a question, with the options of `as_query_engine`.

        Parameters
        ----------
        question : str
        llm : LLM, optional
        response_mode : str, optional
        show : callable, optional
            Called with each piece of the answer's text, which is streamed in modes that can.
        **options
            As in `as_query_engine`.

        Returns
        -------
        Answer
            The answer with its sources, usage and timings.
        """
        mode, llamas = choose_mode(response_mode, llm), SYNTHESIZER | POSTPROCESSORS
        given = options.get("synthesizer") or {}
        if mode == EXTRACTIVE and not any(map(options.get, llamas)) and given.keys() <= EXTRACTS:
            for name in SYNTHESIZER:  # none of them is on
                options.pop(name, None)
            answer = self._quote(question, **options)
            if show is not None:
                show(answer.answer)
            return answer
        return self._ask_engine(question, llm, response_mode, show, options)

    @on_newest
    def _quote(
        self,
        question: str,
        *,
        level: Level | Sequence[Level] | None = None,
        synthesizer: dict[str, Any] | None = None,
        **options: Any,
    ) -> Answer:
        cut_of(self.table.snapshot(), levels_of(level))  # fails if the tree lacks one
        retrieval = self.retrieval(level=level, **options)
        return Extractive(self._model, **synthesizer or {}).answer(retrieval, question)

    def _ask_engine(
        self,
        question: str,
        llm: "LLM | None",
        response_mode: str | None,
        show: Callable[[str], object] | None,
        options: dict[str, Any],
    ) -> Answer:
        from hierindex.models.llm import served
        from hierindex.respond.engine import can_stream
        from hierindex.respond.engine_answer import answered, asked

        calls, mode = Calls(), choose_mode(response_mode, llm)
        model = llm if mode in NEED_LLM else None
        if show is not None and can_stream(mode):
            options["synthesizer"] = {"streaming": True} | (options.get("synthesizer") or {})

        def answer() -> Answer:
            engine = self.as_query_engine(
                llm=served(model, calls) if model else llm, response_mode=response_mode, **options
            )
            found = asked(question, engine.retriever, self.embed_model)
            return answered(found, engine, model, calls, show)

        return answer() if show else on_newest(answer)()

    @on_newest
    def compare(
        self,
        question: str,
        *,
        llm: "LLM | None" = None,
        response_modes: Sequence[str] | None = None,
        synthesizer: dict[str, Any] | None = None,
        **retriever: Any,
    ) -> "Comparison":
        """Answer a question in several response modes from the same retrieved nodes.

        Parameters
        ----------
        question : str
        llm : LLM, optional
        response_modes : sequence of str, optional
            By default all modes that answer; only "extractive" without an LLM.
        synthesizer : dict, optional
            Options of the response synthesizers; each mode takes those that it has.
        **retriever
            Options of `HierarchyRetriever`.

        Raises
        ------
        InputError
            If a mode does not exist, or needs an LLM and none is given.
        """
        from hierindex.respond.compare import compare

        for mode in response_modes or ():
            choose_mode(mode, llm)
        return compare(
            question,
            self.as_retriever(**retriever),
            self.embed_model,
            llm=llm,
            response_modes=response_modes,
            synthesizer=synthesizer,
        )


def separated(
    options: Mapping[str, Any],
    synthesizer: Mapping[str, Any],
    response_mode: str | None,
    llm: "LLM | None",
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the response mode, the options of its synthesizer, and those of the retriever.

    As in LlamaIndex, templates, `use_async` and `verbose` are ignored by modes without them.

    Parameters
    ----------
    options : mapping
        Options of the retriever, and those of the synthesizer that LlamaIndex takes directly.
    synthesizer : mapping
        Options of the synthesizer.
    response_mode : str, optional
        By default "compact" if one of its templates is given directly, else as in `choose_mode`.
    llm : LLM, optional

    Raises
    ------
    InputError
        If an option is given twice, or the mode needs an LLM and none is given.
    """
    from hierindex.respond.engine import SYNTHESIZERS, options_of

    direct = {name: options[name] for name in options if name in SYNTHESIZER and options[name]}
    for name in direct.keys() & synthesizer:
        raise InputError(f"{name} is given directly and in synthesizer; pass it once.")
    if response_mode is None and direct.keys() & ANSWERING:
        response_mode = COMPACT
    mode = choose_mode(response_mode, llm)
    ignored = IGNORED - {*options_of(SYNTHESIZERS[mode])}
    taken = {name: option for name, option in direct.items() if name not in ignored}
    retriever = {name: option for name, option in options.items() if name not in SYNTHESIZER}
    return mode, {**synthesizer, **taken}, retriever
