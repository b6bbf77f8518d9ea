"""Seconds of a question from the shell, replies a second of the server, and its memory.

"shell" is a process of `hierindex query`; "in Python" is `ask` of an open index. Each is the median
of 7 other questions, in turn, so that all meet the same noise.
Then 32 clients ask, each of which keeps its connection and asks one question after the other:
`/retrieve` by `mode="level", level=0, by="dense"`, and `/query` by the default mode. Milliseconds
are of processor time for each reply. What is lost is no reply with status 200. The server is a
process of its own. The times of its processor are read from /proc, so this needs Linux.

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
N_RETRIEVALS, N_ANSWERS = 2000, 200
TICK = os.sysconf("SC_CLK_TCK")
BY_LEVEL = {"mode": "level", "level": 0, "by": "dense"}


def questions(index: HierarchicalIndex) -> list[str]:
    """Questions with words of chunks, none twice."""
    rng = random.Random(0)
    texts = [node.get_content() for node in index.store.get_nodes()]
    words = [re.findall(r"[^\W\d_]{4,}", text) for text in texts]
    return [f"What of {' '.join(rng.sample(each, 3))}?" for each in words if len(each) > 3]


@contextmanager
def served(at: Path) -> Iterator[tuple[str, int]]:
    """The address and process of a server, whose peak of memory is printed at the end."""
    process = subprocess.Popen(
        [HIERINDEX, "serve", "--index", str(at), "--port", "0"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr
    said = process.stderr.readline()
    (address,) = re.findall(r"http://([\w.:]+)/", said)
    try:
        yield address, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        process.stderr.close()
        print(f"peak of the server's memory: {usage.ru_maxrss / 2**20:.2f} GiB")


def shells(opened: HierarchicalIndex, at: Path, asked: Iterator[str]) -> None:
    """Print the seconds of a question from the shell and in this process."""

    def shell(question: str) -> float:
        start = time.perf_counter()
        command = [HIERINDEX, "query", question, "--index", str(at)]
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - start

    def in_python(question: str) -> float:
        start = time.perf_counter()
        opened.ask(question)
        return time.perf_counter() - start

    took = {"shell": list[float](), "in Python": list[float]()}
    for _ in range(RUNS + 1):
        for ask, each in zip((shell, in_python), took.values(), strict=True):
            each.append(ask(next(asked)))
    for name, (_, *each) in took.items():
        print(f"{name:<28}{median(each):7.3f} s   (longest {max(each):.3f})", flush=True)


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


def processor_time(pid: int) -> float:
    """Seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rate(address: str, pid: int, path: str, bodies: Sequence[dict[str, Any]]) -> None:
    """Print the replies a second, and the processor time of the server and of the clients."""
    parts = [bodies[i::CLIENTS] for i in range(CLIENTS)]
    start, before = time.perf_counter(), (processor_time(pid), time.process_time())
    with ThreadPoolExecutor(CLIENTS) as clients:
        found = [*clients.map(lambda part: [*replies(address, path, iter(part))], parts)]
    took, after = time.perf_counter() - start, (processor_time(pid), time.process_time())
    lost, n = sum(status != 200 for each in found for status in each), len(bodies)
    server, client = (1000 * (b - a) / n for a, b in zip(before, after, strict=True))
    print(
        f"{path:<12}{n / took:8.0f} a second, {server:6.2f} ms of the server, {client:.2f} ms of "
        f"the clients, {lost} of {n} lost",
        flush=True,
    )


def main(index: Path) -> None:
    opened = HierarchicalIndex.open(index)
    asked = iter(questions(opened))
    with served(index) as (address, pid):
        shells(opened, index, asked)
        for path, options, n in (
            ("/retrieve", BY_LEVEL, N_RETRIEVALS),
            ("/query", {}, N_ANSWERS),
        ):
            bodies = [{"question": question, **options} for question in islice(asked, n)]
            rate(address, pid, path, bodies)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python tests/benchmarks/serve.py INDEX")
    main(Path(sys.argv[1]))
