"""A server of several indexes, whose answers a language model may write, piece by piece."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx
import pytest
from clients import llm_of
from fakes import HashingEmbedding
from indexes import built
from loopback import Fault, LoopbackServer, quotes_sentences
from processes import PATIENCE
from serve.conftest import Http

from hierindex import HierarchicalIndex
from hierindex.errors import InputError
from hierindex.serve import serve

QUESTION = {"question": "Who met the harbour?"}


def events(text: str) -> list[tuple[str, dict]]:
    """The names and the data of events."""
    found = re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)
    assert "".join(f"event: {name}\ndata: {data}\n\n" for name, data in found) == text
    return [(name, json.loads(data)) for name, data in found]


def streamed(url: str, path: str, asked: dict) -> httpx.Response:
    accept = {"Accept": "text/event-stream"}
    return httpx.post(f"{url}{path}", json=asked, headers=accept, timeout=PATIENCE)


@pytest.fixture
def other(tmp_path) -> HierarchicalIndex:
    """An index of one document, of otters."""
    text = " ".join(f"The otter sold a boat on day {day}." for day in range(40))
    return built({"otters.txt": text}, tmp_path / "otters")


@pytest.fixture
def both(own, other):
    with (
        serve({"met": own, "sold": other}, 0) as server,
        Http(base_url=server.url, timeout=PATIENCE) as asking,
    ):
        yield asking


def test_each_request_names_one_index_and_reads_no_other(both) -> None:
    met = {"a.txt", "b.txt", "c.txt", "d.txt"}
    for name, documents in {"met": met, "sold": {"otters.txt"}}.items():
        found = both.ask(f"/{name}/retrieve", question="otter harbour", top_k=50)["nodes"]
        read = {place["document"] for node in found for place in node["citations"]}
        assert read
        assert read <= documents
        assert both.get(f"/{name}/health").json()["generation"] == 1
    said = both.sentence("/bought/query", 404, **QUESTION)
    assert said == "There is no index 'bought'; there are met, sold: POST /bought/query."
    assert both.post("/query", json=QUESTION).status_code == 404


def test_the_description_names_the_indexes(both) -> None:
    for path, operations in both.get("/openapi.json").json()["paths"].items():
        assert path.startswith("/{index}/")
        (named,) = operations["parameters"]
        assert named["schema"]["enum"] == ["met", "sold"]
    assert "POST /{index}/query" in both.get("/").text


@pytest.mark.parametrize("names", [["a/b"], ["", "b"], ["a b"], [".."]])
def test_a_name_that_no_address_can_have_is_refused(own, names) -> None:
    with pytest.raises(InputError, match="An index's name must be of letters"):
        serve(dict.fromkeys(names, own), 0)


def test_models_of_several_indexes_are_loaded_once(own, other, monkeypatch) -> None:
    loaded = []
    monkeypatch.setattr(
        "hierindex.index.load_encoder",
        lambda name, **_: loaded.append(name) or HashingEmbedding(),
    )
    opened = {name: HierarchicalIndex.open(i.table.uri) for name, i in [("a", own), ("b", other)]}
    with serve(opened, 0) as server, Http(base_url=server.url, timeout=PATIENCE) as asking:
        for name in opened:
            assert asking.ask(f"/{name}/retrieve", **QUESTION)["nodes"]
    assert loaded == ["hashing"]


def test_other_methods_are_told_which_one_is_allowed(both) -> None:
    for method in ("GET", "PUT", "TRACE"):
        answer = both.request(method, "/met/query")
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.fixture
def service():
    """A language model whose first answer breaks off if `faults` says so."""
    with LoopbackServer(reply=quotes_sentences) as service:
        yield service


@pytest.fixture
def written(own, service):
    """The address of a server whose answers the model writes."""
    with serve(own, 0, llm=llm_of(service, model="served")) as server:
        yield server.url


def test_a_language_model_answers_and_its_text_comes_as_it_is_written(written, service) -> None:
    whole = httpx.post(f"{written}query", json=QUESTION, timeout=PATIENCE).json()
    assert whole["answer_kind"] == "llm"
    assert whole["usage"]["llm_calls"] == len(service.requests) > 0
    got = streamed(written, "query", QUESTION)
    assert got.headers["content-type"].startswith("text/event-stream")
    assert got.headers["hierindex-generation"] == "1"
    *pieces, (name, answer) = events(got.text)
    assert {name for name, _ in pieces} == {"text"}
    assert len(pieces) > 3
    assert all(piece["text"] for _, piece in pieces)
    assert name == "answer"
    text = "".join(piece["text"] for _, piece in pieces)
    bare = [re.sub(r" *\[.*?\]", "", each).split() for each in (answer["answer"], text)]
    assert bare[0] == bare[1]
    numbers = re.findall(r"\[(\d+)[*?]?\]", answer["answer"])
    assert sorted(map(int, numbers)) == [*range(1, len(answer["citations"]) + 1)]
    assert answer["sources"] == whole["sources"]


def test_a_function_may_answer(own) -> None:
    with serve(own, 0, llm=lambda prompt: "The harbour met a lantern.") as server:
        answer = httpx.post(f"{server.url}query", json=QUESTION, timeout=PATIENCE).json()
    assert answer["answer"] == "The harbour met a lantern [1*]."
    with pytest.raises(InputError, match="llm must be one of LlamaIndex's models or a function"):
        serve(own, 0, llm=7)
    with serve(own, 0, llm=lambda prompt: None) as server:
        answer = httpx.post(f"{server.url}query", json=QUESTION, timeout=PATIENCE)
    assert (answer.status_code, "must return text, got None" in answer.text) == (503, True)


@pytest.mark.parametrize("given", ["my-index", {}, {"a": "my-index"}, None])
def test_what_is_no_index_is_not_served(given) -> None:
    with pytest.raises(InputError, match="index must be a HierarchicalIndex, or several by their"):
        serve(given, 0)


@pytest.mark.parametrize("accepted", ["application/json", "text/event-stream"])
def test_nothing_is_asked_for_a_client_that_is_gone(own, accepted) -> None:
    begun, go_on, asked = Event(), Event(), []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        begun.set()
        assert go_on.wait(PATIENCE)
        return "[1]"

    body = {**QUESTION, "response_mode": "accumulate", "level": 0}
    with serve(own, 0, llm=answer) as server, ThreadPoolExecutor() as pool:
        timeout = httpx.Timeout(PATIENCE, read=2)
        headers = {"Accept": accepted}
        leaving = pool.submit(
            httpx.post, f"{server.url}query", json=body, headers=headers, timeout=timeout
        )
        assert begun.wait(PATIENCE)
        assert isinstance(leaving.exception(), httpx.ReadTimeout)
        assert httpx.get(f"{server.url}health").status_code == 200  # it has seen that it is gone
        n_begun = len(asked)
        go_on.set()
        time.sleep(0.5)
        assert len(asked) == n_begun


def test_a_model_that_is_slow_holds_up_no_other_endpoint_and_no_place_of_who_is_gone(
    own, monkeypatch
) -> None:
    monkeypatch.setattr("hierindex.serve.app.AT_ONCE", 1)
    begun, go_on = Event(), Event()

    def answer(prompt: str) -> str:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(PATIENCE)
        return "[1]"

    with serve(own, 0, llm=answer) as server, ThreadPoolExecutor() as pool:
        timeout = httpx.Timeout(PATIENCE, read=2)
        leaving = pool.submit(httpx.post, f"{server.url}query", json=QUESTION, timeout=timeout)
        assert begun.wait(PATIENCE)
        assert httpx.get(f"{server.url}health", timeout=1).status_code == 200
        assert not leaving.done()
        assert isinstance(leaving.exception(), httpx.ReadTimeout)
        later = httpx.post(f"{server.url}query", json=QUESTION, timeout=PATIENCE)
        assert not go_on.is_set()
        assert later.json()["answer_kind"] == "llm"
        go_on.set()


def test_a_request_may_ask_for_passages_instead(written, service) -> None:
    asked = {**QUESTION, "response_mode": "extractive"}
    quoted = httpx.post(f"{written}query", json=asked, timeout=PATIENCE).json()
    assert quoted["answer_kind"] == "extractive"
    assert not service.requests


def test_an_extract_is_one_piece(http) -> None:
    (name, piece), (last, answer) = events(streamed(http.base_url, "query", QUESTION).text)
    assert (name, last) == ("text", "answer")
    assert piece["text"] == answer["answer"] == http.ask("/query", **QUESTION)["answer"]
    (found,) = events(streamed(http.base_url, "retrieve", QUESTION).text)
    assert found == ("answer", http.ask("/retrieve", **QUESTION))


def test_an_error_has_its_status_unless_text_was_sent(written, service) -> None:
    service.faults = lambda number: Fault(401) if number else Fault(dropped=True)
    (name, piece), *_, (last, error) = events(streamed(written, "query", QUESTION).text)
    assert (name, last) == ("text", "error")
    assert piece["text"]
    assert "failed to answer" in error["error"]
    refused = streamed(written, "query", QUESTION)
    assert refused.status_code == 503
    assert "the key is missing or wrong" in refused.json()["error"]
    refused = streamed(written, "query", {**QUESTION, "level": 9})
    assert refused.status_code == 404
    assert "levels 0 to" in refused.json()["error"]


def test_the_command_serves_several_indexes(serving) -> None:
    with serving("serve", "--index", "a=index", "--index", "b=./index", "--port", "0") as (_, said):
        (url,) = re.fullmatch(
            r".* on a=index, b=./index until .* at (http://\S+/)\n", said
        ).groups()
        for name in ("a", "b"):
            assert httpx.get(f"{url}{name}/health").json()["generation"] == 1


def test_the_command_says_which_model_answers_and_no_password(serving) -> None:
    model = ("--llm", "m", "--llm-base-url", "http://ada:secret@127.0.0.1:9/v1")
    with serving("serve", "--index", "index", "--port", "0", *model) as (_, said):
        assert said.startswith("hierindex: note: m at http://127.0.0.1:9/v1 writes the answers.")
        assert "secret" not in said


@pytest.mark.spread
@pytest.mark.parametrize("command", ["serve", "mcp"])
@pytest.mark.parametrize(
    ("indexes", "said"),
    [
        (["index", "index"], "Several indexes need names: --index NAME=DIR, got 'index'."),
        (["a=index", "a=other"], "The name 'a' is given twice; each index needs its own."),
        (["a=index", "b=nothing"], "'nothing' holds no index; build one with "),
    ],
)
def test_several_indexes_need_names(
    run, own, tmp_path, monkeypatch, command, indexes, said
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [part for index in indexes for part in ("--index", index)]
    status, _, error = run(command, *given)
    assert status == 2
    assert said in error


def test_a_folder_may_have_the_form_of_a_name(run, own, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(own.table.uri).rename("year=2024")
    _, _, error = run("serve", "--index", "year=2024", "--port", "-1")
    assert "Cannot listen" in error
