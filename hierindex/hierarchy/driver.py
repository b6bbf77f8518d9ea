"""Drivers, sync and async, that answer the model requests of a growing tree."""

import asyncio
from dataclasses import dataclass
from typing import Any, cast

from hierindex.cache.vectors import VectorCache
from hierindex.embed.embedder import Embedder
from hierindex.hierarchy.growth import Grown, Growth
from hierindex.hierarchy.recipe import Embed, Work
from hierindex.progress import Progress
from hierindex.summarize.summary import Resources, Summarizer


@dataclass(frozen=True)
class Models:
    """Models that answer the requests of a growth, with the vector cache they share."""

    embedder: Embedder
    summarizer: Summarizer
    resources: Resources
    memory: VectorCache | None


def drive(growth: Growth, models: Models, progress: Progress) -> Grown:
    """Run a growth to its end and return the tree."""
    work = _next(growth, None)
    while not isinstance(work, Grown):
        report = models.resources.progress = _named(work, progress)
        if isinstance(work, Embed):
            answer: Any = models.embedder.embed(work.texts, progress=report, memory=models.memory)
        else:
            answer = models.summarizer.summarize(work.groups, work.budget, models.resources)
        work = _next(growth, answer)
    return work


async def adrive(growth: Growth, models: Models, progress: Progress) -> Grown:
    """Run a growth like `drive`, without blocking the event loop."""
    work = await asyncio.to_thread(_next, growth, None)
    while not isinstance(work, Grown):
        report = models.resources.progress = _named(work, progress)
        if isinstance(work, Embed):
            answer: Any = await models.embedder.aembed(
                work.texts, progress=report, memory=models.memory
            )
        else:
            answer = await models.summarizer.asummarize(work.groups, work.budget, models.resources)
        work = await asyncio.to_thread(_next, growth, answer)
    return work


def _named(work: Work, progress: Progress) -> Progress:
    """Report progress under the stage name of the work."""
    return lambda _, done, total, *cost: progress(work.stage, done, total, *cost)


def _next(growth: Growth, answer: Any) -> Work | Grown:
    """Return the next request or the tree; a StopIteration cannot cross a thread boundary."""
    try:
        return growth.send(answer)
    except StopIteration as end:
        return cast(Grown, end.value)
