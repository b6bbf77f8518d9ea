"""Async code from sync and sync from async, such that neither outlives an interruption."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import ContextVar, copy_context
from threading import Event, Thread
from typing import Any, TypeVar, cast

T = TypeVar("T")

_given_up: ContextVar[Event | None] = ContextVar("given_up", default=None)


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run on LanceDB's own event loop, as LanceDB's sync interface does.

    The loop has a thread of its own, so that this also works where a loop is running, as in a
    notebook. Only work of LanceDB belongs there, for all of it waits in one line.
    """
    from lancedb.background_loop import LOOP

    return cast(T, LOOP.run(coroutine))  # type: ignore[no-untyped-call]


def run_apart(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run on an event loop in a thread of its own; an interruption of this thread cancels it.

    So it runs also where this thread has a loop already, as a notebook's.
    """
    loop, context = asyncio.new_event_loop(), copy_context()

    async def inside() -> T:
        return await asyncio.create_task(coroutine, context=context)

    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    future = asyncio.run_coroutine_threadsafe(inside(), loop)
    try:
        return future.result()
    finally:
        future.cancel()  # if it is not done: this thread was interrupted
        asyncio.run_coroutine_threadsafe(_settled(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _settled() -> None:
    """Wait for what was cancelled."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)


def within(seconds: float | None, function: Callable[[], T]) -> T:
    """The result of a function that blocks, in a thread that is left to itself if it takes longer.

    Raises
    ------
    TimeoutError
        If there is none after so many seconds.
    """
    return _begun(function).result(seconds)


async def in_daemon_thread(function: Callable[[], T]) -> T:
    """The result of a function that blocks; the process does not wait for it when it ends."""
    return await asyncio.wrap_future(_begun(function))


def each(functions: Iterable[Callable[[], T]], n_threads: int) -> list[T]:
    """The results of functions that block, in order.

    Parameters
    ----------
    functions : iterable of callable
    n_threads : int
        Most functions at work at once.

    Raises
    ------
    BaseException
        What the first one that fails raises, at once, or an interruption of this thread. No other
        one is begun, and those at work are left to themselves; see `is_given_up`.
    """
    waiting, results, at_work = deque(functions), list[Future[T]](), set[Future[T]]()
    given_up = Event()
    before = _given_up.set(given_up)
    try:
        while waiting or at_work:
            while waiting and len(at_work) < n_threads:
                results.append(_begun(waiting.popleft()))
                at_work.add(results[-1])
            done, at_work = wait(at_work, return_when=FIRST_COMPLETED)
            for result in done:
                result.result()
    finally:
        given_up.set()
        _given_up.reset(before)
    return [result.result() for result in results]


def is_given_up() -> bool:
    """Whether this is at work for `each`, which has ended."""
    given_up = _given_up.get()
    return given_up is not None and given_up.is_set()


def _begun(function: Callable[[], T]) -> Future[T]:
    """A function at work in a daemon thread."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    context = copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except BaseException as error:  # noqa: BLE001  # for whoever awaits it
            future.set_exception(error)
        else:
            future.set_result(result)

    Thread(target=work, daemon=True).start()
    return future
