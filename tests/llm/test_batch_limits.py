"""Summaries by OpenAI's Batch API under limits: of a batch, of the account and of the build."""

import logging

import pytest
from batch_builds import (
    OTHERS,
    TEXTS,
    Kept,
    by_ones,
    check_paid_once,
    killed_at,
    rewrite,
    sizes,
    texts_of,
)
from batch_service import BatchServer
from batch_states import Plan

from hierindex.errors import LimitError, ModelError
from hierindex.llm import batch_file, batches

RUNNING = Plan(("validating", "in_progress"))  # for ever
EIGHT = [*TEXTS, *OTHERS]

pytestmark = pytest.mark.usefixtures("no_pauses")


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
        rewrites = rewrite(server, EIGHT)
    assert texts_of(rewrites) == texts_of(by_ones(EIGHT))
    assert (sizes(server), server.files) == ([3, 3, 2], {})
    monkeypatch.undo()
    monkeypatch.setattr(batch_file, "MOST_BYTES", n_bytes(server, 2))
    with BatchServer() as server:
        rewrite(server)
    assert max(sizes(server)) < 4
    check_paid_once(server)


def n_bytes(server, n_lines):
    """More than files of so many lines have, and less than those of one more."""
    return n_lines * (max(map(len, server.paid)) + 450)


def test_a_file_that_is_too_large_for_the_service_is_halved():
    with BatchServer() as server:
        rewrite(server)
        server.largest = n_bytes(server, 2)
        rewrites = rewrite(server, OTHERS)
    assert texts_of(rewrites) == texts_of(by_ones(OTHERS))
    assert (sizes(server), server.files) == ([4, 2, 2], {})


def test_a_prompt_that_is_too_large_for_the_service_is_an_error():
    server = BatchServer(largest=100)
    with server, pytest.raises(ModelError, match=r"file of one request, of .* bytes, is too large"):
        rewrite(server)
    assert sizes(server) == []


def test_a_batch_without_room_is_halved_and_grows_again():
    """While another program has the room, and when it has left it."""
    with BatchServer(queue=0) as server:
        made = server.batch

        def batch(asked):
            server.queue = 140 if len(server.batches) < 4 else 10_000
            return made(asked)

        server.batch = batch
        rewrites = rewrite(server, EIGHT)
    assert texts_of(rewrites) == texts_of(by_ones(EIGHT))
    assert sizes(server) == [8, 4, 2, 1, 2, 4, 1]
    assert (server.requests, server.files) == ([], {})
    check_paid_once(server, EIGHT)


def test_a_prompt_with_too_many_tokens_for_the_account_is_an_error():
    with BatchServer(queue=9) as server, pytest.raises(ModelError) as caught:
        rewrite(server)
    said = "Enqueued token limit reached for tiny. Limit: 9 enqueued tokens"
    assert str(caught.value) == f"LLM 'tiny' rejected a batch: {said}."
    assert (sizes(server), server.files) == ([4, 2, 1], {})


def test_what_has_no_room_beside_other_batches_of_a_build_waits_for_them(monkeypatch):
    monkeypatch.setattr(batch_file, "MOST_LINES", 3)
    with BatchServer(queue=3 * 140) as server:
        rewrites = rewrite(server, EIGHT)
    assert texts_of(rewrites) == texts_of(by_ones(EIGHT))
    assert sizes(server) == [3, 3, 2, 3, 2, 2]  # of which the second, third and fifth are refused
    check_paid_once(server, EIGHT)


def test_what_has_no_room_beside_batches_of_another_build_waits_for_them():
    shown, plan = [], Plan(("in_progress",) * 5 + ("completed",))
    with BatchServer(queue=4 * 140, plans=lambda number: plan) as server:
        assert killed_at(server, 3, texts=OTHERS)
        rewrites = rewrite(server, progress=lambda *at: shown.append(at))
    assert texts_of(rewrites) == texts_of(by_ones())
    waited = {at[3] for at in shown if at[1] == 0}
    assert waited == {"batch validating", "batch in_progress, 0 of 4 done"}
    assert sizes(server) == [4, 4, 4]
    assert server.batches[0].status == "completed"
    assert [file["id"] for file in server.files.values()] == ["file-1", "file-3"]


def test_a_batch_holds_no_more_than_the_token_limit():
    spent = []

    def plan(number):
        spent.append(sum(map(server.count, server.done.elements())))
        return Plan()

    server = BatchServer(plans=plan)
    with server, pytest.raises(LimitError, match="tokens of the budget are spent"):
        rewrite(server, EIGHT, token_limit=1000)
    assert sizes(server)
    least = min(map(server.count, server.done)) + 200  # of a request, as the limit counts it
    assert all(s + n * least <= 1000 for s, n in zip(spent, sizes(server), strict=True))
    assert sum(map(server.count, server.paid.elements())) <= 1000


@pytest.mark.parametrize(("n_texts", "limit", "n_batches"), [(8, 3000, 2), (24, 4500, 4)])
def test_with_a_token_limit_the_rest_follows_if_answers_were_short(n_texts, limit, n_batches):
    texts = [f"{text} {i}" for i in range(n_texts // 8) for text in EIGHT]
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
        assert killed_at(server, 3)
        with pytest.raises(LimitError):
            rewrite(server, EIGHT, token_limit=1000)
    assert before[:2] == [[], ["completed"]]
    assert sum(sizes(server)) < 8


def test_a_deadline_leaves_the_batch_for_the_next_build(caplog, monkeypatch):
    for name in ("FIRST_PAUSE", "LONGEST_PAUSE"):
        monkeypatch.setattr(batches, name, 0.05)
    memory = Kept()
    with BatchServer(plans=lambda number: RUNNING) as server:
        with caplog.at_level(logging.WARNING, "hierindex"), pytest.raises(LimitError, match="over"):
            rewrite(server, TEXTS, memory, deadline=0.3)
        assert caplog.messages == [
            "LLM 'tiny' goes on with batch_0, which it charges for; the next build with "
            "--llm-batch (in Python batch=True) uses its answers."
        ]
        server.continue_with(Plan())
        rewrite(server, TEXTS, memory)
    assert (sizes(server), server.requests, server.files) == ([4], [], {})
    check_paid_once(server)
