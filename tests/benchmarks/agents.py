"""Calls and milliseconds that an agent takes to answer questions over MCP.

The agent has no language model and knows nothing of the index: it asks for the outline, searches
for each of the twenty questions on the Warren Report, and reads on by cursors, at most four parts,
until a sentence has the gold string. It then reads the place of this sentence, which must be what
the document says there. An answer is found if the gold string stands in what was read.

The server is `hierindex mcp` in a process of its own, over standard input and output.

Usage: python tests/benchmarks/agents.py FOLDER INDEX
(the folder warren-report, and its index, which is built if there is none)
"""

import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from agent import agent
from mcp.client.stdio import StdioServerParameters, stdio_client
from measures import rows_of

from hierindex import HierarchicalIndex, read_documents

COMMAND = (sys.executable, "-W", "ignore", "-m", "hierindex", "mcp", "--index")
QUESTIONS = Path(__file__).parent / "questions.jsonl"
SET = "warren-report"


def questions() -> list[dict[str, Any]]:
    return [row for row in rows_of(QUESTIONS) if row["set"] == SET]


def main(folder: Path, index: Path) -> None:
    if not index.exists():
        HierarchicalIndex.build(folder, index)
    texts = {document.doc_id: document.text for document in read_documents(folder)[0]}
    command, *arguments = (*COMMAND, str(index))
    server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    calls, took, found = list[int](), list[float](), 0
    with agent(stdio_client(server)) as client:
        client.reply("search", query="warm")
        for question in questions():
            client.calls, start = 0, time.perf_counter()
            cited = client.answer(question["question"], question["answers"])
            took.append(1000 * (time.perf_counter() - start))
            calls.append(client.calls)
            if cited:
                assert texts[cited.document][cited.start : cited.end] == cited.text
                found += 1
    print(f"{found} answers; medians: {median(calls):.0f} calls, {median(took):.0f} ms")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
