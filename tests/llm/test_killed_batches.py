"""Batches that outlive their build: what the next one takes over, and what is left of documents."""

import json
import threading
import time
from itertools import count

import pytest
from batch_builds import (
    OTHERS,
    TEXTS,
    Kept,
    Killed,
    by_ones,
    check_paid_once,
    killed_at,
    look,
    rewrite,
    rewriter_of,
    sizes,
    texts_of,
)
from batch_service import BatchServer
from batch_states import FAILED, Plan
from loopback import Fault

from hierindex.llm.batch_owner import ABANDONED
from hierindex.summarize.summary import Resources

EXPIRED = Plan(("validating", "in_progress", "expired"), n_done=1)
CANCELLED = Plan(("in_progress", "cancelling", "cancelled"), n_done=1)
NO_BATCH, IS_FAILED = 2, 3  # last requests of builds that leave this

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.mark.parametrize("after", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_kill_at_any_request_costs_and_leaves_nothing(after):
    """Whatever request the process dies at, and whether or not the request has an effect."""
    texts = TEXTS[:1]
    for last in count(1):
        memory = Kept()
        with BatchServer() as server:
            was_killed = killed_at(server, last, after=after, texts=texts, memory=memory)
            rewrites = rewrite(server, texts, memory)
        assert texts_of(rewrites) == texts_of(by_ones(texts))
        assert (sizes(server), server.files) == ([1], {})
        check_paid_once(server, texts)
        if not was_killed:
            break
    assert last > 9  # upload, creation, looks, contents and deletions


@pytest.mark.parametrize("n_kept", [0, 1, 3])
def test_a_kill_while_answers_are_kept_costs_nothing(n_kept):
    class Dying(Kept):
        def keep(self, key, text):
            if self.n_completions == n_kept and "passages" in text:
                raise Killed
            super().keep(key, text)

    dying = Dying()
    with BatchServer() as server:
        with pytest.raises(Killed):
            rewrite(server, TEXTS, dying, concurrency=1)
        rewrites = rewrite(server, TEXTS, Kept(dying))
    assert texts_of(rewrites) == texts_of(by_ones())
    assert sum(each.usage.cached_summaries for each in rewrites) == n_kept
    assert (sizes(server), server.files) == ([4], {})
    check_paid_once(server)


@pytest.mark.parametrize("n_looks", [0, 2, 4])
def test_a_batch_is_found_in_whatever_state_it_is_meanwhile(n_looks):
    memory = Kept()
    with BatchServer() as server:
        assert killed_at(server, 3, memory=memory)
        look(server, n_looks)
        rewrite(server, TEXTS, memory)
    assert (sizes(server), server.files) == ([4], {})
    check_paid_once(server)


@pytest.mark.parametrize("end", [EXPIRED, CANCELLED])
def test_what_ended_early_meanwhile_is_read_and_the_rest_sent(end):
    memory = Kept()
    with BatchServer(plans=lambda number: end if number == 0 else Plan()) as server:
        assert killed_at(server, 3, memory=memory)
        look(server, 3)
        rewrite(server, TEXTS, memory)
    assert (sizes(server), server.files) == ([4, 3], {})
    check_paid_once(server)


def test_a_batch_is_found_among_many():
    """Of other programs, on further pages of the list; their files stay."""
    memory = Kept()
    with BatchServer(page=2) as server:
        assert killed_at(server, 3, memory=memory)
        url, body = "/v1/completions", {"model": "m", "prompt": "Hello."}
        line = {"custom_id": "a", "method": "POST", "url": url, "body": body}
        for _ in range(5):
            other = server.add(json.dumps(line), "other.jsonl", "batch")
            server.batch({"input_file_id": other["id"], "endpoint": url})
        rewrite(server, TEXTS, memory)
        assert len(server.batches) == 6
        assert [file["filename"] for file in server.files.values()] == ["other.jsonl"] * 5
    assert all(batch.n_looks == 0 for batch in server.batches[1:])
    check_paid_once(server)


def test_services_that_send_the_whole_list_for_each_page_are_understood():
    memory, calls = Kept(), 100
    server = BatchServer(page=None, api_faults=lambda n: Fault(401) if n > calls else None)
    with server:
        assert killed_at(server, 3, memory=memory)
        rewrite(server, TEXTS, memory)
    assert (sizes(server), server.files) == ([4], {})
    check_paid_once(server)


@pytest.mark.parametrize(
    "changed",
    [{"llm": {"temperature": 0.7}}, {"llm": {"model": "small"}}, {"prompt": "Shorten: {text}"}],
    ids=str,
)
def test_a_batch_of_other_requests_is_not_taken_for_one_s_own(changed):
    """Of the same texts, for a model, a setting or a prompt that was changed meanwhile."""
    memory = Kept()
    with BatchServer() as server:
        assert killed_at(server, 3, memory=memory)
        rewrites = rewrite(server, TEXTS, memory, **changed)
        assert [*server.files] == ["file-1"]  # as its batch runs
        assert server.batches[0].n_looks == 0
        look(server, 4)
        rewrite(server, TEXTS, memory)
    with BatchServer() as single:
        assert texts_of(rewrites) == texts_of(rewrite(single, batch=False, **changed))
    assert (sizes(server), server.requests, server.files) == ([4, 4], [], {})


def test_documents_that_changed_meanwhile_are_sent_alone():
    """The first batch is kept until the build has all it needs."""
    memory, texts = Kept(), [*TEXTS[:3], *OTHERS[:2]]
    with BatchServer() as server:
        assert killed_at(server, 3, memory=memory)
        rewriter, resources = rewriter_of(server), Resources(completions=memory)
        rewrites = rewriter.rewrite(texts, max_tokens=50, resources=resources)
        assert texts_of(rewrites) == texts_of(by_ones(texts))
        first = server.batches[0]
        assert [*server.files] == [first.asked["input_file_id"], first.files["output_file_id"]]
        rewriter.finish(resources)
    assert (sizes(server), server.files) == ([4, 2], {})
    check_paid_once(server, [*TEXTS, *OTHERS[:2]])


def test_a_failed_batch_of_a_killed_build_is_not_awaited_and_its_file_is_deleted():
    memory = Kept()
    with BatchServer(plans=lambda number: FAILED if number == 0 else Plan()) as server:
        assert killed_at(server, 3, memory=memory)
        look(server)
        rewrite(server, TEXTS, memory)
    assert (sizes(server), server.files) == ([4, 4], {})
    check_paid_once(server)


def test_a_file_without_a_batch_is_deleted_by_a_build_of_other_documents():
    memory = Kept()
    with BatchServer() as server:
        assert killed_at(server, 2, memory=memory)
        assert len(server.files) == 1
        rewrite(server, OTHERS, memory)
    assert (sizes(server), server.files) == ([4], {})


def test_what_a_killed_build_left_is_deleted_by_one_that_asks_nothing():
    memory = Kept()
    with BatchServer() as server:
        assert killed_at(server, 3, memory=memory)
        look(server, 4)
        rewrite(server, [], memory)
        assert server.files == {}
        n_calls = len(server.calls)
        rewrite(server, [], memory)
    assert len(server.calls) == n_calls


def test_a_batch_that_runs_keeps_its_file_until_a_later_build():
    memory = Kept()
    with BatchServer() as server:
        assert killed_at(server, 3, memory=memory)
        rewrite(server, OTHERS, memory)
        assert [*server.files] == ["file-1"]
        look(server, 4)
        rewrite(server, [], memory)
    assert server.files == {}


@pytest.mark.parametrize(
    ("last", "age", "is_left"),
    [
        (NO_BATCH, 0, True),
        (NO_BATCH, ABANDONED - 60, True),
        (NO_BATCH, ABANDONED + 60, False),
        (IS_FAILED, 0, True),
        (IS_FAILED, ABANDONED + 60, False),
    ],
)
def test_files_of_another_index_stay_for_two_days(last, age, is_left):
    """A build that runs beside may need them."""
    with BatchServer(plans=lambda number: FAILED) as server:
        server.now = lambda: time.time() - age
        assert killed_at(server, last, texts=TEXTS[:1], memory=Kept())
        if last == IS_FAILED:
            look(server)
        server.now, server.plans = time.time, lambda number: Plan()
        rewrite(server, OTHERS[:1], Kept())
    assert [*server.files] == ["file-1"] * is_left


def test_answers_for_another_index_stay():
    other = Kept()
    with BatchServer() as server:
        assert killed_at(server, 3, memory=other)
        look(server, 4)
        rewrites = rewrite(server, TEXTS, Kept())
        assert len(server.files) == 2
        rewrite(server, TEXTS, other)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.files) == ([4], {})
    check_paid_once(server)


def test_an_upload_whose_answer_is_lost_is_found():
    server = BatchServer(api_faults=lambda number: Fault(dropped=True) if number == 1 else None)
    with server:
        rewrite(server)
    assert (sizes(server), server.n_files, server.files) == ([4], 2, {})


def test_results_that_were_deleted_are_asked_for_again():
    memory = Kept()
    with BatchServer() as server:
        assert killed_at(server, 3, memory=memory)
        look(server, 4)
        output = server.batches[0].files["output_file_id"]
        server.serve("DELETE", f"/v1/files/{output}", {}, b"", {})
        rewrites = rewrite(server, TEXTS, memory)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests, server.files) == ([4, 4], [], {})


def test_results_that_are_deleted_before_they_are_read_are_asked_for_again():
    deleted = []

    def deletes(number):
        call = server.calls[number]
        if call.endswith("/content") and not deleted:
            deleted.append(call)
            path = call.removeprefix("GET ").removesuffix("/content")
            server.serve("DELETE", path, {}, b"", {})

    server = BatchServer(api_faults=deletes)
    with server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.requests, server.files) == ([4, 4], [], {})


def test_a_file_of_a_call_that_goes_on_stays_also_without_its_batch():
    """While another call for the same index finds it, and deletes what is left of ended ones."""
    memory, others = Kept(), []

    def beside(number):
        if server.calls[number] == "POST /v1/batches" and not others:
            others.append("begun")
            others[:] = rewrite(server, OTHERS, memory)

    server = BatchServer(api_faults=beside)
    with server:
        rewrites = rewrite(server, TEXTS, memory)
    assert texts_of([*rewrites, *others]) == texts_of(by_ones([*TEXTS, *OTHERS]))
    assert (sizes(server), server.requests, server.files) == ([4, 4], [], {})


@pytest.mark.parametrize("shares", [False, True], ids=["two indexes", "one index"])
def test_two_builds_at_once_get_all_they_ask_for(shares):
    together, results, memory = threading.Barrier(2, timeout=20), {}, Kept()

    def build(name, texts):
        together.wait()
        results[name] = texts_of(rewrite(server, texts, memory if shares else Kept()))

    parts = {"one": [*TEXTS, *OTHERS[:2]], "other": [*OTHERS, *TEXTS[:2]]}
    plan = Plan(("in_progress",) * 5 + ("completed",))
    with BatchServer(plans=lambda number: plan) as server:
        threads = [threading.Thread(target=build, args=part) for part in parts.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {name: texts_of(by_ones(texts)) for name, texts in parts.items()}
    assert server.requests == []
