"""An agent's path over standard input and output, and over HTTP."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest
from agent import agent
from fakes import HashingEmbedding
from processes import PATIENCE, process
from serve.mcp.stdio_server import serve
from store.trees import documents

from hierindex import HierarchicalIndex
from hierindex.serve.mcp.server import application, server_of
from hierindex.serve.server import Server

TEXTS = {document.doc_id: document.text for document in documents()}
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@contextmanager
def served(index):
    """The address of a server over HTTP."""
    app = application(server_of({"": HierarchicalIndex(index.store, HashingEmbedding())}))
    with Server(app, "127.0.0.1", (0,)) as server:
        yield f"{server.url}mcp"


def path(client) -> None:
    """Ten answers with citations, of an agent that knew nothing of the index."""
    assert [tool.name for tool in client.tools()][:2] == ["search", "outline"]
    assert "expand" in client.client.instructions
    (first, *_) = client.reply("outline", budget=300)["results"]
    node, seen = client.reply("expand", id=first["id"]), []
    while node["results"]:
        node = client.reply("expand", id=node["results"][0]["id"])
    seen.append(client.reply("read", id=node["node"]["id"])["citations"][0])
    for text in TEXTS.values():
        for sentence in text.split("  ")[:3]:
            subject, _, fact = sentence.partition(" met ")
            cited = client.answer(subject, [f"{subject} met {fact}"])
            seen.append({"document": cited.document, "start": cited.start, "end": cited.end})
            assert TEXTS[cited.document][cited.start : cited.end] == sentence
    assert len(seen) >= 10
    assert client.sentence("read", id="nothing").startswith("No node and no document")


def test_an_agent_answers_over_http(own) -> None:
    with served(own) as url, agent(url) as client:
        path(client)


def test_nothing_but_protocol_is_written(own, tmp_path) -> None:
    """And the server ends with its input, also in the middle of a call."""
    calls = [
        ("initialize", HELLO),
        ("tools/list", {}),
        ("tools/call", {"name": "search", "arguments": {"query": "harbour"}}),
        ("tools/call", {"name": "read", "arguments": {"id": "x" * 100_000}}),
        ("no/method", {}),
    ]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": i, "method": method, "params": params})
        for i, (method, params) in enumerate(calls)
    ]
    for name in ("in", "out"):
        os.mkfifo(tmp_path / name)
    served = process(serve, own.store.uri, tmp_path)
    with (tmp_path / "in").open("w") as asking, (tmp_path / "out").open() as replies:
        asking.write("\n".join([*lines, "no JSON", ""]))
        asking.flush()
        answers = [json.loads(replies.readline()) for _ in range(len(calls))]
        asking.write(lines[2] + "\n")
        asking.close()
        rest = [json.loads(line) for line in replies]
    served.join(PATIENCE)
    said = (tmp_path / "err").read_text()
    assert {answer.get("id") for answer in answers} >= {0, 1, 2, 3}
    assert all(reply["jsonrpc"] == "2.0" for reply in rest)
    assert served.exitcode == 0
    assert "A question." in said
    assert "Traceback" not in said


def test_a_client_that_is_gone_leaves_the_server_to_others(own) -> None:
    call = {"name": "search", "arguments": {"query": "harbour"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"Accept": "application/json, text/event-stream"}
    with served(own) as url:
        for _ in range(2):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(url, json=body, headers=headers, timeout=httpx.Timeout(9, read=1e-3))
        with agent(url) as client:
            assert client.reply("outline")["generation"] == 1


def test_a_client_may_accept_json_alone(own) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    with served(own) as url:
        answer = httpx.post(url, json=hello, headers={"Accept": "application/json"})
    assert answer.headers["content-type"].partition(";")[0] == "application/json"
    assert {*answer.json()["result"]["capabilities"]} == {"tools"}  # no empty prompts or resources


def test_a_page_of_another_site_is_refused(own) -> None:
    with served(own) as url:
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            answer = httpx.post(url, json={}, headers=headers)
            assert (answer.status_code, [*answer.json()]) == (403, ["error"])
        too_long = httpx.post(url, json={"x": "x" * 5_000_000})
        assert too_long.status_code == 413


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_signal_ends_the_command_though_its_input_is_open(own, number) -> None:
    command = [sys.executable, "-m", "hierindex", "mcp", "--index", own.store.uri]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=ENVIRONMENT, **pipes) as process:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        process.stdin.write(json.dumps(hello) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "hierindex"
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number


@pytest.mark.parametrize("missing", ["mcp", "starlette"])
def test_the_extra_is_named_if_it_is_missing(tmp_path, run, uninstall, missing) -> None:
    (tmp_path / "nodes.lance").mkdir()
    uninstall(missing)
    said = "hierindex: The MCP server needs `pip install 'hierindex[serve]'`.\n"
    assert run("mcp", "--index", tmp_path) == (2, "", said)
