"""Calls between sync and async code, and blocking functions in threads, that can be interrupted."""

import asyncio
from collections import deque
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")

_given_up: ContextVar[Event | None] = ContextVar("given_up", default=None)


def run_apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a new event loop in a new thread; an interruption cancels it.

    So it also works inside a running loop, such as a notebook's. Exceptions that end a loop, such
    as `SystemExit`, are raised here like all others.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(coroutine)

    def work() -> T:
        try:
            return loop.run_until_complete(task)
        finally:
            while tasks := asyncio.all_tasks(loop):
                for other in tasks:
                    other.cancel()
                with suppress(SystemExit, KeyboardInterrupt):  # of another task
                    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())

    future = started(work)
    try:
        return future.result()
    finally:
        loop.call_soon_threadsafe(task.cancel)  # has an effect only if this thread was interrupted
        wait([future])
        loop.close()


async def in_daemon_thread(function: Callable[[], T]) -> T:
    """Run a blocking function in a thread that does not keep the process alive."""

    def work() -> T:
        try:
            return function()
        except StopIteration as error:  # which futures of asyncio cannot hold
            raise RuntimeError("A function in a thread raised StopIteration.") from error

    return await asyncio.wrap_future(started(work))


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
    waiting, results, running = deque(functions), list[Future[T]](), set[Future[T]]()
    with may_be_given_up():
        while waiting or running:
            while waiting and len(running) < n_threads:
                results.append(started(waiting.popleft()))
                running.add(results[-1])
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for result in done:
                result.result()
    return [result.result() for result in results]


async def aeach(functions: Sequence[Callable[[], Awaitable[T]]], at_once: int) -> list[T]:
    """Await the results of functions, at most so many at once, and return them in order.

    Raises
    ------
    BaseException
        The first exception of a function, which cancels the others; no further one is called.
    """
    results, waiting = dict[int, T](), enumerate(functions)

    async def work() -> None:
        for i, function in waiting:
            results[i] = await function()

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(at_once, len(functions))):
                tasks.create_task(work())
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures.exceptions[0].__cause__
    return [results[i] for i in range(len(functions))]


@contextmanager
def may_be_given_up() -> Iterator[Event]:
    """Yield the event that `is_given_up` tells of in all that is started here; the end sets it."""
    given_up = Event()
    token = _given_up.set(given_up)
    try:
        yield given_up
    finally:
        given_up.set()
        _given_up.reset(token)


def is_given_up() -> bool:
    """Return whether nobody waits for this any more, see `each` and `may_be_given_up`."""
    given_up = _given_up.get()
    return given_up is not None and given_up.is_set()


def started(function: Callable[[], T]) -> Future[T]:
    """Start a function in a daemon thread, in a copy of this context, and return its future."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    context = copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except BaseException as error:  # noqa: BLE001  # raised where the result is read
            future.set_exception(error)
        else:
            future.set_result(result)

    Thread(target=work, daemon=True).start()
    return future
