"""Connecting to a Ray cluster, and its errors as one-sentence messages."""

import logging
import os
import platform
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from hierindex.errors import HierindexError, InputError

PATIENCE = 6.0  # seconds in which an address must answer


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Connect to a cluster for a `with` block, unless this process is already connected.

    Parameters
    ----------
    address : str or None
        `host:port` of the head node. If None, the cluster in `RAY_ADDRESS` or started by `ray
        start` on this machine is used. If there is none, a cluster on this machine is started for
        the block.

    Raises
    ------
    InputError
        If Ray is not installed, or there is no cluster at the address.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise InputError("The engine ray needs `pip install 'hierindex[ray]'`.") from error
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to a server of Ray's
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray will do, and says
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    is_new = not ray.is_initialized()
    try:
        if address not in (None, "auto", "local"):  # Ray itself waits for minutes
            asking = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address"]
            subprocess.run([*asking, address], check=True, timeout=PATIENCE, capture_output=True)
        if is_new:
            ray.init(address, include_dashboard=None if address else False, **options)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        raise InputError(
            f"There is no Ray cluster at {address!r}; start one with `ray start --head`, and name "
            "the address that it prints."
            if address
            else "Ray cannot start on this machine; `ray start --head` says why."
        ) from error
    try:
        yield
    finally:
        if is_new:
            ray.shutdown()


def result_of(reference: Any) -> Any:
    """Return the result of a Ray reference.

    Raises
    ------
    BaseException
        The exception of the task.
    HierindexError
        If the cluster lost the result.
    """
    import ray
    from ray.exceptions import RayError

    try:
        return ray.get(reference)
    except RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, BaseException) and not isinstance(cause, RayError):
            raise cause from None
        reason = str(cause or error).partition("\n")[0].rstrip(".")
        raise HierindexError(
            f"The Ray cluster failed: {reason}. Build again; what was finished is reused."
        ) from error


def in_order(references: Iterable[Any], at_once: int) -> Iterator[Any]:
    """Yield the results of calls in order, with at most `at_once` calls running.

    `references` starts a call with each reference that it yields.
    """
    waiting = deque[Any]()
    for reference in references:
        waiting.append(reference)
        if len(waiting) == at_once:
            yield result_of(waiting.popleft())
    while waiting:
        yield result_of(waiting.popleft())


def check_version(expected: str) -> None:
    """Raise InputError if this machine has another version than the one that started the build."""
    if (own := version("hierindex")) != expected:
        raise InputError(
            f"The build was started by hierindex {expected}, but a worker on {platform.node()} "
            f"has {own}; install the same on all machines."
        )
