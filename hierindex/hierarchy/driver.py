"""The two drivers of a tree's growth: they do the models' work that it asks for."""

import asyncio
from dataclasses import dataclass
from typing import Any, cast

from hierindex.cache.vectors import VectorCache
from hierindex.embed.embedder import Embedder
from hierindex.hierarchy.growth import Embed, Grown, Growth, Work
from hierindex.progress import Progress
from hierindex.summarize.summary import Resources, Summarizer


@dataclass(frozen=True)
class Models:
    """Who does the work, and with what: a summariser with its resources, a memory of vectors."""

    embedder: Embedder
    summarizer: Summarizer
    resources: Resources
    memory: VectorCache | None = None


def drive(growth: Growth, models: Models, progress: Progress) -> Grown:
    """The tree that a growth ends with."""
    work = _next(growth, None)
    while not isinstance(work, Grown):
        told = models.resources.progress = _named(work, progress)
        if isinstance(work, Embed):
            answer: Any = models.embedder.embed(work.texts, progress=told, memory=models.memory)
        else:
            answer = models.summarizer.summarize(work.groups, work.budget, models.resources)
        work = _next(growth, answer)
    return work


async def adrive(growth: Growth, models: Models, progress: Progress) -> Grown:
    """As `drive`, without blocking the event loop."""
    work = await asyncio.to_thread(_next, growth, None)
    while not isinstance(work, Grown):
        told = models.resources.progress = _named(work, progress)
        if isinstance(work, Embed):
            answer: Any = await models.embedder.aembed(
                work.texts, progress=told, memory=models.memory
            )
        else:
            answer = await models.summarizer.asummarize(work.groups, work.budget, models.resources)
        work = await asyncio.to_thread(_next, growth, answer)
    return work


def _named(work: Work, progress: Progress) -> Progress:
    """Progress under the name of the stage that the work belongs to."""
    return lambda _, done, total, *cost: progress(work.stage, done, total, *cost)


def _next(growth: Growth, answer: Any) -> Work | Grown:
    """The next request, or the tree: a StopIteration cannot leave a thread."""
    try:
        return growth.send(answer)
    except StopIteration as end:
        return cast(Grown, end.value)
