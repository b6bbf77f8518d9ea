"""The command line of the MCP Inspector, over both transports."""

import json

import pytest

QUESTION = "Which harbour met a lantern?"


@pytest.fixture(scope="module", params=["stdio", "http"])
def inspector(request, program, stdio, mcp_url):
    """Calls a method of the server; returns the exit status and the result."""
    server = ["--", *stdio] if request.param == "stdio" else ["--server-url", mcp_url]

    def called(method: str, *args: object) -> tuple[int, dict]:
        options = ("--cli", "--format", "json", "--method", method, *args)
        done = program("mcp-inspector", *options, *server)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)["result"]

    return called


def call(inspector, tool: str, **arguments) -> dict:
    args = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    status, result = inspector("tools/call", *args)
    assert status == 0, result
    return result["structuredContent"]


@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_tools_have_portable_schemas(inspector, era) -> None:
    status, result = inspector("tools/list", "--strict", "--protocol-era", era)
    assert status == 0
    names = {tool["name"] for tool in result["tools"]}
    assert names == {"outline", "search", "expand", "read", "fetch"}


def test_every_tool_is_called(inspector) -> None:
    (first, *_) = call(inspector, "outline", budget=300)["results"]
    assert call(inspector, "expand", id=first["id"])["node"]["id"] == first["id"]
    (found, *_) = call(inspector, "search", query=QUESTION)["results"]
    read = call(inspector, "read", id=found["id"])
    assert "harbour" in read["text"]
    assert call(inspector, "fetch", id=found["id"]) == read


def test_an_error_is_a_sentence(inspector) -> None:
    args = ("--tool-name", "read", "--tool-args-json", '{"id": "nothing"}')
    status, result = inspector("tools/call", *args)
    assert (status, result["isError"]) == (5, True)
    assert result["content"][0]["text"].startswith("No node and no document")
