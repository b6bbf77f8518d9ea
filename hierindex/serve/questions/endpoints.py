"""What the commands `query`, `outline` and `show` ask, in their own process or of a server.

This imports nothing that takes long, as a command imports it that only asks a server.
"""

import os
from collections.abc import Callable
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, model_validator

from hierindex import __version__
from hierindex.serve.endpoint import Endpoint
from hierindex.settings import Retrieval, Settings
from hierindex.text.characters import without_surrogates

if TYPE_CHECKING:
    from llama_index.core.llms import LLM

    from hierindex.respond.answering_tree import AnsweringTree
    from hierindex.store.snapshot import Snapshot

MOST_TOKENS = 100_000
AT_ONCE = 4  # more threads would only wait for each other
MIN_SCORE: float = Settings.model_fields["min_score"].default


class Question(Endpoint):
    """A question about an index."""

    method = "POST"
    alone = BoundedSemaphore(AT_ONCE)

    @model_validator(mode="before")
    @classmethod
    def _as_utf8(cls, given: Any) -> Any:
        return _in_utf8(given)


class Retrieve(Question, Retrieval):
    """The nodes that are found for a question."""

    most: ClassVar = {"top_k": 1000, "token_budget": MOST_TOKENS, "beam": 1000, "n_documents": 1000}
    question: str
    where: list[str] = Field(default=[])

    @classmethod
    def answers(cls) -> Any:
        """Return the type of the nodes."""
        from hierindex.serve.questions.answers import Found

        return Found

    def answer_from(self, snapshot: "Snapshot", tree: "AnsweringTree") -> dict[str, Any]:
        """Return the nodes as sources of an answer, but with the scores of the search alone."""
        from hierindex.respond.answer import sources_of

        retrieval = tree.at(snapshot).retrieval(**self.retrieval(snapshot))
        retrieved = retrieval.find(retrieval.embedded(self.question))
        nodes = [source.to_json() for source in sources_of(retrieved, {})]
        return {"nodes": [{key: node[key] for key in node if key != "raw_score"} for node in nodes]}

    def retrieval(self, snapshot: "Snapshot") -> dict[str, Any]:
        """Return the options of `HierarchyRetriever`."""
        from hierindex.retrieve.conditions import known_filters

        options = self.model_dump(include={*Retrieval.model_fields})
        return {**options, "filters": known_filters(self.where, snapshot)}


class Query(Retrieve):
    """An answer with its sources."""

    response_mode: str | None = None
    min_score: float = Field(default=MIN_SCORE, ge=0, le=1)

    @classmethod
    def answers(cls) -> Any:
        """Return the type of the answer."""
        from hierindex.respond.answer import Answer

        return Answer

    def answer_from(self, snapshot: "Snapshot", tree: "AnsweringTree") -> dict[str, Any]:
        """Return the answer of a mode that needs no language model."""
        options = self.options(snapshot)
        return tree.at(snapshot).ask(self.question, **options).to_json()

    def options(
        self,
        snapshot: "Snapshot",
        llm: "LLM | None" = None,
        before: Callable[[int, int, int], None] | None = None,
    ) -> dict[str, Any]:
        """Return the options of `AnsweringTree.ask`; see `BoundedTreeSummarize` for `before`."""
        from hierindex.respond.modes import EXTRACTIVE, choose_mode

        mode = choose_mode(self.response_mode, llm)
        answering = {"min_score": self.min_score}
        if mode != EXTRACTIVE:
            from hierindex.respond.engine import taken_by

            answering = taken_by(mode, {**answering, "before": before})
        return {
            "llm": llm,
            "response_mode": mode,
            "synthesizer": answering,
            **self.retrieval(snapshot),
        }


class Outline(Question):
    """The nodes that summarise an index, or a part of it, best within a token budget."""

    most: ClassVar = {"budget": MOST_TOKENS}
    of: list[str] = Field(default=[])
    budget: int = 1000
    question: str | None = None
    where: list[str] = Field(default=[])

    @classmethod
    def answers(cls) -> Any:
        """Return the type of the nodes and their tokens."""
        from hierindex.serve.questions.answers import Outlined

        return Outlined

    def answer_from(self, snapshot: "Snapshot", tree: "AnsweringTree") -> dict[str, Any]:
        """Return the nodes in reading order, and the sum of their tokens."""
        from hierindex.respond.answer import outline_json
        from hierindex.retrieve.conditions import known_filters

        filters = known_filters(self.where, snapshot)
        asked = tree.at(snapshot)
        return outline_json(asked.outlined(self.budget, self.question, self.of or None, filters))


class Show(Question):
    """A node by its id or a prefix of it, with `source` also the passages that it cites."""

    most: ClassVar = {"context": 100_000}
    node: str
    source: bool = False
    context: int = 300

    @classmethod
    def answers(cls) -> Any:
        """Return the type of the node."""
        from hierindex.serve.questions.answers import Shown

        return Shown

    def answer_from(self, snapshot: "Snapshot", tree: "AnsweringTree") -> dict[str, Any]:
        """Return the node's text, place in the tree and citations."""
        asked = tree.at(snapshot)
        shown = asked.describe(self.node)
        if self.source:
            passages = asked.sources(shown["id"], context=self.context)
            shown["passages"] = [passage.to_json() for passage in passages]
        return shown


class Health(Endpoint):
    """Whether the index can be read."""

    @classmethod
    def answers(cls) -> Any:
        """Return the type of the answer."""
        from hierindex.serve.questions.answers import Healthy

        return Healthy

    def answer_from(self, snapshot: "Snapshot", tree: "AnsweringTree") -> dict[str, Any]:
        """Return the version of hierindex, the number of the generation and the process's id."""
        generation = snapshot.generation
        return {"version": __version__, "generation": generation, "process": os.getpid()}


def _in_utf8(value: Any) -> Any:
    """Replace lone surrogates by question marks, as a shell passes on any byte."""
    match value:
        case str():
            return without_surrogates(value)
        case list():
            return [*map(_in_utf8, value)]
        case dict():
            return {key: _in_utf8(each) for key, each in value.items()}
    return value


KINDS: tuple[type[Endpoint], ...] = (Query, Retrieve, Outline, Show, Health)
ENDPOINTS = {kind.__name__.lower(): kind for kind in KINDS}
