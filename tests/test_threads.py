"""Functions that block, several at once."""

import asyncio
import math
import time
from functools import partial
from threading import Barrier, Event, Lock

import pytest

from hierindex.threads import each, in_daemon_thread, is_given_up, pause, within


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


def test_a_failure_is_raised_and_not_that_others_were_given_up():
    for _ in range(50):
        begun = Barrier(4)

        def wait(begun=begun):
            begun.wait(20)
            pause(20)

        def fail(begun=begun):
            begun.wait(20)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            each([wait, fail, wait, fail], 4)


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


def test_what_is_cancelled_is_told():
    told = Event()

    def stay():
        while not is_given_up():
            time.sleep(0.01)
        told.set()

    async def run():
        await asyncio.wait_for(in_daemon_thread(stay), 0.1)

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert told.wait(20)


def test_who_waits_within_a_time_notices_that_it_is_given_up():
    began, release, left = Event(), Event(), Event()

    def stay():
        began.set()
        try:
            within(20, partial(release.wait, 20))
        finally:
            left.set()

    def fail():
        began.wait(20)
        raise KeyError

    with pytest.raises(KeyError):
        each([stay, fail], 2)
    assert left.wait(5)
    release.set()
    with pytest.raises(TimeoutError):
        within(0.1, partial(time.sleep, 0.5))
    assert within(math.inf, lambda: 3) == 3
