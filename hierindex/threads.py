"""Async code from sync and sync from async, such that neither outlives an interruption."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


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
