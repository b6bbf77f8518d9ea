"""A server of questions through publishes, deletions and its end."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from threading import Event, Thread
from urllib.parse import urlsplit

import httpx
import pytest
from agent import agent
from fakes import HashingEmbedding
from processes import PATIENCE, until
from records import replace_all
from serve.conftest import Http
from store.trees import chunks, documents

import hierindex.index
from hierindex import HierarchicalIndex, SemanticHierarchy
from hierindex.serve import serve

RETRIEVE = "/retrieve"
ASKED = {
    "question": "the harbour of a1",
    "mode": "collapsed",
    "top_k": 50,
    "token_budget": 10_000,
}


@pytest.fixture
def asking(own) -> Iterator[Http]:
    with serve(own, 0) as server, Http(base_url=server.url, timeout=PATIENCE) as http:
        yield http


def documents_in(found: dict) -> set[str]:
    return {place["document"] for node in found["nodes"] for place in node["citations"]}


def test_each_answer_is_of_the_newest_generation(own, asking) -> None:
    node, *_ = own.store.get_nodes()
    for i in range(3):
        text = f"The zeppelin number {i} met the harbour."
        own.store.add([node.model_copy(update={"text": text})])
        found = asking.ask(RETRIEVE, **ASKED)["nodes"]
        assert [each["text"] for each in found if "zeppelin" in each["text"]] == [text]
        answer = asking.post("/show", json={"node": node.node_id})
        assert answer.json()["text"] == text
        assert answer.headers["hierindex-generation"] == str(i + 2)


def test_an_index_of_another_model_is_asked_with_that_one(own, monkeypatch) -> None:
    loaded = []

    def load(name, **options):
        loaded.append(name)
        return HashingEmbedding(model_name=name, dim=64 if name == "hashing" else 32)

    monkeypatch.setattr(hierindex.index, "load_encoder", load)
    other = load("other")
    loaded.clear()
    opened = HierarchicalIndex.open(own.store.uri)
    with serve(opened, 0) as server, Http(base_url=server.url, timeout=PATIENCE) as asking:
        assert asking.ask(RETRIEVE, **ASKED)["nodes"]
        grow = SemanticHierarchy(embed_model=other)
        replace_all(own.store, grow([chunk for each in documents() for chunk in chunks(each)]))
        for _ in range(2):
            assert asking.ask(RETRIEVE, **ASKED)["nodes"]
    assert loaded == ["hashing", "other"]


def over_http(url: str, opened: ExitStack) -> int:
    """The generation that a server answers from; the connection is kept."""
    client = opened.enter_context(httpx.Client(base_url=url, timeout=PATIENCE))
    (path,) = (path for path in ("/health", "/api/index") if client.get(path).is_success)
    return client.get(path).json()["generation"]


def over_mcp(url: str, opened: ExitStack) -> int:
    with agent(url) as client:
        return client.reply("outline")["generation"]


COMMANDS = {
    "serve": ((), "Answering questions on index", over_http),
    "explore": (("--no-browser",), "Exploring index", over_http),
    "mcp": (("--http",), "Serving", over_mcp),
}


@pytest.mark.spread
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_serves_until_it_is_stopped(serving, tmp_path, command, number) -> None:
    options, says, generation = COMMANDS[command]
    with serving(command, "--index", "index", "--port", "0", *options) as (process, said):
        at = r"(http://127.0.0.1:\d+/(?:mcp)?)"
        (url,) = re.fullmatch(rf"hierindex: {says} until Ctrl-C, at {at}\n", said).groups()
        with ExitStack() as opened:
            assert generation(url, opened) == 1
            os.kill(process.pid, number)
            process.join(PATIENCE)
        assert process.exitcode == 0
    assert (tmp_path / "err").read_text() == f"{said}hierindex: Stopped.\n"
    assert (tmp_path / "out").read_text() == ""


def test_what_was_sent_is_answered_before_the_command_ends(serving) -> None:
    with serving("serve", "--index", "index", "--port", "0") as (process, said):
        url = urlsplit(said.split()[-1])
        with ExitStack() as opened:
            address = url.hostname, url.port
            asking = [opened.enter_context(closing(HTTPConnection(*address))) for _ in range(4)]
            for connection in asking:
                connection.request("GET", "/health")
                connection.getresponse().read()
            for connection in asking:
                connection.request("POST", "/outline", "{}")
            time.sleep(0.2)  # until they are read; others are not answered
            os.kill(process.pid, signal.SIGTERM)
            assert [connection.getresponse().status for connection in asking] == [200] * 4


def test_what_is_being_answered_is_finished(own, monkeypatch) -> None:
    asking, go_on, replies = Event(), Event(), []

    def slow(self, query):
        asking.set()
        assert go_on.wait(PATIENCE)
        return self._vector(query)

    with serve(own, 0) as server, Http(base_url=server.url, timeout=PATIENCE) as http:
        http.ask(RETRIEVE, **ASKED)
        monkeypatch.setattr(HashingEmbedding, "_get_query_embedding", slow)
        client = Thread(target=lambda: replies.append(http.ask(RETRIEVE, **ASKED)))
        client.start()
        assert asking.wait(PATIENCE)
        closing = Thread(target=server.close)
        closing.start()
        until(lambda: not is_open(server.url))
        go_on.set()
        client.join(PATIENCE)
        closing.join(PATIENCE)
    assert replies[0]["nodes"]


def is_open(url: str) -> bool:
    try:
        return httpx.get(f"{url}health").is_success
    except httpx.HTTPError:
        return False
