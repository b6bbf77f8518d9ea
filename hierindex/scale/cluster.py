"""The connection to a Ray cluster, and its errors as sentences."""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, cast

import hierindex
from hierindex.core.identity import digest
from hierindex.errors import HierindexError, InputError

S = TypeVar("S")
T = TypeVar("T")

PATIENCE = 4.0  # seconds in which an address must answer, twice
A_MOMENT = 0.2  # seconds between looks at the progress
DEATHS = 3  # of a process that are put up with


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Connect to a cluster for a `with` block, unless this process is connected already.

    Parameters
    ----------
    address : str or None
        `host:port` of the head node. None stands for the cluster that `RAY_ADDRESS` or `ray start`
        names on this machine, or else for one of this machine alone that ends with the block.

    Raises
    ------
    InputError
        If Ray is not installed, there is no cluster at the address, or this process is connected
        to another one.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise InputError("The engine ray needs `pip install 'hierindex[ray]'`.") from error
    if address is not None:
        _check_answers(address)
    if ray.is_initialized():
        known = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", known):
            raise InputError(
                f"This process is connected to the Ray cluster at {known!r}, not to the one at "
                f"{address!r}; disconnect it with `ray.shutdown()`, or leave out the address."
            )
        yield
        return
    os.environ.setdefault("LANCE_LOG", "error")  # it warns of each file of a new table
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to a server of Ray's
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray will do, and says
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address, include_dashboard=None if address else False, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise _no_cluster(address) from error
    try:
        yield
    finally:
        ray.shutdown()


def result_of(reference: Any) -> Any:
    """Return what a reference of Ray stands for.

    Raises
    ------
    BaseException
        What the task raised.
    HierindexError
        If the cluster lost it.
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


def each_of(references: Iterable[Any]) -> list[Any]:
    """Return what references stand for, which are computed side by side."""
    return [result_of(reference) for reference in [*references]]


def task(function: Callable[..., Any], *arguments: Any, n_results: int = 1) -> Any:
    """Start a function in a process of the cluster; return the references to its results.

    If the process dies, another starts again.
    """
    remote = _remote_check().options(
        num_returns=n_results, scheduling_strategy="SPREAD", max_retries=DEATHS
    )
    return remote.remote(code_version(), function, *arguments)


def elsewhere(function: Callable[[], T]) -> T:
    """Return the result of a function that runs in a process of the cluster."""
    return cast(T, result_of(task(function)))


def in_turn(
    workers: Sequence[T],
    items: Iterable[S],
    call: Callable[[T, S], Sequence[Any]],
    meanwhile: Callable[[], object] = lambda: None,
) -> Iterator[Sequence[Any]]:
    """Yield the references to the results of a call for each item, in order, as they are there.

    Each worker has the next item while it is at work on one.

    Parameters
    ----------
    workers : Sequence
    items : iterable
    call : callable
        Returns the references, given a worker and an item.
    meanwhile : callable
        Called every moment.
    """
    import ray

    waiting, free = enumerate(items), [*workers, *workers]
    running = dict[Any, tuple[int, T, Sequence[Any]]]()  # by the last reference
    done, n_given = dict[int, Sequence[Any]](), 0
    while True:
        while free and (taken := next(waiting, None)):
            worker = free.pop(0)
            references = call(worker, taken[1])
            running[references[-1]] = taken[0], worker, references
        if n_given in done:
            yield done.pop(n_given)
            n_given += 1
        elif running:
            ready, _ = ray.wait([*running], timeout=A_MOMENT, fetch_local=False)
            meanwhile()
            for reference in ready:
                place, worker, references = running.pop(reference)
                done[place] = references
                free.append(worker)
        else:
            return


@cache
def code_version() -> str:
    """Return the version of hierindex, with a digest of its code that tells editions apart."""
    folder = Path(hierindex.__file__).parent
    sources = (path.read_text("utf-8") for path in sorted(folder.rglob("*.py")))
    return f"{version('hierindex')} ({digest(*sources)[:12]})"


def host() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


def check_code(expected: str) -> None:
    """Raise InputError if this process has other code than the one that started a build."""
    if code_version() != expected:
        raise InputError(
            f"The build was started by hierindex {expected}, but a worker on "
            f"{host()} has {code_version()}; install the same on all machines."
        )


@cache
def _remote_check() -> Any:
    """Return the remote function of all tasks; Ray sends each that it is given to all processes."""
    import ray

    return ray.remote(_checked)


def _checked(code: str, function: Callable[..., Any], *arguments: Any) -> Any:
    check_code(code)
    return function(*arguments)


def _check_answers(address: str) -> None:
    """Raise InputError if no cluster answers in time, for which Ray itself waits for minutes."""
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=PATIENCE).close()
        asking = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
        subprocess.run(asking, check=True, timeout=PATIENCE, capture_output=True)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise _no_cluster(address) from error


def _no_cluster(address: str | None) -> InputError:
    return InputError(
        f"There is no Ray cluster at {address!r}; start one with `ray start --head`, and name the "
        "address that it prints."
        if address
        else "Ray cannot start on this machine; `ray start --head` says why."
    )
