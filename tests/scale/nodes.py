"""Nodes of a Ray cluster, which are all on this machine."""

import os
import socket
import sys
from contextlib import ExitStack
from typing import Any

# Of agents for which Ray would else wait, but on a busy machine not long enough.
PORTS = (
    "dashboard_agent_listen_port",
    "metrics_agent_port",
    "metrics_export_port",
    "runtime_env_agent_port",
)


def environment() -> dict[str, str]:
    """Variables of all processes of a cluster."""
    return {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "PYTHONPATH": os.pathsep.join(sys.path),  # for the tests' own models
        "OMP_NUM_THREADS": "1",
        "LANCE_LOG": "error",
    }


def free_ports(n: int) -> list[int]:
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(n)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def add_node(cluster: Any, n_cpus: int) -> Any:
    """A new node of a cluster of `ray.cluster_utils`."""
    return cluster.add_node(
        num_cpus=n_cpus,
        object_store_memory=100_000_000,
        include_dashboard=False,
        **dict(zip(PORTS, free_ports(len(PORTS)), strict=True)),
    )
