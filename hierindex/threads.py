"""Blocking functions in daemon threads; their callers may be interrupted or abandon them."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, Future, as_completed, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import partial, wraps
from math import inf
from threading import Event, Lock, Thread
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

A_MOMENT = 0.05  # seconds between checks whether a function was abandoned
A_WHILE = 0.5  # seconds after which an event loop that waits is woken up

_given_up: ContextVar[tuple[Event, ...]] = ContextVar("given_up", default=())


class Pool:
    """A pool of at most `most` daemon threads, which run functions in order of arrival.

    A thread ends when no function is waiting. Threads do not keep the process alive.
    """

    def __init__(self, n_threads: int) -> None:
        self._n_free = n_threads
        self._waiting = deque[Callable[[], None]]()
        self._lock = Lock()

    def start(self, function: Callable[[], T]) -> Future[T]:
        """Run a function in a copy of this context, and return its future.

        A function that is cancelled before it has started is not run.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            self._waiting.append(partial(copy_context().run, _run, function, future))
            if self._n_free:
                self._n_free -= 1
                Thread(target=self._work, daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._n_free += 1
                    return
                run = self._waiting.popleft()
            run()
            del run


def _run(function: Callable[[], T], future: Future[T]) -> None:
    try:
        _check_wanted()
        future.set_result(function())
    except StopIteration:  # which no future of asyncio can hold
        future.set_exception(RuntimeError("A function in a thread raised StopIteration."))
    except BaseException as error:  # noqa: BLE001  # raised where the result is read
        future.set_exception(error)


def started(function: Callable[[], T]) -> Future[T]:
    """Start a function in a daemon thread, in a copy of this context, and return its future."""
    return Pool(1).start(function)


def each(functions: Iterable[Callable[[], T]], n_threads: int) -> list[T]:
    """Run blocking functions in threads and return their results in order.

    Parameters
    ----------
    functions : iterable of callable
    n_threads : int
        Maximum number of functions that run at once.

    Raises
    ------
    BaseException
        The first exception of a function, immediately, or an interruption of this thread. No
        further function is started, and those that run are abandoned; see `is_given_up`.
    """
    pool, failures = Pool(n_threads), list[BaseException]()
    with may_be_given_up() as given_up:

        def run(function: Callable[[], T]) -> T:
            try:
                return function()
            except BaseException as error:
                failures.append(error)
                given_up.set()  # before this thread takes the next function
                raise

        results = [pool.start(partial(run, function)) for function in functions]
        for result in as_completed(results):
            if failures:
                raise failures[0]
            result.result()
    return [result.result() for result in results]


async def in_daemon_thread(function: Callable[[], T], pool: Pool | None = None) -> T:
    """Run a blocking function in a thread, where `is_given_up` is true after cancellation."""
    with may_be_given_up():
        result = asyncio.wrap_future((pool or Pool(1)).start(function))
        try:
            while not result.done():  # a notebook's loop notices Ctrl-C only when it wakes up
                await asyncio.wait([result], timeout=A_WHILE)
            return result.result()
        finally:
            result.cancel()


def threaded(
    method: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return an async method that runs a method in a thread, see `in_daemon_thread`."""

    @wraps(method)
    async def awaited(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        own = getattr(self, method.__name__)  # also of a subclass
        return await in_daemon_thread(partial(own, *args, **kwargs))

    awaited.__doc__ = f"Run `{method.__name__}` in a thread."
    return awaited


@contextmanager
def may_be_given_up() -> Iterator[Event]:
    """Yield an event, set when the block ends; `is_given_up` is then true in its threads."""
    given_up = Event()
    token = _given_up.set((*_given_up.get(), given_up))
    try:
        yield given_up
    finally:
        given_up.set()
        _given_up.reset(token)


def is_given_up() -> bool:
    """Return whether the caller has abandoned this thread; see `each` and `may_be_given_up`."""
    return any(given_up.is_set() for given_up in _given_up.get())


def _check_wanted() -> None:
    if is_given_up():
        raise CancelledError


def wait_until(wait_for: Callable[[float], object], seconds: float = inf) -> bool:
    """Call `wait_for`, which waits up to the given seconds, until it returns a true value.

    Return whether it did before the time was over; raise CancelledError if the caller abandons this
    thread meanwhile.
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        _check_wanted()
        if wait_for(min(left, A_MOMENT)):
            return True
    return False


def pause(seconds: float) -> None:
    """Sleep; raise CancelledError if the caller abandons this thread meanwhile."""
    wait_until(time.sleep, seconds)


def within(seconds: float, function: Callable[[], T]) -> T:
    """Return the result of a function; abandon it in its thread after some seconds; see `pause`.

    Raises
    ------
    TimeoutError
        If the function takes longer.
    """
    result = started(function)
    if not wait_until(lambda moment: wait([result], moment).done, seconds):
        raise TimeoutError
    return result.result()
