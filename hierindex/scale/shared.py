"""What the processes of a build share: the index's cache and the language model.

One process on the machine that builds, an actor of Ray, owns both. So what a worker paid for is
kept as it comes, and the limits of requests and tokens hold for all workers together.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, cast

from hierindex.cache import Cache, Entry, Texts, open_cache
from hierindex.jobs.engine import PartGrower
from hierindex.scale.cluster import result_of
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.rewrites import Rewrite
from hierindex.summarize.summary import Resources

LLM = "llm"  # the concurrency group of what asks the language model


class Shared:
    """The actor that owns the cache of an index, and asks the language model.

    Parameters
    ----------
    uri : str
        Of the index.
    """

    def __init__(self, uri: str) -> None:
        self._opened = open_cache(uri)
        self._cache = self._opened.__enter__()
        self._steps: dict[str, tuple[Any, ...]] = {}  # by stage

    def recall(self, keys: Sequence[str]) -> dict[str, bytes]:
        """See `Cache.recall`."""
        return self._cache.recall(keys)

    def keep(self, entries: Sequence[Entry], is_costly: bool) -> None:
        """See `Cache.keep`."""
        self._cache.keep(entries, is_costly=is_costly)

    def mark(self, keys: Sequence[str], of: int) -> None:
        """See `Cache.mark`."""
        self._cache.mark(keys, of)

    def begin(self, rewriter: LLMRewriter) -> None:
        """Set the language model; the usage and the deadline of a build begin."""
        self._rewriter = rewriter
        self._resources = Resources(completions=Texts(self._cache), progress=self._note)

    def rewrite(self, texts: Sequence[str], max_tokens: int) -> list[Rewrite]:
        """Rewrite texts by the language model, after those of earlier calls."""
        return self._rewriter.rewrite(texts, max_tokens=max_tokens, resources=self._resources)

    def correct(self, claims: Sequence[tuple[str, str, Sequence[str]]]) -> list[Rewrite]:
        """Have the language model correct sentences, each given with its fault and its sources."""
        return self._rewriter.correct(claims, self._resources)

    def _note(self, stage: str, done: int, total: int, cost: str = "", /) -> None:
        self._steps = {**self._steps, stage: (done, total, cost)}

    def steps(self) -> dict[str, tuple[Any, ...]]:
        """Return the last step of each stage since the last call; see `Progress`."""
        steps, self._steps = self._steps, {}
        return steps

    def close(self) -> None:
        """Close the cache."""
        self._opened.__exit__(None, None, None)


class SharedCache(Cache):
    """A cache that the actor owns, for any process of the cluster."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def recall(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values under these keys, of those that have one."""
        return cast(dict[str, bytes], result_of(self._actor.recall.remote(keys)))

    def keep(self, entries: Iterable[Entry], *, is_costly: bool = False) -> None:
        """Store entries."""
        result_of(self._actor.keep.remote([*entries], is_costly))

    def mark(self, keys: Iterable[str], of: int) -> None:
        """Set what the values under these keys are of."""
        result_of(self._actor.mark.remote([*keys], of))


class SharedRewriter:
    """A rewriter whose texts are rewritten where the actor runs; see `Rewriter`.

    Parameters
    ----------
    rewriter : LLMRewriter
        Of the actor.
    actor : Shared
    result_of : callable
        Waits for the result of a reference.
    """

    def __init__(
        self, rewriter: LLMRewriter, actor: Any, result_of: Callable[[Any], Any] = result_of
    ) -> None:
        self.name: str = rewriter.name
        self._described = rewriter.to_dict()
        self._actor = actor
        self._result_of = result_of

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine a rewrite."""
        return self._described

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """Return one rewrite for each text, in order."""
        return self._asked(self._actor.rewrite, texts, max_tokens)

    def correct(
        self, claims: Sequence[tuple[str, str, Sequence[str]]], resources: Resources
    ) -> list[Rewrite]:
        """Return a correction of each sentence; see `LLMRewriter.correct`."""
        return self._asked(self._actor.correct, claims)

    def _asked(self, method: Any, *arguments: Any) -> list[Rewrite]:
        called = method.options(concurrency_group=LLM).remote(*arguments)
        return cast(list[Rewrite], self._result_of(called))


def language_model(grower: PartGrower) -> LLMRewriter | None:
    """Return what asks the language model of a grower; None if it has none."""
    rewriter = getattr(grower.hierarchy._summarizer, "rewriter", None)
    return rewriter if isinstance(rewriter, LLMRewriter) else None


def asking(grower: PartGrower, rewriter: SharedRewriter) -> PartGrower:
    """Return a grower whose texts another rewriter rewrites."""
    hierarchy = grower.hierarchy.model_copy()
    hierarchy._summarizer = copy(hierarchy._summarizer)
    vars(hierarchy._summarizer)["rewriter"] = rewriter
    return replace(grower, hierarchy=hierarchy)
