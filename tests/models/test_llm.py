"""The door to language models: limits on requests, tokens and time, which threads share."""

import asyncio
import os
import signal
import time
import warnings
from collections import deque
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from threading import Barrier, Event, Lock, Timer
from types import SimpleNamespace

import pytest
from clients import llm_of
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.llms import CompletionResponse, MockLLM
from loopback import LoopbackServer
from tenacity import wait_none

from hierindex import HierindexError
from hierindex.errors import LimitError, ModelError, WindowWarning
from hierindex.models.client import load_llm
from hierindex.models.limits import FIRST_PAUSE, AdaptiveLimit, TokenLimit
from hierindex.models.llm import LanguageModel, with_retries
from hierindex.models.record import Calls
from hierindex.summarize import LLMRewriter
from hierindex.threads import each, started

HARDLY = 1e-6  # seconds; 0 would be a service that does not say
PAUSE = 0.05


class BusyError(OSError):
    """As clients raise it."""

    def __init__(self, pause=0.0, status=429):
        super().__init__("busy")
        headers = {"retry-after": str(pause)} if pause else {}
        self.status_code = status
        self.response = SimpleNamespace(headers=headers, status_code=status)


def model(most=4, **options):
    return LanguageModel(MockLLM(), AdaptiveLimit(most), wait=wait_none(), **options)


def asked(model, *outcomes, prompt="Hello?"):
    """The answer to a prompt, of which each attempt has one of the outcomes; then all the last."""
    left = deque(outcomes)

    def send():
        outcome = left.popleft() if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        return CompletionResponse(text=outcome)

    return model.ask(prompt, send, lambda call: None).text


@contextmanager
def room(limit, n=10):
    """How many of so many threads are in slots at once; they leave them at the end."""
    released, lock, held = Event(), Lock(), []

    def hold():
        with limit.slot():
            with lock:
                held.append(time.monotonic())
            released.wait(20)

    threads = [started(hold) for _ in range(n)]
    before = -1
    while before < len(held):
        before = len(held)
        time.sleep(0.1)
    try:
        yield len(held)
    finally:
        released.set()
        for thread in threads:
            thread.result(20)


def room_of(limit):
    with room(limit) as n:
        return n


def slowed(limit, n=1):
    """Told so many times that it is too much, each time by a request sent since the last."""
    for _ in range(n):
        limit.slow_down(time.monotonic(), HARDLY)


@given(st.integers(1, 4), st.lists(st.sampled_from("asf"), max_size=12))
def test_there_are_never_more_requests_than_allowed_and_all_are_sent(most, ends):
    """Each is answered, or rejected as one too many at first, or fails for good."""
    lock, seen, in_flight = Lock(), [], 0
    asking = model(most)

    def ask(end):
        fails = {"a": [], "s": [BusyError(HARDLY)], "f": [OSError("no")] * 9}[end]

        def send():
            nonlocal in_flight
            with lock:
                in_flight += 1
                seen.append(in_flight)
            time.sleep(0.001)
            with lock:
                in_flight -= 1
            if fails:
                raise fails.pop()
            return CompletionResponse(text="Yes.")

        try:
            return asking.ask("Hello?", send, lambda call: None).text
        except HierindexError:
            return None

    answers = each([partial(ask, end) for end in ends], 8)
    assert answers == [None if end == "f" else "Yes." for end in ends]
    assert all(1 <= n <= most for n in seen)


def test_one_burst_halves_it_once():
    limit, sent = AdaptiveLimit(8), time.monotonic()
    for _ in range(5):
        limit.slow_down(sent, HARDLY)
    assert room_of(limit) == 4
    slowed(limit)
    assert room_of(limit) == 2


@pytest.mark.parametrize("most", [1, 4])
def test_it_grows_by_about_one_with_each_round_of_answers(most):
    limit, rooms = AdaptiveLimit(most), []
    slowed(limit, 10)
    while not rooms or rooms[-1] < most:
        rooms.append(room_of(limit))
        for _ in range(rooms[-1]):
            limit.answered()
    assert all(0 <= b - a <= 1 for a, b in pairwise(rooms))
    assert len(rooms) <= 2 * most
    for _ in range(50):
        limit.answered()
    assert room_of(limit) == most


@pytest.mark.parametrize("waits", [[PAUSE], [PAUSE, 0.0], [0.0, PAUSE], [PAUSE / 2, PAUSE]])
def test_nothing_is_sent_for_the_longest_pause_asked_for(waits):
    limit, began = AdaptiveLimit(4), time.monotonic()
    for wait in waits:
        limit.slow_down(began, wait)
    with limit.slot():
        assert PAUSE <= time.monotonic() - began < 20


def test_a_pause_holds_for_those_that_pause_already():
    limit, began = AdaptiveLimit(4), time.monotonic()
    limit.slow_down(began, PAUSE)

    def sent():
        with limit.slot():
            return time.monotonic() - began

    waiting = started(sent)
    limit.slow_down(began, 3 * PAUSE)
    assert waiting.result(20) >= 3 * PAUSE


def test_where_the_service_does_not_say_pauses_grow_until_it_answers():
    limit, found = AdaptiveLimit(2), []

    def paused():
        busy, began = limit.slow_down(time.monotonic(), 0), time.monotonic()
        with limit.slot():
            found.append(time.monotonic() - began)
        return busy

    assert paused() == 0
    assert paused() >= FIRST_PAUSE
    assert paused() >= found[0] + found[1]
    assert all(seconds >= FIRST_PAUSE * 2**i for i, seconds in enumerate(found))
    limit.answered()
    assert paused() == 0
    assert found[-1] < found[-2]


@st.composite
def requests(draw):
    """Pairs of the words of a prompt and of the tokens that its answer may and does take."""
    return draw(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 20)), max_size=12))


@given(st.integers(1, 200), st.integers(0, 60), requests(), st.integers(1, 5))
def test_tokens_are_never_overspent_and_none_is_refused_too_soon(most, before, sent, n_threads):
    """An answer takes 20 tokens at most."""
    limit, calls = TokenLimit(most, before, 20), Calls()
    asking = model(n_threads, tokens=limit)

    def ask(n_words, n_tokens):
        def send():
            counts = {"prompt_tokens": n_words, "completion_tokens": n_tokens}
            return CompletionResponse(text="Yes.", additional_kwargs=counts)

        try:
            return asking.ask("word " * n_words, send, calls.add).text
        except LimitError:
            spent = calls.usage.prompt_tokens + calls.usage.completion_tokens
            assert before + spent + n_words + 22 > most
            return None

    answers = each([partial(ask, *each_) for each_ in sent], n_threads)
    spent = calls.usage.prompt_tokens + calls.usage.completion_tokens
    assert len(calls.made) == len(answers) - answers.count(None)
    assert before + spent <= max(most, before)
    if before + sum(map(sum, sent)) + 22 <= most:
        assert None not in answers


@pytest.mark.parametrize("before", [0, 9])
def test_what_may_be_too_much_is_refused_with_the_numbers(before):
    told = rf"{before} of the 10 tokens .* may take \d+$"
    with pytest.raises(LimitError, match=told):
        asked(model(tokens=TokenLimit(10, before, 10)), "Yes.")


@pytest.mark.parametrize(("status", "is_free"), [(429, 1), (401, 1), (500, 1), (200, 0), (504, 0)])
def test_what_the_service_refused_has_cost_nothing(status, is_free, monkeypatch):
    """Where it did not answer, or not in time, it may have cost what it may at most."""
    monkeypatch.setattr("hierindex.models.llm.MAX_BUSY", 0.2)
    limit = TokenLimit(700, completion_tokens=200)
    for _ in range(3):
        with pytest.raises(HierindexError):
            asked(model(tokens=limit), BusyError(status=status))
    if is_free:
        assert asked(model(tokens=limit), "Yes.") == "Yes."
    else:
        with pytest.raises(LimitError):
            asked(model(tokens=limit), "Yes.")


class Clock:
    """Time that passes with each look at it, and in sleeps."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        self.now += 0.5
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    for module in ("models.limits", "models.llm", "threads"):
        monkeypatch.setattr(f"hierindex.{module}.time", clock)
    return clock


def test_a_service_that_was_given_up_is_waited_for_an_hour_later(clock):
    asking = model()
    for _ in range(2):
        with pytest.raises(ModelError, match=r"was busy for \d\d s"):
            asked(asking, BusyError())
        began = clock.now
        with pytest.raises(ModelError, match="was busy for"):
            asked(asking, BusyError())  # it is known to be busy
        assert clock.now < began + 10
        clock.now += 3600
        assert asked(asking, BusyError(), "Yes.") == "Yes."


def test_a_request_that_was_interrupted_leaves_no_busy_time(clock, monkeypatch):
    asking = model()

    def interrupt(seconds):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("hierindex.models.llm.pause", interrupt)
        with pytest.raises(KeyboardInterrupt):
            asked(asking, BusyError())
    clock.now += 3600
    assert asked(asking, BusyError(), "Yes.") == "Yes."


def test_the_longest_wait_is_a_minute(clock):
    """Of all pauses that the service asks for together."""
    began = clock.now
    with pytest.raises(ModelError, match=r"was busy for (59|6\d) s"):
        asked(model(), BusyError(pause=59))
    assert 59 <= clock.now - began <= 75


def test_who_is_given_up_waits_no_longer_and_leaves_its_place():
    asking = model(1)
    asking.limit.slow_down(time.monotonic(), 60)
    with pytest.raises(TimeoutError):
        each([partial(asked, asking, "Yes.")] * 2, 2, seconds=0.2)
    asking.limit.end_pause()
    with room(asking.limit, 1) as n:
        assert n == 1


WAYS = {
    "complete": lambda llm: with_retries(llm).complete("Hello?"),
    "stream": lambda llm: list(with_retries(llm).stream_complete("Hello?")),
    "rewrite": lambda llm: LLMRewriter(llm).rewrite(["One.", "Two."], max_tokens=9),
}


@contextmanager
def interrupted():
    """Ctrl-C half a second later, which must be told within a second."""
    timer = Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    began = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    assert time.monotonic() - began < 1.5


@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
def test_ctrl_c_does_not_wait_for_an_answer(ask):
    with LoopbackServer(latency=60) as server:
        llm = load_llm("tiny", server.base_url)
        with interrupted():
            ask(llm)


@pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
def test_nor_within_a_loop_as_in_a_notebook(ask):
    """Where the handler is Python's own: a notebook's kernel sets it for each cell."""

    async def cell():
        with interrupted():
            ask(llm)
        return "goes on"

    loop = asyncio.new_event_loop()
    with LoopbackServer(latency=60) as server:
        llm = load_llm("tiny", server.base_url)
        assert loop.run_until_complete(cell()) == "goes on"
    loop.close()


def test_a_cell_that_awaits_is_cancelled_at_once():
    """A notebook's kernel cancels its task in the handler, which does not wake its loop up."""
    loop = asyncio.new_event_loop()
    with LoopbackServer(latency=60) as server:
        llm = load_llm("tiny", server.base_url)
        cell = loop.create_task(with_retries(llm).acomplete("Hello?"))
        before = signal.signal(signal.SIGINT, lambda *_: cell.cancel())
        Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        try:
            with pytest.raises(asyncio.CancelledError):
                loop.run_until_complete(cell)
        finally:
            signal.signal(signal.SIGINT, before)
        assert time.monotonic() - began < 1.5
    loop.close()


def test_those_who_await_use_at_most_so_many_threads():
    together, lock, n, most = Barrier(3, timeout=20), Lock(), 0, 0

    def reply(prompt):
        nonlocal n, most
        with lock:
            n, most = n + 1, max(most, n + 1)
        together.wait()
        with lock:
            n -= 1
        return "Yes."

    async def ask():
        llm = with_retries(load_llm("tiny", server.base_url), concurrency=3)
        return await asyncio.gather(*(llm.acomplete(f"Hello {i}?") for i in range(12)))

    with LoopbackServer(reply=reply) as server:
        assert [each_.text for each_ in asyncio.run(ask())] == ["Yes."] * 12
    assert most == 3


@pytest.mark.parametrize(("window", "is_cut"), [(99, True), (100, False)])
@pytest.mark.parametrize("way", ["complete", "stream_complete"])
def test_a_server_that_cuts_prompts_is_noticed_once(way, window, is_cut, monkeypatch):
    monkeypatch.setattr("hierindex.models.llm._cut", set())
    told = {"stream_options": {"include_usage": True}}

    def ask():
        said = getattr(llm, way)("word " * 100)
        return said if way == "complete" else [*said]

    with LoopbackServer(count=lambda text: min(len(text.split()), window)) as server:
        llm = with_retries(llm_of(server, additional_kwargs=told if "stream" in way else {}))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask()
            ask()
    messages = [str(w.message) for w in caught if w.category is WindowWarning]
    assert ["read 99 tokens of a prompt of 100 words" in m for m in messages] == [True] * is_cut
