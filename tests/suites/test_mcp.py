"""The SDK's own client of the command `hierindex mcp`, over both transports."""

import os
import re
import signal
import subprocess
import sys

from agent import agent
from mcp.client.stdio import StdioServerParameters, stdio_client
from serve.mcp.test_transports import ENVIRONMENT, path

COMMAND = [sys.executable, "-W", "ignore", "-m", "hierindex.cli.app", "mcp", "--index"]


def test_an_agent_finds_its_way_over_stdio(built) -> None:
    arguments = [*COMMAND[1:], built.store.uri]
    server = StdioServerParameters(command=COMMAND[0], args=arguments, env=ENVIRONMENT)
    with agent(stdio_client(server)) as client:
        path(client)


def test_an_agent_finds_its_way_over_streamable_http(built) -> None:
    command = [*COMMAND, built.store.uri, "--http", "--port", "0"]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        (url,) = re.findall(r"http://\S+/mcp", process.stderr.readline())
        for mode in ("auto", "legacy"):
            with agent(url, mode=mode) as client:
                path(client)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 0
