"""What the processes of a build share: the index's cache, the language model and the progress.

One process on the machine that builds, an actor of Ray, owns all of them. So what a worker paid for
is kept as it comes, and the limits of requests and tokens hold for all workers together.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

from hierindex.cache.cache import Cache, Entry, open_cache
from hierindex.cache.values import Texts
from hierindex.errors import SourceError
from hierindex.models.llm import LanguageModel
from hierindex.progress import Progress
from hierindex.scale.cluster import A_MOMENT, result_of
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Resources
from hierindex.summarize.two_stage import Rewrite
from hierindex.threads import in_daemon_thread


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

    async def recall(self, keys: Sequence[str]) -> dict[str, bytes]:
        """See `Cache.recall`."""
        return self._cache.recall(keys)

    async def keep(self, entries: Sequence[Entry], is_costly: bool) -> None:
        """See `Cache.keep`."""
        self._cache.keep(entries, is_costly=is_costly)

    async def mark(self, keys: Sequence[str], of: int) -> None:
        """See `Cache.mark`."""
        self._cache.mark(keys, of)

    async def begin(self, rewriter: LLMRewriter) -> None:
        """Set the language model, and the limits of all of its requests."""
        self._rewriter = _Bounded(rewriter)
        self._resources = Resources(completions=Texts(self._cache), progress=self._note)

    async def rewrite(self, texts: Sequence[str], max_tokens: int) -> list[Rewrite]:
        """Rewrite texts by the language model."""
        options: dict[str, Any] = {"max_tokens": max_tokens, "resources": self._resources}
        return await in_daemon_thread(partial(self._rewriter.rewrite, texts, **options))

    async def step(self, stage: str, *step: Any) -> None:
        """Note the last step of a stage; see `Progress`."""
        self._note(stage, *step)

    def _note(self, stage: str, *step: Any) -> None:
        self._steps[stage] = step

    async def steps(self) -> dict[str, tuple[Any, ...]]:
        """Return the steps that were noted since the last call, by stage."""
        steps, self._steps = self._steps, {}
        return steps

    async def close(self, error: SourceError | None) -> None:
        """Close the cache; a new one is removed if there is nothing to index."""
        with suppress(SourceError):
            self._opened.__exit__(type(error) if error else None, error, None)


class _Bounded(LLMRewriter):
    """A rewriter whose limits hold for all of its rewrites together, side by side."""

    def __init__(self, rewriter: LLMRewriter) -> None:
        vars(self).update(vars(rewriter))
        self._model: LanguageModel | None = None

    def language_model(self, max_tokens: int, resources: Resources) -> LanguageModel:
        self._model = self._model or super().language_model(max_tokens, resources)
        return self._model


class SharedRewriter:
    """A rewriter whose texts are rewritten where the actor runs; see `Rewriter`."""

    def __init__(self, rewriter: LLMRewriter, actor: Any) -> None:
        self.name = rewriter.name
        self._described = rewriter.to_dict()
        self._actor = actor

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine a rewrite."""
        return self._described

    def rewrite(
        self, texts: Sequence[str], *, max_tokens: int, resources: Resources | None = None
    ) -> list[Rewrite]:
        """Return one rewrite for each text, in order."""
        found = result_of(self._actor.rewrite.remote(texts, max_tokens))
        return cast(list[Rewrite], found)


class SharedProgress:
    """Reports steps to the actor, for `watched`; see `Progress`."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __call__(self, stage: str, done: int, total: int, cost: str = "", /) -> None:
        """Report progress."""
        result_of(self._actor.step.remote(stage, done, total, *([cost] if cost else [])))


def watched(reference: Any, actor: Any, progress: Progress) -> Any:
    """Return what a reference stands for; report the steps that the actor is told meanwhile."""
    import ray

    waiting = [reference]
    while waiting:
        _, waiting = ray.wait(waiting, timeout=A_MOMENT)
        report_steps(actor, progress)
    return result_of(reference)


def report_steps(actor: Any, progress: Progress) -> None:
    """Report the steps that the actor was told since the last call."""
    for stage, step in result_of(actor.steps.remote()).items():
        progress(stage, *step)


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
