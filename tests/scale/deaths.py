"""Processes and nodes that die in the middle of a build on a cluster."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from hierindex import HierarchicalIndex
from hierindex.hierarchy.hierarchy import Hierarchy
from hierindex.scale.engine import RayEngine

MOMENTS = "grow documents", "summarize level"  # starts of stages; the second is above documents


class AtMoments:
    """A progress callback that calls a function once at each moment."""

    def __init__(self, call: Callable[[str], object], moments: tuple[str, ...] = MOMENTS) -> None:
        self.left = [*moments]
        self._call = call

    def __call__(self, stage: str, done: int, *rest: Any) -> None:
        for moment in self.left:
            if stage.startswith(moment) and done:
                self.left.remove(moment)
                self._call(moment)
                return


def kill_workers(moment: str) -> None:
    """Kill a worker, or all if only one of them is at work."""
    children = psutil.Process().children(recursive=True)
    workers = [each for each in children if each.name().startswith("ray::Worker")]
    for each in workers[:1] if moment == MOMENTS[0] else workers:
        each.kill()


def killed_driver(kind: type[Hierarchy], sources: Path, uri: Path, address: str) -> None:
    """Build on a cluster until some documents have grown, and die."""
    progress = AtMoments(lambda _: os.kill(os.getpid(), signal.SIGKILL))
    engine = RayEngine(address, workers=2)
    HierarchicalIndex.build(sources, uri, hierarchy=kind(progress=progress), engine=engine)
