"""The door to language models: limits on requests, tokens and time, which threads share."""

import asyncio
import os
import signal
import time
import warnings
from collections import deque
from contextlib import contextmanager
from functools import partial
from threading import Barrier, Lock, Timer, current_thread
from types import SimpleNamespace

import pytest
from clients import Calls, llm_of, with_retries
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.llms import CompletionResponse, MockLLM
from loopback import LoopbackServer

from hierindex import HierindexError
from hierindex.errors import LimitError, WindowWarning
from hierindex.models.llm import LanguageModel, TokenLimit, load_llm
from hierindex.summarize import LLMRewriter
from hierindex.threads import each

pytestmark = pytest.mark.usefixtures("no_wait")


class BusyError(OSError):
    """As clients raise it."""

    def __init__(self, pause=0.0, status=429):
        super().__init__("busy")
        headers = {"retry-after": str(pause)} if pause else {}
        self.status_code = status
        self.response = SimpleNamespace(headers=headers, status_code=status)


def model(most=4, **options):
    return LanguageModel(MockLLM(), most, **options)


def asked(model, *outcomes, prompt="Hello?"):
    """The answer to a prompt, of which each attempt has one of the outcomes; then all the last."""
    left = deque(outcomes)

    def send():
        outcome = left.popleft() if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        return CompletionResponse(text=outcome)

    return model.ask(prompt, send, lambda call: None).text


@given(st.integers(1, 4), st.lists(st.sampled_from("asf"), max_size=12))
def test_there_are_never_more_requests_than_allowed_and_all_are_sent(most, ends):
    """Each is answered, or rejected as one too many at first, or fails for good."""
    lock, seen, in_flight = Lock(), [], 0
    asking = model(most)

    def ask(end):
        fails = {"a": [], "s": [BusyError()], "f": [OSError("no")] * 9}[end]

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


def test_a_service_that_counts_more_tokens_is_not_overspent():
    asking, calls = model(tokens=TokenLimit(100, completion_tokens=1)), Calls()
    counts = {"prompt_tokens": 30, "completion_tokens": 1}
    response = CompletionResponse(text="Yes.", additional_kwargs=counts)
    for _ in range(3):
        asking.ask("word " * 9, lambda: response, calls.add)
    with pytest.raises(LimitError, match=r"93 of the 100 tokens .* may take \d\d$"):
        asking.ask("word " * 9, lambda: response, calls.add)


def test_what_is_not_answered_costs_nothing():
    asking = model(tokens=TokenLimit(300, completion_tokens=200))
    for _ in range(3):
        with pytest.raises(HierindexError):
            asked(asking, OSError("no"))
    assert asked(asking, "Yes.") == "Yes."


def test_what_timed_out_may_cost_its_maximum():
    asking = model(tokens=TokenLimit(300, completion_tokens=200))
    with pytest.raises(LimitError):
        asked(asking, TimeoutError(), "Yes.")


def test_a_busy_service_is_waited_for_as_it_asks_and_given_up_after_a_while():
    asked(model(), BusyError(), "Yes.")  # imports what tells failures apart, for a second
    began = time.monotonic()
    assert asked(model(), BusyError(0.2), BusyError(0.1), "Yes.") == "Yes."
    assert 0.3 <= time.monotonic() - began < 20
    for error in (BusyError(), BusyError(61)):
        with pytest.raises(HierindexError, match=r"HTTP status 429.*; try again later"):
            asked(model(), error)


def test_no_process_waits_for_a_request():
    """It is sent by a daemon thread."""
    said = model().ask(
        "Hello?",
        lambda: CompletionResponse(text=f"{current_thread().daemon}"),
        lambda call: None,
    )
    assert said.text == "True"


def test_who_is_given_up_waits_no_longer_and_leaves_its_place():
    asking = model(1)

    def fail():
        time.sleep(0.2)
        raise KeyError

    with pytest.raises(KeyError):
        each([*[partial(asked, asking, BusyError(60))] * 2, fail], 3)
    assert asked(asking, "Yes.") == "Yes."


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
