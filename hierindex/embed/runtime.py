"""The runtime of models on a CPU, OpenVINO, and the precision in which a processor is fastest."""

import atexit
import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, Protocol
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from openvino import CompiledModel, Core

Precision = Literal["bfloat16", "float32"]
HINTS = {"bfloat16": "bf16", "float32": "f32"}
_reading = Lock()


@cache
def openvino() -> "Core":
    """Return OpenVINO's interface; the package that reports its import to Google is not loaded."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]  # not importable
    from openvino import Core, Tensor

    with _reading:  # two threads that are the first to read a tensor wait for each other for ever
        assert Tensor(np.zeros(1)).data.shape == (1,)
    return Core()


@cache
def fastest_precision() -> Precision:
    """Return bfloat16 if the processor multiplies such matrices in hardware, else float32."""
    can = openvino().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return "bfloat16" if "BF16" in can else "float32"


class UsesGraphs(Protocol):
    """Has compiled graphs."""

    def release(self) -> None:
        """Give them up."""
        ...


_users: WeakSet[UsesGraphs] = WeakSet()


def release_at_exit(user: UsesGraphs) -> None:
    """Release graphs before the interpreter ends, as their threads may abort the process later."""
    _users.add(user)


@atexit.register
def _release() -> None:
    for user in _users:
        user.release()
    openvino.cache_clear()


def compiled(graph: Path, precision: Precision) -> "CompiledModel":
    """Return a graph that runs on as many texts at once as there are cores, each on one thread.

    Several threads may add numbers in another order, and the result would depend on their number.
    """
    n_cores = _n_cores()
    settings = {
        "INFERENCE_PRECISION_HINT": HINTS[precision],
        "INFERENCE_NUM_THREADS": n_cores,
        "NUM_STREAMS": n_cores,
        "ENABLE_CPU_PINNING": False,  # two processes would share the first cores
    }
    return openvino().compile_model(graph, "CPU", settings)


def outputs(
    graph: "CompiledModel", inputs: Iterable[Mapping[str, NDArray[np.int64]]]
) -> list[list[float]]:
    """Return the first row of a graph's output for each of the inputs, which run side by side."""
    from openvino import AsyncInferQueue

    rows: dict[int, list[float]] = {}

    def keep(run: Any, i: int) -> None:
        rows[i] = run.get_output_tensor().data[0].tolist()

    runs = AsyncInferQueue(graph)
    runs.set_callback(keep)
    for i, each in enumerate(inputs):
        runs.start_async(each, i)
    runs.wait_all()
    return [rows[i] for i in range(len(rows))]


def _n_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
