"""Comparison of response modes on one question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hierindex.errors import HierindexError, ModelError
from hierindex.models.adapters import LLMLike, as_llm, with_retries
from hierindex.models.failures import refuses_all
from hierindex.models.record import Calls
from hierindex.respond.answer import Answer, Source, sources_of
from hierindex.respond.asking import EXTRACTIVE, MODES, NEED_LLM, WITHOUT_LLM, choose_mode
from hierindex.respond.engine import answered, asked, query_engine
from hierindex.retrieve.retriever import HierarchyRetriever, retrieved_of
from hierindex.store.generations import on_newest

IN_COMMON = ("sources", "why")  # the same in all modes
ANSWERING = [mode for mode in MODES if mode not in WITHOUT_LLM]


@dataclass(frozen=True)
class Attempt:
    """The answer of one response mode, or the error that it failed with."""

    mode: str
    answer: Answer | None
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain values, except fields that are the same in all modes."""
        if self.answer is None:
            return {"mode": self.mode, "error": self.error}
        data = self.answer.to_json()
        data["seconds"] = data["seconds"]["respond"]
        return {"mode": self.mode, **{k: v for k, v in data.items() if k not in IN_COMMON}}


@dataclass(frozen=True)
class Comparison:
    """Answers to one question in several response modes, from the same nodes.

    Attributes
    ----------
    question : str
    sources : list of Source
        The retrieved nodes.
    attempts : list of Attempt
        For each mode, its `answer`, or the message of its `error`.
    seconds : dict of str to float
        Of the retrieval, by stage.
    why : str, optional
        As in `Answer`.
    """

    question: str
    sources: list[Source]
    attempts: list[Attempt]
    seconds: dict[str, float]
    why: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as dictionaries, lists and numbers, without None."""
        return {
            "question": self.question,
            **({} if self.why is None else {"why": self.why}),
            "sources": [source.to_json() for source in self.sources],
            "modes": [attempt.to_json() for attempt in self.attempts],
            "seconds": self.seconds,
        }


@on_newest
def compare(
    question: str,
    as_retriever: Callable[[], HierarchyRetriever],
    *,
    llm: LLMLike | None = None,
    response_modes: Sequence[str] | None = None,
    synthesizer: Mapping[str, Any] | None = None,
) -> Comparison:
    """Answer a question in several response modes.

    Parameters
    ----------
    question : str
    as_retriever : callable
        Called once, so every mode gets the same nodes.
    llm : LLM or callable, optional
    response_modes : sequence of str, optional
        By default all modes that answer; without an LLM, "extractive" only.
    synthesizer : dict, optional
        As in `HierarchicalIndex.as_query_engine`; each mode takes the options that it supports.

    Raises
    ------
    InputError
        If a mode is unknown, an LLM is needed and missing, or an option is supported by no mode.
    ModelError
        If the LLM cannot be used. Any other failure is recorded in its mode's attempt.
    """
    llm = as_llm(llm)
    default = [EXTRACTIVE] if llm is None else ANSWERING
    modes = dict.fromkeys(choose_mode(mode, llm) for mode in response_modes or default)
    retriever = as_retriever()
    found = asked(question, retriever)
    shared, attempts = None if llm is None else with_retries(llm), list[Attempt]()
    for mode in modes:
        calls = Calls()
        engine = query_engine(
            retriever,
            retriever.embed_model,
            llm=shared and with_retries(shared, calls),
            response_mode=mode,
            **(synthesizer or {}),
        )
        try:
            model = llm if mode in NEED_LLM else None
            attempts.append(Attempt(mode, answered(found, engine, model, calls)))
        except HierindexError as error:
            if isinstance(error, ModelError) and refuses_all(error.__cause__):
                raise  # all modes would fail
            attempts.append(Attempt(mode, None, str(error)))
    retrieved = retrieved_of(found.question, found.nodes)
    sources = sources_of(retrieved, found.scores)
    return Comparison(question, sources, attempts, found.seconds, retrieved.why)
