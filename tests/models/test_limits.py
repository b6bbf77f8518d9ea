import asyncio
import itertools
import time
from collections import deque
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.llms import CompletionResponse
from tenacity import wait_none

from hierindex.errors import HierindexError, LimitError, ModelError
from hierindex.models.limits import AdaptiveLimit, TokenLimit
from hierindex.models.llm import Service

HARDLY = 1e-6  # seconds; 0 would be a service that does not say
PAUSE = 0.05


async def turns(n=60):
    """Let every task go as far as it can."""
    for _ in range(n):
        await asyncio.sleep(0)


async def room(limit, n_tasks=20):
    """How many of so many tasks are in slots at once."""
    released, n_held = asyncio.Event(), 0

    async def hold():
        nonlocal n_held
        async with limit.slot():
            n_held += 1
            await released.wait()

    tasks = [asyncio.create_task(hold()) for _ in range(n_tasks)]
    await turns()
    most = n_held
    released.set()
    await asyncio.gather(*tasks)
    return most


def slowed(limit, n=1):
    """Told so many times that it is too much, each time by a request sent since the last."""
    for _ in range(n):
        limit.slow_down(time.monotonic(), HARDLY)


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("asb.")), max_size=30),
)
def test_there_are_never_more_than_asked_and_never_none(most, steps):
    """Each request takes some turns, then was answered, too many, one of a burst, or failed."""

    async def run():
        limit, in_flight, seen, begun = AdaptiveLimit(most), 0, [], time.monotonic()

        async def ask(n_turns, end):
            nonlocal in_flight
            async with limit.slot():
                in_flight += 1
                seen.append(in_flight)
                await turns(n_turns)
                in_flight -= 1
            match end:
                case "a":
                    limit.answered()
                case "s":
                    slowed(limit)
                case "b":
                    limit.slow_down(begun, HARDLY)

        await asyncio.wait_for(asyncio.gather(*(ask(*step) for step in steps)), 20)
        assert len(seen) == len(steps)
        assert all(1 <= n <= most for n in seen)
        assert 1 <= await room(limit) <= most

    asyncio.run(run())


def test_one_burst_halves_it_once():
    async def run():
        limit, sent = AdaptiveLimit(8), time.monotonic()
        for _ in range(5):
            limit.slow_down(sent, HARDLY)
        assert await room(limit) == 4
        slowed(limit)
        assert await room(limit) == 2

    asyncio.run(run())


@pytest.mark.parametrize("most", [1, 2, 8])
def test_it_grows_by_about_one_with_each_round_of_answers(most):
    async def run():
        limit, rooms = AdaptiveLimit(most), []
        slowed(limit, 10)
        while not rooms or rooms[-1] < most:
            rooms.append(await room(limit))
            for _ in range(rooms[-1]):
                limit.answered()
        assert all(0 <= b - a <= 1 for a, b in pairwise(rooms))
        assert len(rooms) <= 2 * most
        for _ in range(50):
            limit.answered()
        assert await room(limit) == most

    asyncio.run(run())


@pytest.mark.parametrize("waits", [[PAUSE], [PAUSE, 0.0], [0.0, PAUSE], [PAUSE / 2, PAUSE]])
def test_nothing_is_sent_for_the_longest_pause_asked_for(waits):
    async def run():
        limit, began = AdaptiveLimit(4), time.monotonic()
        for wait in waits:
            limit.slow_down(began, wait)

        async def sent():
            async with limit.slot():
                return time.monotonic() - began

        seconds = await asyncio.gather(*(sent() for _ in range(4)))
        assert all(PAUSE <= s < 20 for s in seconds)

    asyncio.run(run())


def test_a_pause_holds_for_those_that_pause_already():
    async def run():
        limit, began = AdaptiveLimit(4), time.monotonic()
        limit.slow_down(began, PAUSE)

        async def sent():
            async with limit.slot():
                return time.monotonic() - began

        task = asyncio.create_task(sent())
        await turns()
        limit.slow_down(began, 2 * PAUSE)
        assert await task >= 2 * PAUSE

    asyncio.run(run())


@pytest.mark.parametrize("pause", [HARDLY, 60])
def test_a_request_that_is_given_up_frees_its_place(pause):
    async def run():
        limit = AdaptiveLimit(1)
        limit.slow_down(time.monotonic(), pause)

        async def hold():
            async with limit.slot():
                await asyncio.sleep(60)

        task = asyncio.create_task(hold())
        await turns()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        limit.end_pause()
        assert await asyncio.wait_for(room(limit), 20) == 1

    asyncio.run(run())


@st.composite
def requests(draw):
    """Pairs of what is reserved and what is spent, no more than that."""
    reserved = draw(st.lists(st.integers(0, 40), max_size=20))
    return [(n, draw(st.integers(0, n))) for n in reserved]


@given(st.integers(1, 200), st.integers(0, 60), requests(), st.integers(1, 5))
def test_tokens_are_never_overspent_and_none_is_refused_too_soon(most, before, asked, n_workers):
    async def run():
        limit, queue = TokenLimit(most, before), deque(asked)
        spent, in_flight, refused = before, 0, []

        async def work():
            nonlocal spent, in_flight
            while queue:
                n_reserved, n_spent = queue.popleft()
                try:
                    await limit.reserve(n_reserved)
                except LimitError:
                    refused.append(n_reserved)
                    assert in_flight == 0
                    assert spent + n_reserved > most
                    continue
                in_flight += n_reserved
                assert spent + in_flight <= most
                await turns(n_spent % 4)
                spent, in_flight = spent + n_spent, in_flight - n_reserved
                await limit.settle(n_reserved, n_spent)

        await asyncio.wait_for(asyncio.gather(*(work() for _ in range(n_workers))), 20)
        assert spent <= max(most, before)
        assert not refused or before + sum(n for n, _ in asked) > most

    asyncio.run(run())


@pytest.mark.parametrize(("before", "n_tokens"), [(0, 11), (9, 2), (10, 1)])
def test_one_token_more_is_refused_with_the_numbers(before, n_tokens):
    told = f"{before} of the 10 tokens .* may take {n_tokens}$"
    with pytest.raises(LimitError, match=told):
        asyncio.run(TokenLimit(10, before).reserve(n_tokens))


def test_a_request_may_turn_out_dearer_and_nothing_follows():
    async def run():
        limit = TokenLimit(10)
        await limit.reserve(5)
        await limit.settle(5, 12)
        with pytest.raises(LimitError, match="12 of the 10 tokens"):
            await limit.reserve(1)

    asyncio.run(run())


def test_where_the_service_does_not_say_pauses_grow_until_it_answers():
    busy = []

    async def pauses(limit, n):
        found = []
        for _ in range(n):
            busy.append(limit.slow_down(time.monotonic(), 0))
            began = time.monotonic()
            async with limit.slot():
                found.append(time.monotonic() - began)
        return found

    async def run():
        limit = AdaptiveLimit(2)
        first = await pauses(limit, 3)
        assert all(later >= 1.5 * earlier for earlier, later in itertools.pairwise(first))
        assert busy[0] == 0
        assert busy[-1] >= sum(first[:-1])
        limit.answered()
        assert (await pauses(limit, 1))[0] < first[-1]
        assert busy[-1] == 0

    asyncio.run(run())


class Clock:
    """Time that passes only in sleeps."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in ("limits", "service"):
        monkeypatch.setattr(f"hierindex.models.{module}.time", clock)
    monkeypatch.setattr(asyncio, "sleep", clock.sleep)
    return clock


class BusyError(OSError):
    """As clients raise it."""

    status_code = 429


def asked(service, *outcomes):
    """The answer to a prompt, of which each attempt has one of the outcomes; then all the last."""
    left = deque(outcomes)

    def send():
        outcome = left.popleft() if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        return CompletionResponse(text=outcome)

    return service.ask("Hello?", send, lambda call: None).text


def test_a_service_that_was_given_up_is_waited_for_an_hour_later(clock):
    service = Service("m")
    for _ in range(2):
        with pytest.raises(ModelError, match=r"was busy for \d\d s"):
            asked(service, BusyError())
        began = clock.now
        with pytest.raises(ModelError, match="was busy for"):
            asked(service, BusyError())  # it is known to be busy
        assert clock.now == began
        clock.now += 3600
        assert asked(service, BusyError(), "Yes.") == "Yes."


def test_a_request_that_was_interrupted_leaves_no_busy_time(clock, monkeypatch):
    service = Service("m")

    async def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr(asyncio, "sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        asked(service, BusyError())
    clock.now += 3600
    monkeypatch.setattr(asyncio, "sleep", clock.sleep)
    assert asked(service, BusyError(), "Yes.") == "Yes."


def test_the_longest_wait_is_a_minute(clock):
    """Of all pauses that the service asks for together."""
    busy = BusyError()
    busy.response = SimpleNamespace(headers={"retry-after": "59"}, status_code=429)
    began = clock.now
    with pytest.raises(ModelError, match="was busy for 59 s"):
        asked(Service("m"), busy)
    assert clock.now - began == 59


@pytest.mark.parametrize(("status", "cost"), [(429, 0), (401, 0), (500, 0), (200, 9), (504, 9)])
def test_what_the_service_refused_has_cost_nothing(status, cost, monkeypatch):
    """Where it did not answer, or not in time, it may have cost what it may at most."""
    monkeypatch.setattr("hierindex.models.llm.MAX_BUSY", 0.2)
    error = BusyError()
    error.status_code = status

    async def send():
        raise error

    async def run():
        tokens = TokenLimit(1000, completion_tokens=200)
        service = Service("m", tokens=tokens, wait=wait_none())
        for _ in range(3):
            with pytest.raises(HierindexError):
                await service.aask("Hello?", send, lambda call: None, lambda got: got)
        await tokens.reserve(1000)

    if cost:
        with pytest.raises(LimitError):
            asyncio.run(run())
    else:
        asyncio.run(run())
