"""Summaries by OpenAI's Batch API, where requests to the API itself fail."""

import logging

import pytest
from batch_builds import TEXTS, Kept, by_ones, check_paid_once, rewrite, sizes, texts_of
from batch_service import BatchServer
from loopback import OTHER_JSON, WEB_PAGE, Fault

from hierindex.errors import ModelError
from hierindex.llm import batches
from hierindex.llm.attempts import ATTEMPTS

pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_of_the_api_is_an_error(status):
    server = BatchServer(api_faults=lambda number: Fault(status))
    with server, pytest.raises(ModelError, match=f"HTTP status {status}"):
        rewrite(server)
    assert len(server.calls) == 1


@pytest.mark.parametrize("fault", [Fault(404), WEB_PAGE, OTHER_JSON], ids=str)
@pytest.mark.parametrize("first", [0, 1], ids=["list", "upload"])
def test_a_service_without_batches_is_an_error(fault, first):
    server = BatchServer(api_faults=lambda number: fault if number >= first else None)
    with server, pytest.raises(ModelError, match=r"no Batch API at http.*; leave out --llm-batch"):
        rewrite(server)


def test_a_web_page_as_the_second_page_of_a_list_is_an_error():
    server = BatchServer(page=1, api_faults=lambda number: WEB_PAGE if number else None)
    for _ in range(2):
        server.add("", "other.jsonl", "batch")
    with server, pytest.raises(ModelError, match=r"no Batch API at http.*; leave out --llm-batch"):
        rewrite(server)


def test_nothing_listening_is_an_error():
    with BatchServer() as server:
        pass
    with pytest.raises(ModelError, match="nothing answers at http"):
        rewrite(server)


@pytest.mark.spread
@pytest.mark.parametrize("fault", [Fault(429), Fault(500), Fault(dropped=True), WEB_PAGE], ids=str)
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_requests_to_the_api_are_repeated(fault, turn):
    """Each third one fails; if its answer is lost, what it has made is found."""
    with BatchServer(api_faults=lambda n: fault if n % 3 == turn else None) as server:
        rewrites = rewrite(server)
    assert texts_of(rewrites) == texts_of(by_ones())
    assert (sizes(server), server.n_files, server.files) == ([4], 2, {})
    check_paid_once(server)


@pytest.mark.parametrize(
    ("fault", "attempts"),
    [(Fault(500), ATTEMPTS), (Fault(429, retry_after=3600), 1)],
    ids=["error", "long pause"],
)
def test_a_service_that_is_away_for_half_an_hour_is_awaited_and_named_once(fault, attempts, caplog):
    n_looks = 60  # each half a minute after the one before

    def faults(number):
        return fault if 3 <= number < 3 + n_looks * attempts else None

    with BatchServer(api_faults=faults) as server:
        rewrites = rewrite(server)
    assert all(texts_of(rewrites))
    (said,) = caplog.messages
    assert said.startswith("A look at the batches failed and is repeated: LLM 'tiny' ")
    check_paid_once(server)


@pytest.mark.parametrize(
    ("fault", "attempts", "said"),
    [
        (Fault(500), ATTEMPTS, r"Batch API failed: .*500; try again later, a build resumes "),
        (Fault(429, retry_after=3600), 1, r"asks for a pause of 3600 seconds; try again later"),
    ],
    ids=["error", "long pause"],
)
def test_a_service_that_stays_away_is_given_up_and_its_batch_is_taken_up(fault, attempts, said):
    is_away, memory = True, Kept()

    def faults(number):
        return fault if is_away and number >= 3 else None

    with BatchServer(api_faults=faults) as server:
        with pytest.raises(ModelError, match=said):
            rewrite(server, TEXTS, memory)
        assert len(server.calls) == 3 + batches.PATIENCE * attempts
        is_away = False
        rewrite(server, TEXTS, memory)
    assert (sizes(server), server.files) == ([4], {})
    check_paid_once(server)


def test_a_file_of_which_no_batch_is_made_is_deleted():
    def faults(number):
        return Fault(400) if server.calls[number] == "POST /v1/batches" else None

    server = BatchServer(api_faults=faults)
    with server, pytest.raises(ModelError, match="HTTP status 400"):
        rewrite(server)
    assert (server.n_files, server.files) == (1, {})


def test_files_that_cannot_be_deleted_are_no_failure_and_deleted_later(caplog):
    def faults(number):
        return Fault(500) if is_stuck and server.calls[number].startswith("DELETE") else None

    is_stuck, memory, server = True, Kept(), BatchServer(api_faults=faults)
    with server, caplog.at_level(logging.WARNING, "hierindex"):
        rewrites = rewrite(server, TEXTS, memory)
        assert all(texts_of(rewrites))
        assert len(server.files) == 2
        assert "is left at the service" in caplog.text
        is_stuck = False
        rewrite(server, [], memory)
    assert server.files == {}
