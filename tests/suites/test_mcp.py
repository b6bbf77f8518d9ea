"""MCP by the SDK's own client and by LlamaIndex's tools, of the command `hierindex mcp`."""

import asyncio
import os
import re
import signal
import subprocess

import pytest
from agent import agent
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import METHOD_NOT_FOUND
from serve.mcp.test_transports import ENVIRONMENT, TEXTS, path

QUESTION = "Which harbour met a lantern?"
TOOLS = {"outline", "search", "expand", "read", "fetch"}


# The SDK's client


def test_an_agent_finds_its_way_over_stdio(stdio) -> None:
    server = StdioServerParameters(command=stdio[0], args=stdio[1:], env=ENVIRONMENT)
    with agent(stdio_client(server)) as client:
        path(client)


def test_an_agent_finds_its_way_over_streamable_http(stdio) -> None:
    command = [*stdio, "--http", "--port", "0"]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        (url,) = re.findall(r"http://\S+/mcp", process.stderr.readline())
        for mode in ("auto", "legacy"):
            with agent(url, mode=mode) as client:
                path(client)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize("kind", ["prompts", "resources", "resource_templates"])
def test_a_client_that_lists_other_things_goes_on(mcp_url, kind) -> None:
    async def use() -> None:
        async with Client(mcp_url) as client:
            try:
                listed = getattr(await getattr(client, f"list_{kind}")(), kind)
            except MCPError as error:
                listed = error.error.code
            assert listed in ([], METHOD_NOT_FOUND)
            assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS

    asyncio.run(use())


# LlamaIndex's tools


@pytest.fixture(params=["stdio", "http"])
def with_tools(request, stdio, mcp_url):
    """Runs a coroutine function of LlamaIndex's tools, which are given by their names."""

    async def run(use):
        if request.param == "http":
            client = BasicMCPClient(mcp_url)
        else:
            client = BasicMCPClient(stdio[0], args=stdio[1:], env=ENVIRONMENT)
        tools = await McpToolSpec(client).to_tool_list_async()
        return await use({tool.metadata.name: tool for tool in tools})

    return lambda use: asyncio.run(run(use))


def test_llama_indexs_tools_are_called(with_tools) -> None:
    async def use(tools) -> None:
        async def called(tool: str, **arguments) -> dict:
            result = (await tools[tool].acall(**arguments)).raw_output
            assert not result.is_error, result.content
            return result.structured_content

        assert {*tools} == TOOLS
        assert tools["search"].metadata.get_parameters_dict()["required"] == ["query"]
        assert (await called("outline", budget=300))["results"]
        (first, *_) = (await called("search", query=QUESTION))["results"]
        assert (await called("expand", id=first["id"]))["node"]["id"] == first["id"]
        read = await called("read", id=first["id"])
        assert read["text"] in TEXTS[first["citations"][0]["document"]]
        assert await called("fetch", id=first["id"]) == read

    with_tools(use)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a workflow reads old names
def test_llama_indexs_agent_uses_the_tools(with_tools) -> None:
    def reply(messages, **_) -> ChatMessage:
        if messages[-1].role == MessageRole.TOOL:
            return ChatMessage(role="assistant", content=messages[-1].content)
        call = ToolCallBlock(tool_call_id="1", tool_name="search", tool_kwargs={"query": QUESTION})
        return ChatMessage(role="assistant", blocks=[call])

    async def use(tools) -> str:
        model = MockFunctionCallingLLM(response_generator=reply)
        return str(await FunctionAgent(tools=[*tools.values()], llm=model).run(QUESTION))

    assert "harbour" in with_tools(use)
