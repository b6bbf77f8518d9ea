"""Processes and nodes that die in the middle of a build on a cluster."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from indexes import Hierarchy
from scale.nodes import add_node, environment

from hierindex import HierarchicalIndex
from hierindex.scale import RayEngine

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


def killed_driver(make: Callable[..., Hierarchy], sources: Path, uri: Path, address: str) -> None:
    """Build on a cluster until some documents have grown, and die."""
    progress = AtMoments(lambda _: os.kill(os.getpid(), signal.SIGKILL))
    engine = RayEngine(address, workers=2)
    HierarchicalIndex.build(sources, uri, hierarchy=make(progress=progress), engine=engine)


def with_lost_nodes(
    make: Callable[..., Hierarchy], sources: Path, uri: Path, chunk_size: int
) -> None:
    """Build on a cluster of a head and a node that has all workers, and is lost at each moment.

    Another takes its place. What workers return is lost with their node, as if it were large.
    """
    os.environ |= {**environment(), "RAY_max_direct_call_object_size": "100"}
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    add_node(cluster, n_cpus=0)
    nodes = [add_node(cluster, n_cpus=1)]

    def replace_node(_: str) -> None:
        cluster.remove_node(nodes.pop(), allow_graceful=False)
        nodes.append(add_node(cluster, n_cpus=1))

    losses = AtMoments(replace_node)
    try:
        ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
        tree, engine = make(progress=losses), RayEngine(workers=2)
        HierarchicalIndex.build(sources, uri, hierarchy=tree, chunk_size=chunk_size, engine=engine)
        assert not losses.left
    finally:
        ray.shutdown()
        cluster.shutdown()
