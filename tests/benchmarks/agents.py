"""Bytes that an agent reads to answer questions over MCP.

The agent has no language model and knows nothing of the index: it asks for the outline, searches
for each of the twenty questions on the Warren Report, and reads on by cursors, at most four parts,
until a sentence has the gold string. It then reads the place of this sentence, which must be what
the document says there. "text" is what a language model would read of the replies, "values" their
structured form, of which clients use one. An answer is found if the gold string stands in what
was read.

The server is `hierindex mcp` in a process of its own, over standard input and output and over HTTP.
"first" are the seconds from its start to the list of its tools, "warm" to the first search.

Usage: python tests/benchmarks/agents.py FOLDER INDEX
(the folder warren-report, and its index, which is built if there is none)
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from agent import agent
from mcp.client.stdio import StdioServerParameters, stdio_client
from measures import rows_of

from hierindex import HierarchicalIndex, read_documents

COMMAND = (sys.executable, "-W", "ignore", "-m", "hierindex.cli.app", "mcp", "--index")
QUESTIONS = Path(__file__).parent / "questions.jsonl"
SET = "warren-report"


def questions() -> list[dict[str, Any]]:
    return [row for row in rows_of(QUESTIONS) if row["set"] == SET]


@contextmanager
def over_stdio(index: Path) -> Iterator[Any]:
    command, *arguments = (*COMMAND, str(index))
    yield stdio_client(StdioServerParameters(command=command, args=arguments, env=dict(os.environ)))


@contextmanager
def over_http(index: Path) -> Iterator[Any]:
    command = [*COMMAND, str(index), "--http", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        yield process.stderr.readline().split()[-1]
        process.terminate()


def path(name: str, server: Any, texts: dict[str, str]) -> None:
    begun = time.perf_counter()
    with agent(server) as client:
        client.tools()
        first = time.perf_counter() - begun
        client.reply("search", query="warm")
        warm = time.perf_counter() - begun
        client.calls = client.text = client.values = 0
        client.reply("outline")
        about = client.text, client.values
        sizes, took, found = list[tuple[int, int, int]](), list[float](), 0
        for question in questions():
            client.calls = client.text = client.values = 0
            start = time.perf_counter()
            cited = client.answer(question["question"], question["answers"])
            took.append(1000 * (time.perf_counter() - start))
            sizes.append((client.text, client.values, client.calls))
            if cited:
                assert texts[cited.document][cited.start : cited.end] == cited.text
                found += 1
    text, values, calls = (median(column) for column in zip(*sizes, strict=True))
    print(
        f"{name:<8}{found:>8}{text:>12,.0f}{values:>12,.0f}{calls:>8.0f}{median(took):>8.0f}"
        f"{first:>8.1f}{warm:>8.1f}   outline {about[0]:,} and {about[1]:,}"
    )


def main(folder: Path, index: Path) -> None:
    if not index.exists():
        HierarchicalIndex.build(folder, index)
    texts = {document.doc_id: document.text for document in read_documents(folder)[0]}
    heads = ("answers", "text", "values", "calls", "ms", "first", "warm")
    widths = (8, 12, 12, 8, 8, 8, 8)
    print(" " * 8 + "".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True)))
    for name, served in (("stdio", over_stdio), ("http", over_http)):
        with served(index) as server:
            path(name, server, texts)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
