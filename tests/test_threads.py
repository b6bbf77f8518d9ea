"""Functions that block, and those that are awaited, several at once."""

import asyncio
import time
from functools import partial
from threading import Event, Lock

import pytest

from hierindex.threads import aeach, each, is_given_up


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_are_in_order_and_at_most_so_many_at_work(n, n_threads):
    lock, at_work, most = Lock(), 0, 0

    def square(i):
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(0.01 * (n - i))
        with lock:
            at_work -= 1
        return i * i

    assert each([partial(square, i) for i in range(n)], n_threads) == [i * i for i in range(n)]
    assert most <= n_threads


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_the_first_failure_is_raised_at_once_and_told_to_those_at_work(error):
    release, told, begun = Event(), Event(), []

    def stay():
        begun.append("stay")
        release.wait(20)
        if is_given_up():
            told.set()

    def fail():
        raise error

    with pytest.raises(error):
        each([stay, fail, partial(begun.append, "late")], 2)
    release.set()
    assert told.wait(20)
    assert begun == ["stay"]
    assert not is_given_up()


@pytest.mark.parametrize("n", [0, 1, 7])
@pytest.mark.parametrize("at_once", [1, 3])
def test_awaited_results_are_in_order_and_at_most_so_many_at_work(n, at_once):
    at_work, most = 0, 0

    async def square(i):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        for _ in range(n - i):
            await asyncio.sleep(0)
        at_work -= 1
        return i * i

    found = asyncio.run(aeach([partial(square, i) for i in range(n)], at_once))
    assert found == [i * i for i in range(n)]
    assert most == min(n, at_once)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_the_first_failure_cancels_what_is_awaited_and_begins_no_more(error):
    begun, cancelled = [], []

    async def stay():
        begun.append("stay")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("stay")
            raise

    async def fail():
        await asyncio.sleep(0)
        raise error

    async def late():
        begun.append("late")

    with pytest.raises(error):
        asyncio.run(aeach([stay, fail, late], 2))
    assert begun == cancelled == ["stay"]
