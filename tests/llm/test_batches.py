"""Summaries by OpenAI's Batch API: what the service may do with a batch, and what a kill leaves."""

import asyncio
import json
import logging
import random
import threading
from collections import Counter
from functools import cache
from itertools import count

import httpx
import pytest
from batch_service import FAILED, MISSING, TIMED_OUT, BatchServer, Plan
from fakes import HashingEmbedding
from histories import WORDS
from llama_index.core.llms import MockLLM
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.llms.openai import OpenAI
from llama_index.llms.openai_like import OpenAILike
from loopback import CUT_OFF, EMPTY, FILTERED, NO_QUOTA, REFUSAL, Fault
from tenacity import wait_none

from hierindex.errors import InputError, LimitError, ModelError
from hierindex.hierarchy.transforms import SemanticHierarchy
from hierindex.llm import batch_file, batches
from hierindex.llm.attempts import ATTEMPTS
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Resources
from hierindex.summarize.two_stage import TwoStageSummarizer

DRAW = random.Random(0)
TEXTS = [f"On day {i} they spoke of {' and '.join(DRAW.sample(WORDS, 5))}." for i in range(8)]
OTHERS = [f"On night {i} they sang of {' and '.join(DRAW.sample(WORDS, 5))}." for i in range(8)]
RUNNING = Plan(("validating", "in_progress"))  # for ever
EXPIRED = Plan(("validating", "in_progress", "finalizing", "expired"), n_done=3)
CANCELLED = Plan(("in_progress", "cancelling", "cancelled"), n_done=3)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(batches, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(batches, "LONGEST_PAUSE", 0.001)


class Kept(dict):
    """Completions that are kept in a dictionary."""

    recall = dict.get

    def keep(self, key, text):
        self[key] = text


class Killed(BaseException):
    """The end of a process."""


class Mortal(httpx.BaseTransport):
    """A transport on which the process dies at a request, before or after its effect."""

    def __init__(self, last, *, after=True):
        self.last, self.after, self.n_sent = last, after, 0
        self.network = httpx.HTTPTransport()

    def handle_request(self, request):
        self.n_sent += 1
        if self.n_sent == self.last and not self.after:
            raise Killed
        response = self.network.handle_request(request)
        if self.n_sent == self.last:
            raise Killed
        return response


def llm_of(server, **settings):
    settings = {"api_base": server.base_url, "is_chat_model": True, "api_key": "k"} | settings
    return OpenAILike(**{"model": "tiny", "max_retries": 0, "context_window": 8192} | settings)


def rewriter_of(server, *, llm=None, batch=True, **settings):
    return LLMRewriter(llm_of(server, **(llm or {})), batch=batch, wait=wait_none(), **settings)


def rewrite(server, texts=TEXTS, *, resources=None, **settings):
    rewriter = rewriter_of(server, **settings)
    return rewriter.rewrite(texts, max_tokens=50, resources=resources)


def arewrite(server, texts=TEXTS, *, resources=None, **settings):
    rewriter = rewriter_of(server, **settings)
    return asyncio.run(rewriter.arewrite(texts, max_tokens=50, resources=resources))


def by_ones(texts=TEXTS, window=None):
    """What single requests give."""
    return _by_ones(tuple(texts), window)


@cache
def _by_ones(texts, window):
    with BatchServer(window=window) as server:
        return rewrite(server, texts, batch=False)


def texts_of(rewrites):
    return [each.text for each in rewrites]


def sizes(server):
    return [len(batch.lines) for batch in server.batches]


def check_paid_once(server, texts=TEXTS):
    assert [*server.paid.values()] == [1] * len({*texts})


both = pytest.mark.parametrize("rewrite", [rewrite, arewrite])


@both
@pytest.mark.parametrize("n", [0, 1, 8])
def test_a_batch_gives_what_single_requests_give(rewrite, n, tmp_path):
    """Rewrites, usage and record; and nothing is left at the service."""
    record = tmp_path / "calls.jsonl"
    with BatchServer() as server:
        rewrites = rewrite(server, TEXTS[:n], record=record)
    assert rewrites == by_ones(TEXTS[:n])
    assert (sizes(server), len(server.calls) > 0) == ([n] * bool(n), n > 0)
    assert server.requests == []
    assert server.files == {}
    lines = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    assert sorted(line["completion"] for line in lines) == sorted(texts_of(rewrites))
    check_paid_once(server, TEXTS[:n])


def test_texts_that_are_equal_or_known_are_not_sent():
    resources = Resources(completions=Kept())
    with BatchServer() as server:
        rewrite(server, [*TEXTS[:3], *TEXTS[:3]], resources=resources)
        rewrite(server, TEXTS, resources=resources)
        rewrite(server, TEXTS, resources=resources)
    assert sizes(server) == [3, 5]
    check_paid_once(server)


@pytest.mark.parametrize(
    "make",
    [
        lambda server: llm_of(server, is_chat_model=False),
        lambda server: llm_of(server, reuse_client=False),
        lambda server: llm_of(server, http_client=httpx.Client(), max_retries=3),
        lambda server: OpenAI("gpt-4o-mini", api_base=server.base_url, api_key="k"),
    ],
    ids=["completions", "new clients", "own client", "OpenAI"],
)
def test_any_model_of_openai_s_protocol_can_be_batched(make):
    with BatchServer() as server:
        rewriter = LLMRewriter(make(server), batch=True, wait=wait_none())
        rewrites = rewriter.rewrite(TEXTS, max_tokens=50)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests) == ([8], [])


def test_another_model_is_refused():
    with pytest.raises(InputError, match=r"^batch .* needs a model that .* got MockLLM\.$"):
        LLMRewriter(MockLLM(), batch=True)


def test_a_client_that_cannot_be_made_is_an_error(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    llm = OpenAI("gpt-4o-mini", api_key="k")
    llm.api_key = None
    with pytest.raises(ModelError, match=r"'gpt-4o-mini' cannot be used: .*api_key"):
        LLMRewriter(llm, batch=True)


@pytest.mark.parametrize(
    "states",
    [
        ("completed",),
        ("validating", "in_progress", "finalizing", "completed"),
        ("validating",) * 3 + ("in_progress",) * 5 + ("finalizing",) * 3 + ("completed",),
    ],
    ids=len,
)
def test_a_batch_is_awaited_and_its_state_is_told(states):
    told = []
    plan = Plan(("validating", *states))
    with BatchServer(plans=lambda number: plan) as server:
        rewrite(server, resources=Resources(lambda *at: told.append(at)))
    *waited, last = [at[3] for at in told if at[1] == 0]
    assert [text.split(", ")[0] for text in [*waited, last]] == [
        f"batch {s}" for s in plan.states[:-1]
    ]
    assert last.endswith("8 of 8 done" if "finalizing" in states else "0 of 8 done")
    assert [at[:3] for at in told if at[1]] == [("summarize", i + 1, 8) for i in range(8)]


def test_pauses_between_looks_grow(monkeypatch):
    monkeypatch.setattr(batches, "FIRST_PAUSE", 1.0)
    monkeypatch.setattr(batches, "LONGEST_PAUSE", 30.0)
    pauses, sleep = [], asyncio.sleep

    async def noted(seconds):
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(batches.asyncio, "sleep", noted)
    plan = Plan(("validating",) * 12 + ("completed",))
    with BatchServer(plans=lambda number: plan) as server:
        rewrite(server, TEXTS[:1])
    waited = [seconds for seconds in pauses if seconds >= 1]
    assert waited[:3] == [1.0, 1.5, 2.25]
    assert (len(waited), waited[-1]) == (12, 30.0)


def test_a_batch_that_fails_is_an_error_in_the_service_s_words():
    with BatchServer() as server:
        with pytest.raises(ModelError) as caught:
            rewrite(server, llm={"model": "unknown"})
        assert str(caught.value) == (
            "LLM 'unknown' rejected a batch: line 1: The model is not supported in batches "
            "(and 7 more)."
        )
        assert (server.files, server.paid) == ({}, {})


def test_a_batch_that_failed_is_sent_anew_by_the_next_build():
    with BatchServer(plans=lambda number: FAILED if number == 0 else Plan()) as server:
        with pytest.raises(ModelError, match="rejected a batch: it gives no reason"):
            rewrite(server)
        rewrite(server)
    assert (sizes(server), server.files) == ([8, 8], {})
    check_paid_once(server)


def test_a_failed_batch_of_a_killed_build_is_not_awaited():
    with BatchServer(plans=lambda number: FAILED if number == 0 else Plan()) as server:
        killed_at(server, 3)  # after the batch is made
        server.batches[0].n_looks = 1
        rewrite(server)
    assert sizes(server) == [8, 8]
    check_paid_once(server)


def test_what_is_left_of_an_expired_batch_goes_into_another():
    with BatchServer(plans=lambda number: EXPIRED if number == 0 else Plan()) as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert sizes(server) == [8, 5]
    assert (server.requests, server.files) == ([], {})
    check_paid_once(server)


def test_what_expires_again_and_again_is_asked_for_one_by_one():
    with BatchServer(plans=lambda number: EXPIRED) as server:
        rewrites = rewrite(server, [*TEXTS, *OTHERS])
    assert texts_of(rewrites) == texts_of(by_ones([*TEXTS, *OTHERS]))
    assert sizes(server) == [16, 13, 10]
    assert len(server.requests) == 7
    check_paid_once(server, [*TEXTS, *OTHERS])


def test_what_a_cancelled_batch_has_done_is_kept_for_the_next_build():
    with BatchServer(plans=lambda number: CANCELLED if number == 0 else Plan()) as server:
        with pytest.raises(ModelError, match=r"'tiny' was cancelled; the next .* the rest\."):
            rewrite(server)
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests, server.files) == ([8, 5], [], {})
    check_paid_once(server)


def for_some(fault):
    """What the first line and the fifth meet in a batch."""
    return lambda prompt: fault if TEXTS[0] in prompt or TEXTS[4] in prompt else None


@both
@pytest.mark.parametrize(
    "fault", [Fault(status) for status in (408, 409, 429, 500, 503)] + [TIMED_OUT, MISSING], ids=str
)
def test_lines_that_failed_are_asked_for_one_by_one(rewrite, fault):
    with BatchServer(line_faults=for_some(fault)) as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), len(server.requests)) == ([8], 2)
    told = 2 if fault.status in (408, 409, 429, 500, 503) and not fault.dropped else 1
    assert rewrites[0].usage.llm_calls == rewrites[4].usage.llm_calls == told
    check_paid_once(server)


@pytest.mark.parametrize("fault", [EMPTY, REFUSAL, CUT_OFF], ids=str)
def test_lines_that_are_no_summary_are_asked_for_once_more(fault):
    with BatchServer(line_faults=for_some(fault)) as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert len(server.requests) == 2
    assert [r.usage.llm_calls for r in rewrites] == [2, 1, 1, 1, 2, 1, 1, 1]


def test_a_filtered_line_fails_alone():
    with BatchServer(line_faults=for_some(FILTERED)) as server:
        rewrites = rewrite(server)
    assert [r.text is None for r in rewrites] == [True, False, False, False] * 2
    assert rewrites[0].reason == "the service refuses this text"
    assert server.requests == []


def test_lines_without_access_are_an_error():
    server = BatchServer(line_faults=for_some(Fault(401)))
    with server, pytest.raises(ModelError, match="the key is missing or wrong"):
        rewrite(server)


def test_lines_that_failed_for_want_of_credit_are_sent_in_another_batch():
    with BatchServer(line_faults=for_some(NO_QUOTA)) as server:
        with pytest.raises(ModelError, match="the quota is used up"):
            rewrite(server)
        server.line_faults = lambda prompt: None
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests, server.files) == ([8, 2], [], {})
    check_paid_once(server)


def test_a_text_that_is_too_long_is_halved():
    long = " ".join(f"In {year} the keeper wrote {year % 7} letters." for year in range(1800, 1840))
    with BatchServer(window=215) as server:
        rewrites = rewrite(server, [long, TEXTS[0]])
    assert texts_of(rewrites) == texts_of(by_ones([long, TEXTS[0]], window=215))
    assert sizes(server) == [2]
    assert len(server.requests) >= 3  # the halves, and both together


def test_lines_beyond_the_service_s_limits_go_into_further_batches(monkeypatch):
    monkeypatch.setattr(batch_file, "MOST_LINES", 3)
    with BatchServer() as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.files) == ([3, 3, 2], {})
    length = max(len(line) for line in server.paid) + 400
    monkeypatch.setattr(batch_file, "MOST_LINES", 50_000)
    monkeypatch.setattr(batch_file, "MOST_BYTES", 2 * length)
    with BatchServer() as server:
        rewrite(server)
    assert max(sizes(server)) < 8
    check_paid_once(server)


def test_a_batch_with_too_many_tokens_for_the_account_is_halved():
    with BatchServer(queue=300) as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert sizes(server) == [8, 4, 2, 2, 2, 2]
    assert (server.requests, server.files) == ([], {})
    check_paid_once(server)


def test_a_prompt_with_too_many_tokens_for_the_account_is_an_error():
    with BatchServer(queue=9) as server, pytest.raises(ModelError) as caught:
        rewrite(server)
    said = "Enqueued token limit reached for tiny. Limit: 9 enqueued tokens"
    assert str(caught.value) == f"LLM 'tiny' rejected a batch: {said}."
    assert sizes(server) == [8, 4, 2, 1]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_of_the_api_is_an_error(status):
    server = BatchServer(api_faults=lambda number: Fault(status))
    with server, pytest.raises(ModelError, match=f"HTTP status {status}"):
        rewrite(server)
    assert len(server.calls) == 1


def test_a_service_without_batches_is_an_error():
    server = BatchServer(api_faults=lambda number: Fault(404))
    with server, pytest.raises(ModelError, match=r"no Batch API at http.*; leave out --llm-batch"):
        rewrite(server)


def test_nothing_listening_is_an_error():
    with BatchServer() as server:
        pass
    with pytest.raises(ModelError, match="nothing answers"):
        rewrite(server)


@pytest.mark.parametrize("fault", [Fault(429), Fault(500), Fault(dropped=True)], ids=str)
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_requests_to_the_api_are_repeated(fault, turn):
    """Each third one fails; if its answer is lost, what it has made is found."""
    with BatchServer(api_faults=lambda n: fault if n % 3 == turn else None) as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert sizes(server) == [8]
    check_paid_once(server)


def test_a_service_that_is_away_for_a_while_is_awaited():
    def faults(number):
        return Fault(500) if 4 <= number < 4 + (batches.PATIENCE - 1) * ATTEMPTS else None

    with BatchServer(api_faults=faults) as server:
        rewrites = rewrite(server)
    assert all(texts_of(rewrites))
    check_paid_once(server)


def test_a_service_that_stays_away_is_given_up_and_its_batch_is_taken_up():
    is_away = True

    def faults(number):
        return Fault(500) if is_away and number >= 4 else None

    with BatchServer(api_faults=faults) as server:
        with pytest.raises(ModelError, match=r"Batch API failed: .*500; .*resumes where it stop"):
            rewrite(server)
        assert len(server.calls) == 4 + batches.PATIENCE * ATTEMPTS
        is_away = False
        rewrite(server)
    assert sizes(server) == [8]
    check_paid_once(server)


def test_files_that_cannot_be_deleted_are_no_failure(caplog):
    def faults(number):
        return Fault(500) if server.calls[number].startswith("DELETE") else None

    server = BatchServer(api_faults=faults)
    with server, caplog.at_level(logging.WARNING, "hierindex"):
        rewrites = rewrite(server)
    assert all(texts_of(rewrites))
    assert len(server.files) == 2
    assert len(caplog.messages) == 2
    assert "is left at the service" in caplog.text


def killed_at(server, last, *, after=True, texts=TEXTS, **settings):
    """Rewrite on a transport that dies; return whether it did, before all was written."""
    client = httpx.Client(transport=Mortal(last, after=after))
    try:
        rewrite(server, texts, llm={"http_client": client}, **settings)
    except Killed:
        return True
    return False


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_request_costs_nothing(after):
    """Whatever request the process dies at, and whether or not the request has an effect."""
    expected = texts_of(by_ones())
    for last in count(1):
        kept = Kept()
        with BatchServer() as server:
            was_killed = killed_at(server, last, after=after, resources=Resources(completions=kept))
            rewrites = rewrite(server, resources=Resources(completions=kept))
        assert texts_of(rewrites) == expected
        assert sizes(server) == [8]
        check_paid_once(server)
        if not was_killed:
            break
    assert last > 9  # upload, creation, looks, contents and deletions


@pytest.mark.parametrize("n_kept", [0, 1, 5, 7])
def test_a_kill_while_answers_are_kept_costs_nothing(n_kept):
    class Dying(Kept):
        def keep(self, key, text):
            if len(self) == n_kept:
                raise Killed
            super().keep(key, text)

    dying = Dying()
    with BatchServer() as server:
        with pytest.raises(Killed):
            rewrite(server, resources=Resources(completions=dying), concurrency=1)
        rewrites = rewrite(server, resources=Resources(completions=Kept(dying)))
    assert texts_of(rewrites) == texts_of(by_ones())
    assert sum(each.usage.cached_summaries for each in rewrites) == n_kept
    assert (sizes(server), server.files) == ([8], {})
    check_paid_once(server)


@pytest.mark.parametrize("n_looks", range(5))
def test_a_batch_is_found_in_whatever_state_it_is_meanwhile(n_looks):
    with BatchServer() as server:
        assert killed_at(server, 3)
        for _ in range(n_looks):
            server.serve("GET", "/v1/batches/batch_0", {}, b"", {})
        rewrite(server)
    assert (sizes(server), server.files) == ([8], {})
    check_paid_once(server)


@pytest.mark.parametrize("end", [EXPIRED, CANCELLED])
def test_what_ended_early_meanwhile_is_read_and_the_rest_sent(end):
    with BatchServer(plans=lambda number: end if number == 0 else Plan()) as server:
        assert killed_at(server, 3)
        for _ in range(5):
            server.serve("GET", "/v1/batches/batch_0", {}, b"", {})
        rewrite(server)
    assert (sizes(server), server.files) == ([8, 5], {})
    check_paid_once(server)


def test_a_batch_is_found_among_many():
    """Of other programs, on further pages of the list."""
    with BatchServer(page=2) as server:
        assert killed_at(server, 3)
        url, body = "/v1/completions", {"model": "m", "prompt": "Hello."}
        line = {"custom_id": "a", "method": "POST", "url": url, "body": body}
        for _ in range(7):
            other = server.add(json.dumps(line), "other.jsonl", "batch")
            server.batch({"input_file_id": other["id"], "endpoint": url})
        rewrite(server)
        assert len(server.batches) == 8
        assert [file["filename"] for file in server.files.values()] == ["other.jsonl"] * 7
    assert all(batch.n_looks == 0 for batch in server.batches[1:])
    check_paid_once(server)


def test_documents_that_changed_meanwhile_are_sent_alone():
    """The first batch stays at the service, as another build may want its other lines."""
    with BatchServer() as server:
        assert killed_at(server, 3)
        texts = [*TEXTS[:5], *OTHERS[:2]]
        rewrites = rewrite(server, texts)
        assert texts_of(rewrites) == texts_of(by_ones(texts))
        assert sizes(server) == [8, 2]
    kept = [server.batches[0].asked["input_file_id"], server.batches[0].files["output_file_id"]]
    assert [*server.files] == kept
    check_paid_once(server, [*TEXTS, *OTHERS[:2]])


def test_results_that_were_deleted_are_asked_for_again():
    with BatchServer() as server:
        assert killed_at(server, 3)
        for _ in range(4):
            server.serve("GET", "/v1/batches/batch_0", {}, b"", {})
        output = server.batches[0].files["output_file_id"]
        server.serve("DELETE", f"/v1/files/{output}", {}, b"", {})
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests) == ([8, 8], [])


def test_results_that_are_deleted_before_they_are_read_are_asked_for_again():
    def deletes(number):
        path = server.calls[number].removeprefix("GET ").removesuffix("/content")
        if number == 6:
            server.serve("DELETE", path, {}, b"", {})

    server = BatchServer(api_faults=deletes)
    with server:
        rewrites = rewrite(server)
    assert server.calls[6].endswith("/content")
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests) == ([8, 8], [])


def test_two_builds_at_once_get_all_they_ask_for():
    together, results = threading.Barrier(2, timeout=20), {}

    def build(name, texts):
        together.wait()
        results[name] = texts_of(rewrite(server, texts))

    parts = {"one": [*TEXTS, *OTHERS[:4]], "other": [*OTHERS, *TEXTS[:4]]}
    plan = Plan(("in_progress",) * 20 + ("completed",))
    with BatchServer(plans=lambda number: plan) as server:
        threads = [threading.Thread(target=build, args=part) for part in parts.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {name: texts_of(by_ones(texts)) for name, texts in parts.items()}
    assert server.requests == []


def test_a_batch_holds_no_more_than_the_token_limit():
    spent = []

    def plan(number):
        spent.append(sum(map(server.count, server.done.elements())))
        return Plan()

    server = BatchServer(plans=plan)
    with server, pytest.raises(LimitError, match="tokens of the budget are spent"):
        rewrite(server, token_limit=1000)
    assert sizes(server)
    least = min(map(server.count, server.done)) + 200  # of a request, as the limit counts it
    assert all(s + n * least <= 1000 for s, n in zip(spent, sizes(server), strict=True))
    assert sum(map(server.count, server.paid.elements())) <= 1000


@pytest.mark.parametrize(("n_texts", "limit", "n_batches"), [(8, 3000, 2), (48, 8000, 5)])
def test_with_a_token_limit_the_rest_follows_if_answers_were_short(n_texts, limit, n_batches):
    texts = [f"{text} {i}" for i in range(n_texts // 8) for text in TEXTS]
    with BatchServer() as server:
        rewrites = rewrite(server, texts, token_limit=limit)
    assert all(texts_of(rewrites))
    assert len(sizes(server)) == n_batches
    assert server.requests == []
    check_paid_once(server, texts)


def test_batches_that_run_count_for_the_token_limit():
    """Nothing is sent beside them that might exceed it."""
    before = []

    def plan(number):
        before.append([batch.status for batch in server.batches])
        return Plan()

    with BatchServer(plans=plan) as server:
        assert killed_at(server, 3, texts=TEXTS[:4])
        with pytest.raises(LimitError):
            rewrite(server, [*TEXTS[:4], *OTHERS], token_limit=1500)
    assert before[:2] == [[], ["completed"]]
    assert sum(sizes(server)) < 12


def test_a_deadline_leaves_the_batch_for_the_next_build(caplog):
    with BatchServer(plans=lambda number: RUNNING) as server:
        with caplog.at_level(logging.WARNING, "hierindex"), pytest.raises(LimitError, match="over"):
            rewrite(server, deadline=1.0)
        assert caplog.messages == [
            "LLM 'tiny' still works on a batch; the next build waits for it."
        ]
        server.continue_with(Plan())
        rewrite(server)
    assert (sizes(server), server.requests) == ([8], [])
    check_paid_once(server)


def nodes(n):
    draw = random.Random(1)
    texts = (f"On day {i} the {' met the '.join(draw.sample(WORDS, 4))}." for i in range(n))
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="a.txt")}
    return [TextNode(id_=str(i), text=t, relationships=source) for i, t in enumerate(texts)]


def tree(server, n, cache, *, batch=True, client=None, progress=None):
    """All that is known of the nodes of a tree but their vectors; each level has a third."""
    llm = llm_of(server, http_client=client)
    summarizer = TwoStageSummarizer(LLMRewriter(llm, batch=batch, wait=wait_none()), grounding=None)
    given = {"cache": cache, **({"progress": progress} if progress else {})}
    given |= {"summary_tokens": 40, "max_children": 3, "max_levels": 6}
    hierarchy = SemanticHierarchy(HashingEmbedding(), summarizer, **given)
    grown = [node.to_dict() for node in hierarchy(nodes(n))]
    return sorted(
        ({k: v for k, v in node.items() if k != "embedding"} for node in grown),
        key=lambda node: node["id_"],
    )


@pytest.mark.parametrize(
    ("n_nodes", "n_levels", "n_summaries"),
    [(100, 5, 50), pytest.param(1000, 6, 500, marks=pytest.mark.slow)],
)
def test_summaries_take_a_batch_a_level(tmp_path, n_nodes, n_levels, n_summaries):
    with BatchServer() as server:
        tree(server, n_nodes, tmp_path)
    assert (len(sizes(server)), sum(sizes(server))) == (n_levels, server.paid.total())
    assert server.paid.total() >= n_summaries
    assert (server.requests, server.files) == ([], {})


@pytest.mark.parametrize(
    "n_nodes", [100, pytest.param(1000, marks=pytest.mark.slow)], ids=["", "500 summaries"]
)
def test_a_tree_that_is_killed_at_ten_moments_pays_for_no_prompt_twice(tmp_path, n_nodes):
    """Nine requests, before they have an effect or after, and one while answers are kept."""
    with BatchServer() as single:
        expected = tree(single, n_nodes, tmp_path / "a", batch=False)
    draw = random.Random(0)
    with BatchServer() as server:
        for _ in range(9):
            transport = Mortal(draw.randint(1, 8), after=draw.random() < 0.5)
            with pytest.raises(Killed):
                tree(server, n_nodes, tmp_path / "b", client=httpx.Client(transport=transport))

        def dies(stage, done, total, cost=""):
            if cost.endswith("tokens"):  # an answer is kept
                raise Killed

        with pytest.raises(Killed):
            tree(server, n_nodes, tmp_path / "b", progress=dies)
        assert tree(server, n_nodes, tmp_path / "b") == expected
    assert server.paid == Counter(request.prompt for request in single.requests)
    assert ({*server.paid.values()}, server.requests) == ({1}, [])
