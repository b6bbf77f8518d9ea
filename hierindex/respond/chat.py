"""Conversations: LlamaIndex's chat engines, and follow-up questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, NamedTuple

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.generic_utils import messages_to_history_str
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
)
from llama_index.core.chat_engine.condense_question import DEFAULT_PROMPT
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms import LLM, ChatMessage
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer

from hierindex.errors import InputError
from hierindex.models.adapters import LLMLike, as_llm, with_retries
from hierindex.models.record import Calls
from hierindex.respond.answer import Answer

CONDENSE_QUESTION = "condense_question"
CHAT_ENGINES: dict[str, Any] = {
    "condense_plus_context": CondensePlusContextChatEngine,
    "best": CondensePlusContextChatEngine,  # as in LlamaIndex
    "context": ContextChatEngine,
    CONDENSE_QUESTION: CondenseQuestionChatEngine,
}
NOT_TAKEN = frozenset(
    {"retriever", "query_engine", "llm", "node_postprocessors", "memory_cls", "kwargs"}
)
"""Parameters of LlamaIndex's `from_defaults` that are passed separately, or to the retriever."""
HISTORY = 0.25  # of the model's window; passages and the answer need the rest


def chat_engine(
    retriever: Callable[..., BaseRetriever],
    query_engine: Callable[..., BaseQueryEngine],
    llm: LLMLike | None,
    chat_mode: str,
    options: Mapping[str, Any],
) -> BaseChatEngine:
    """Return a LlamaIndex chat engine over a retriever or a query engine.

    Parameters
    ----------
    retriever, query_engine : callable
        Make the retriever, or in mode "condense_question" the query engine, from the options that
        are not the chat engine's.
    llm : LLM or callable
        A copy with retries is used, see `with_retries`.
    chat_mode : {"condense_plus_context", "best", "context", "condense_question"}
        Or LlamaIndex's `ChatMode` of this name.
    options : mapping
        See `HierarchicalIndex.as_chat_engine`.

    Raises
    ------
    InputError
        If there is no LLM, or the mode does not exist.
    """
    mode = str(getattr(chat_mode, "value", chat_mode))
    if mode not in CHAT_ENGINES:
        raise InputError(f"chat_mode must be one of {', '.join(CHAT_ENGINES)}, got {mode!r}.")
    given_llm = as_llm(llm)
    if given_llm is None:
        raise InputError("A chat engine needs an LLM; pass llm=, or ask each question with ask().")
    kind, llm = CHAT_ENGINES[mode], with_retries(given_llm)
    known = signature(kind.from_defaults).parameters.keys() - NOT_TAKEN
    given = {name: option for name, option in options.items() if name in known}
    others = {name: option for name, option in options.items() if name not in known}
    history = given.pop("chat_history", None)
    given["memory"] = given.get("memory") or memory_for(llm, history)
    if mode == CONDENSE_QUESTION:
        given["query_engine"] = query_engine(llm=llm, **others)
    else:
        given["retriever"] = retriever(**others)
    engine: BaseChatEngine = kind.from_defaults(llm=llm, **given)
    return engine


def memory_for(llm: LLM, history: Sequence[ChatMessage] | None = None) -> BaseMemory:
    """Return a memory of the last messages, limited to a quarter of the model's window.

    LlamaIndex's `Memory`, which its chat engines use by default, keeps messages in an SQLite
    database that it never closes, and lets them fill the window.
    """
    limit = max(1, int(HISTORY * llm.metadata.context_window))
    return ChatMemoryBuffer.from_defaults(chat_history=[*(history or ())], token_limit=limit)


class Turn(NamedTuple):
    """A question as asked and as searched, with its answer."""

    question: str
    searched: str
    answer: Answer


class Conversation:
    """A series of questions to an index; with an LLM, they may refer to earlier ones.

    The LLM rewrites a follow-up question, with the prompt of LlamaIndex's
    `CondenseQuestionChatEngine`, so that it can be understood alone. Without an LLM, questions are
    searched for unchanged. If the answer to a question fails, the question is not remembered.

    Parameters
    ----------
    ask : callable
        `HierarchicalIndex.ask`.
    llm : LLM, optional
    """

    def __init__(self, ask: Callable[..., Answer], llm: LLM | None = None) -> None:
        self._ask, self._llm = ask, llm
        self._memory = None if llm is None else memory_for(llm)

    def ask(self, question: str, **options: Any) -> Turn:
        """Ask the next question, with the options of `HierarchicalIndex.ask` except `llm`.

        The usage and the calls of the answer include those for rewriting the question.
        """
        if self._llm is None or self._memory is None:
            return Turn(question, question, self._ask(question, **options))
        calls = Calls()
        llm, searched = with_retries(self._llm, calls), question
        if history := self._memory.get(input=question):
            said = messages_to_history_str(history)
            rewritten = llm.predict(DEFAULT_PROMPT, question=question, chat_history=said)
            searched = rewritten.strip() or question
        answer = self._ask(searched, llm=llm, **options)
        self._memory.put(ChatMessage(role="user", content=question))
        self._memory.put(ChatMessage(role="assistant", content=answer.answer))
        return Turn(question, searched, replace(answer, usage=calls.usage, calls=calls.made))
