"""The ways to retrieve that are compared, by name."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hierindex.core.arguments import require
from hierindex.errors import InputError, LevelError
from hierindex.evaluate.datasets import Question
from hierindex.index import HierarchicalIndex
from hierindex.retrieve.question import of_documents
from hierindex.store.filters import Filters

if TYPE_CHECKING:
    from llama_index.core.schema import BaseNode, QueryBundle


@dataclass(frozen=True)
class Asked:
    """A question, the index of its data set, and the question as LlamaIndex's retrievers take it.

    The `bundle` has the question's embedding.
    """

    question: Question
    index: HierarchicalIndex
    bundle: "QueryBundle"


Way = Callable[[Asked, int, int | None], Sequence["BaseNode"]]
"""A retrieval method: a function of a question, a sufficient number of nodes, and the token budget
(None for a ranking). It returns nodes, best first; nodes that exceed the budget are skipped.
"""


def retrieved(**options: Any) -> Way:
    """Return a retrieval method for `evaluate`: a `HierarchyRetriever` with these options.

    The method returns [] if no node fits the budget.

    Parameters
    ----------
    **options
        Options of `HierarchyRetriever`, except `top_k`, `token_budget` and `filters`.

    Returns
    -------
    callable
        To be passed in the mapping `ways` of `evaluate`.
    """

    def way(asked: Asked, top_k: int, budget: int | None) -> "Sequence[BaseNode]":
        within = asked.question.within
        filters = None if within is None else Filters((of_documents([within]),))
        retriever = asked.index.as_retriever(
            top_k=top_k, token_budget=budget, filters=filters, **options
        )
        try:
            return [found.node for found in retriever.retrieve(asked.bundle)]
        except InputError as error:
            if budget is None or isinstance(error, LevelError):
                raise
            return []

    return way


WAYS: dict[str, Way] = {
    "auto": retrieved(mode="auto"),
    "dense": retrieved(level=0, by="dense"),
    "text": retrieved(level=0, by="text"),
    "hybrid": retrieved(level=0, by="hybrid"),
    "collapsed": retrieved(mode="collapsed"),
}
"""The default, chunks by vectors, by words and by both, and all levels at once."""
LEVEL = re.compile(r"level-(\d+)")


def ways_of(ways: Sequence[str] | Mapping[str, Way] | None) -> dict[str, Way]:
    """Return ways by their names, those of `WAYS` if None; a mapping may have others.

    Raises
    ------
    InputError
        If there is no way of a name, or none at all.
    """
    chosen = WAYS if ways is None else ways
    require(len(chosen) > 0, "ways", "one way or more", chosen)
    if isinstance(chosen, Mapping):
        return dict(chosen)
    return {name: _named(name) for name in chosen}


def of_levels(index: HierarchicalIndex) -> dict[str, Way]:
    """Return the ways that search one level of summaries each."""
    levels = (each["level"] for each in index.info()["levels"])
    return {name: _named(name) for name in (f"level-{level}" for level in levels if level)}


def _named(name: str) -> Way:
    if name in WAYS:
        return WAYS[name]
    if found := LEVEL.fullmatch(name):
        return retrieved(mode="level", level=int(found[1]))
    raise InputError(f"There is no way {name!r}; there are {', '.join(WAYS)}, and level-N.")
