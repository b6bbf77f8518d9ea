"""Summaries by OpenAI's Batch API: what the service may do with a batch, a line and a request."""

import asyncio
import json
import pickle
import threading
from collections import defaultdict

import openai
import pytest
from batch_builds import (
    OTHERS,
    TEXTS,
    Kept,
    arewrite,
    by_ones,
    check_paid_once,
    llm_of,
    rewrite,
    rewriter_of,
    sizes,
    texts_of,
)
from batch_service import MISSING, NO_OBJECT, TIMED_OUT, BatchServer
from batch_states import FAILED, Plan
from llama_index.core.llms import MockLLM
from llama_index.llms.openai import OpenAI, OpenAIResponses
from llama_index.llms.openai_like import OpenAILike
from loopback import CUT_OFF, EMPTY, FILTERED, NO_QUOTA, REFUSAL, Fault
from tenacity import wait_none

from hierindex.errors import InputError, ModelError
from hierindex.llm import batch_file, batched, batches
from hierindex.llm.batch_client import Noting, client_of, through, with_client
from hierindex.scale.shared import Shared
from hierindex.summarize.llm import LLMRewriter

EXPIRED = Plan(("validating", "in_progress", "finalizing", "expired"), n_done=1)
CANCELLED = Plan(("in_progress", "cancelling", "cancelled"), n_done=1)

pytestmark = pytest.mark.usefixtures("no_pauses")
both = pytest.mark.parametrize("rewrite", [rewrite, arewrite])


@pytest.mark.parametrize(
    ("rewrite", "n"), [(rewrite, 0), (rewrite, 1), (rewrite, 4), (arewrite, 4)]
)
def test_a_batch_gives_what_single_requests_give(rewrite, n, tmp_path):
    """Rewrites, usage and record; and nothing is left at the service."""
    record = tmp_path / "calls.jsonl"
    with BatchServer() as server:
        rewrites = rewrite(server, TEXTS[:n], record=record)
    assert rewrites == by_ones(TEXTS[:n])
    assert (sizes(server), len(server.calls) > 0) == ([n] * bool(n), n > 0)
    assert (server.requests, server.files) == ([], {})
    lines = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    assert sorted(line["completion"] for line in lines) == sorted(texts_of(rewrites))
    check_paid_once(server, TEXTS[:n])


def test_parts_of_a_build_on_a_cluster_are_sent_side_by_side(tmp_path):
    """By the actor that all workers share, which gets a copy of the rewriter."""
    with BatchServer() as server:
        copy = pickle.loads(pickle.dumps(rewriter_of(server)))  # noqa: S301
        shared = Shared(str(tmp_path), None)

        async def build():
            await shared.begin(copy)
            parts = await asyncio.gather(*(shared.rewrite(t, 50) for t in (TEXTS, OTHERS)))
            await shared.finish()
            return parts

        parts = asyncio.run(build())
        asyncio.run(shared.close(None))
    assert parts == [by_ones(TEXTS), by_ones(OTHERS)]
    assert (sizes(server), server.requests, server.files) == ([4, 4], [], {})


def test_texts_that_are_equal_or_known_are_not_sent():
    memory = Kept()
    with BatchServer() as server:
        rewrite(server, [*TEXTS[:3], *TEXTS[:3]], memory)
        rewrite(server, TEXTS, memory)
        n_calls = len(server.calls)
        rewrite(server, TEXTS, memory)
    assert (sizes(server), len(server.calls)) == ([3, 1], n_calls)
    check_paid_once(server)


@pytest.mark.parametrize(
    "make",
    [
        lambda server: llm_of(server, is_chat_model=False),
        lambda server: llm_of(server, reuse_client=False, http_client=None, max_retries=3),
        lambda server: OpenAI("gpt-4o-mini", api_base=server.base_url, api_key="k"),
        lambda server: OpenAIResponses("gpt-4o-mini", api_base=server.base_url, api_key="k"),
    ],
    ids=["completions", "new clients", "OpenAI", "OpenAIResponses"],
)
def test_any_model_of_openai_s_protocol_can_be_batched(make):
    with BatchServer() as server:
        rewriter = LLMRewriter(make(server), batch=True, wait=wait_none())
        rewrites = rewriter.rewrite(TEXTS, max_tokens=50)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests) == ([4], [])


@pytest.mark.parametrize(
    "address", ["https://openrouter.ai/api/v1", "https://127.0.0.1/v1/", "https://127.0.0.1"]
)
def test_requests_have_the_paths_of_openai_at_any_address(address):
    model = OpenAILike(model="m", api_base=address, api_key="k", is_chat_model=True, max_retries=0)
    llm = with_client(model)
    notes = Noting(client_of(llm))
    assert notes.line(through(llm, notes).complete, "Hello.").url == "/v1/chat/completions"


class Elsewhere(OpenAILike):
    """A model with a client of OpenAI that asks another path."""

    def complete(self, prompt, **options):
        return self._get_client().post("/generate", body={"prompt": prompt}, cast_to=str)


class Alone(OpenAILike):
    """A model that asks without its client."""

    def complete(self, prompt, **options):
        return "Here."


def of_azure():
    azure = openai.AzureOpenAI(api_version="1", api_key="k", azure_endpoint="http://127.0.0.1")
    return OpenAIResponses("gpt-4o-mini", api_key="k", openai_client=azure)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (MockLLM, r"needs a model that speaks OpenAI's protocol, got MockLLM"),
        (lambda: Elsewhere(model="m", api_key="k"), r"needs a model that .*, got Elsewhere"),
        (lambda: Alone(model="m", api_key="k"), r"needs a model that .*, got Alone"),
        (of_azure, r"needs the Batch API as .*, which OpenAIResponses with its AzureOpenAI .*"),
    ],
    ids=["no client", "another path", "client not used", "Azure"],
)
def test_another_model_is_refused(make, said):
    with pytest.raises(InputError, match=rf"^batch \(--llm-batch\) {said}\.$"):
        LLMRewriter(make(), batch=True)


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
        ("validating",) * 2 + ("in_progress",) * 3 + ("finalizing",) * 2 + ("completed",),
    ],
    ids=len,
)
def test_a_batch_is_awaited_and_its_state_is_shown(states):
    shown, plan = [], Plan(("validating", *states))
    with BatchServer(plans=lambda number: plan) as server:
        rewrite(server, progress=lambda *at: shown.append(at))
    *waited, last = [at[3] for at in shown if at[1] == 0]
    assert [text.split(", ")[0] for text in [*waited, last]] == [
        f"batch {s}" for s in plan.states[:-1]
    ]
    assert last == ("batch finalizing, 4 of 4 done" if states[1:] else "batch validating")
    assert [at[:3] for at in shown if at[1]] == [("summarize", i + 1, 4) for i in range(4)]


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
            "(and 3 more)."
        )
        assert (server.files, server.paid) == ({}, {})


def test_a_batch_that_failed_is_sent_anew_by_the_next_build():
    with BatchServer(plans=lambda number: FAILED if number == 0 else Plan()) as server:
        with pytest.raises(ModelError, match="rejected a batch: it gives no reason"):
            rewrite(server)
        rewrite(server)
    assert (sizes(server), server.files) == ([4, 4], {})
    check_paid_once(server)


def test_what_is_left_of_an_expired_batch_goes_into_another():
    with BatchServer(plans=lambda number: EXPIRED if number == 0 else Plan()) as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests, server.files) == ([4, 3], [], {})
    check_paid_once(server)


def test_what_expires_again_and_again_is_asked_for_one_by_one():
    with BatchServer(plans=lambda number: EXPIRED) as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), len(server.requests)) == ([4, 3, 2], 1)
    check_paid_once(server)


def test_what_a_cancelled_batch_has_done_is_kept_for_the_next_build():
    memory = Kept()
    with BatchServer(plans=lambda number: CANCELLED if number == 0 else Plan()) as server:
        with pytest.raises(ModelError, match=r"'tiny' was cancelled; the next .* the rest\."):
            rewrite(server, TEXTS, memory)
        rewrites = rewrite(server, TEXTS, memory)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests, server.files) == ([4, 3], [], {})
    check_paid_once(server)


def for_some(fault):
    """What the first line and the third meet in a batch."""
    return lambda prompt: fault if TEXTS[0] in prompt or TEXTS[2] in prompt else None


@both
@pytest.mark.spread
@pytest.mark.parametrize(
    ("fault", "n_calls"),
    [
        *((Fault(status), 2) for status in (408, 409, 429, 500, 503)),
        *((fault, 1) for fault in (TIMED_OUT, MISSING, NO_OBJECT)),
    ],
    ids=str,
)
def test_lines_that_failed_are_asked_for_one_by_one(rewrite, fault, n_calls):
    with BatchServer(line_faults=for_some(fault)) as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), len(server.requests)) == ([4], 2)
    assert [r.usage.llm_calls for r in rewrites] == [n_calls, 1] * 2
    check_paid_once(server)


@pytest.mark.parametrize("fault", [EMPTY, REFUSAL, CUT_OFF], ids=str)
def test_lines_that_are_no_summary_are_asked_for_once_more(fault):
    with BatchServer(line_faults=for_some(fault)) as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert len(server.requests) == 2
    assert [r.usage.llm_calls for r in rewrites] == [2, 1, 2, 1]


def test_a_filtered_line_fails_alone():
    with BatchServer(line_faults=for_some(FILTERED)) as server:
        rewrites = rewrite(server)
    assert [r.text is None for r in rewrites] == [True, False] * 2
    assert rewrites[0].reason == "the service refuses this text"
    assert server.requests == []


def test_lines_without_access_are_an_error():
    server = BatchServer(line_faults=for_some(Fault(401)))
    with server, pytest.raises(ModelError, match="the key is missing or wrong"):
        rewrite(server)


def test_lines_that_failed_for_want_of_credit_are_sent_in_another_batch():
    memory = Kept()
    with BatchServer(line_faults=for_some(NO_QUOTA)) as server:
        with pytest.raises(ModelError, match="the quota is used up"):
            rewrite(server, TEXTS, memory)
        server.line_faults = lambda prompt: None
        rewrites = rewrite(server, TEXTS, memory)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests, server.files) == ([4, 2], [], {})
    check_paid_once(server)


def test_files_are_read_and_tokens_counted_beside_the_event_loop(monkeypatch):
    """So that other tasks go on, for files of 200 MB and 50,000 prompts."""
    threads = defaultdict(set)

    def noting(owner, name):
        function = getattr(owner, name)

        def noted(*args):
            threads[name].add(threading.get_ident())
            return function(*args)

        monkeypatch.setattr(owner, name, noted)

    noting(batch_file, "digest")
    noting(batch_file.Line, "to_json")
    noting(batched.BatchedModel, "_within_limit")
    noting(batches.BatchApi, "lines")
    with BatchServer() as server:
        arewrite(server, token_limit=10_000)
    assert threads.keys() == {"digest", "to_json", "_within_limit", "lines"}
    assert threading.get_ident() not in set.union(*threads.values())
