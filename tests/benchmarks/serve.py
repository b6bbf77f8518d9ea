"""Seconds of a question from the shell, replies a second of the server, and its memory.

"shell" is a process of `hierindex query`, the median of 7 questions.
Then 32 clients ask, each of which keeps its connection and asks one question after the other:
`/retrieve` by `mode="level", level=0, by="dense"`. What is lost is no reply with status 200. The
server is a process of its own.

Usage: python tests/benchmarks/serve.py INDEX
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from hierindex import HierarchicalIndex

HIERINDEX = str(Path(sys.executable).parent / "hierindex")
RUNS = 7
CLIENTS = 32
N_RETRIEVALS = 2000
BY_LEVEL = {"mode": "level", "level": 0, "by": "dense"}


def questions(index: HierarchicalIndex) -> list[str]:
    """Questions with words of chunks, none twice."""
    rng = random.Random(0)
    texts = [node.get_content() for node in index.store.get_nodes()]
    words = [re.findall(r"[^\W\d_]{4,}", text) for text in texts]
    return [f"What of {' '.join(rng.sample(each, 3))}?" for each in words if len(each) > 3]


@contextmanager
def served(at: Path) -> Iterator[str]:
    """The address of a server, whose peak of memory is printed at the end."""
    process = subprocess.Popen(
        [HIERINDEX, "serve", "--index", str(at), "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr
    said = process.stderr.readline()
    (address,) = re.findall(r"http://([\w.:]+)/", said)
    try:
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        process.stderr.close()
        print(f"peak of the server's memory: {usage.ru_maxrss / 2**20:.2f} GiB")


def shells(at: Path, asked: Iterator[str]) -> None:
    """Print the seconds of a question from the shell."""
    took = list[float]()
    for question in islice(asked, RUNS + 1):
        start = time.perf_counter()
        command = [HIERINDEX, "query", question, "--index", str(at)]
        subprocess.run(command, check=True, capture_output=True)
        took.append(time.perf_counter() - start)
    print(f"shell{median(took[1:]):7.3f} s   (longest {max(took[1:]):.3f})", flush=True)


def replies(address: str, path: str, bodies: Iterator[dict[str, Any]]) -> Iterator[int]:
    """The status of each reply to one client."""
    connection = HTTPConnection(address, timeout=60)
    for body in bodies:
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            response.read()
            yield response.status
        except OSError:
            connection.close()
            yield 0
    connection.close()


def rate(address: str, path: str, bodies: Sequence[dict[str, Any]]) -> None:
    """Print the replies a second."""
    parts = [bodies[i::CLIENTS] for i in range(CLIENTS)]
    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        found = [*clients.map(lambda part: [*replies(address, path, iter(part))], parts)]
    took = time.perf_counter() - start
    lost, n = sum(status != 200 for each in found for status in each), len(bodies)
    print(f"{path:<12}{n / took:8.0f} a second, {lost} of {n} lost", flush=True)


def main(index: Path) -> None:
    asked = iter(questions(HierarchicalIndex.open(index)))
    with served(index) as address:
        shells(index, asked)
        asked_at_once = islice(asked, N_RETRIEVALS)
        rate(address, "/retrieve", [{"question": each, **BY_LEVEL} for each in asked_at_once])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python tests/benchmarks/serve.py INDEX")
    main(Path(sys.argv[1]))
