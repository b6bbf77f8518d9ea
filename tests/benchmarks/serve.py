"""Seconds of a question from the shell, replies a second of the server, and its memory.

"shell" is a process of `hierindex query`, without a server and with one; "in Python" is `ask` of an
open index. Each is the median of 7 other questions, in turn, so that all meet the same noise.
"retrievals" are those by `mode="level", level=0, by="dense"`, and "answers" those of the default
mode: each of 32 clients keeps its connection and asks one question after the other. Then 4 clients
ask while 50 generations are published, each by a node that is written again. What is lost
is no reply with status 200. The index is copied, and its server is a process of its own.

Usage: python tests/benchmarks/serve.py INDEX
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import chain, islice, pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from hierindex import HierarchicalIndex

HIERINDEX = str(Path(sys.executable).parent / "hierindex")
RUNS = 7
CLIENTS, FEW_CLIENTS = 32, 4
N_RETRIEVALS, N_ANSWERS, N_PUBLISHES = 2000, 200, 50
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


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def shell(question: str, at: Path) -> float:
    command = [HIERINDEX, "query", question, "--index", str(at)]
    return seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def shells(index: HierarchicalIndex, at: Path, asked: Iterator[str]) -> None:
    """Print the seconds of one question; `at` is served, and `index` is a copy that is not."""
    alone = Path(index.store.uri)
    ways: dict[str, Callable[[str], float]] = {
        "shell, without a server": lambda question: shell(question, alone),
        "in Python": lambda question: seconds(lambda: index.ask(question)),
        "shell, with a server": lambda question: shell(question, at),
        "python -c pass": lambda _: seconds(
            lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)
        ),
    }
    took = {name: list[float]() for name in ways}
    for _ in range(RUNS + 1):
        for name, ask in ways.items():
            took[name].append(ask(next(asked)))
    for name, (_, *each) in took.items():
        print(f"{name:<28}{median(each):7.3f} s   (longest {max(each):.3f})", flush=True)


def replies(address: str, path: str, bodies: Iterator[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """The status and generation of each reply to one client."""
    connection = HTTPConnection(address, timeout=60)
    for body in bodies:
        try:
            connection.request("POST", path, json.dumps(body))
            response = connection.getresponse()
            response.read()
            yield response.status, int(response.headers["Hierindex-Generation"])
        except OSError:
            connection.close()
            yield 0, 0
    connection.close()


def rate(address: str, path: str, bodies: list[dict[str, Any]]) -> None:
    parts = [bodies[i::CLIENTS] for i in range(CLIENTS)]
    start = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        found = [*clients.map(lambda part: [*replies(address, path, iter(part))], parts)]
    took = time.perf_counter() - start
    lost = sum(status != 200 for each in found for status, _ in each)
    print(f"{path:<12}{len(bodies) / took:8.0f} a second, {lost} of {len(bodies)} lost", flush=True)


def publishes(address: str, at: Path, asked: Iterator[str]) -> None:
    """Print how many replies come while generations are published, and of which of them."""
    store, done = HierarchicalIndex.open(at).store, Event()
    (node, *_) = store.get_nodes()

    def client() -> list[tuple[int, int]]:
        bodies = ({"question": next(asked), **BY_LEVEL} for _ in iter(done.is_set, True))
        return [*replies(address, "/retrieve", bodies)]

    with ThreadPoolExecutor(FEW_CLIENTS) as clients:
        waiting = [clients.submit(client) for _ in range(FEW_CLIENTS)]
        for _ in range(N_PUBLISHES):
            store.add([node])
        done.set()
        found = [each.result() for each in waiting]
    lost = sum(status != 200 for each in found for status, _ in each)
    numbers = [[number for status, number in each if status == 200] for each in found]
    back = sum(earlier > later for each in numbers for earlier, later in pairwise(each))
    print(
        f"through {N_PUBLISHES} publishes: {sum(map(len, found))} replies of "
        f"{len({*chain(*numbers)})} generations, {lost} lost, {back} of an earlier one than before"
    )


def main(index: Path) -> None:
    with TemporaryDirectory() as folder:
        alone, at = Path(folder, "alone"), Path(folder, "served")
        for copy in (alone, at):
            shutil.copytree(index, copy)
        opened = HierarchicalIndex.open(alone)
        asked = iter(questions(opened))
        with served(at) as address:
            shells(opened, at, asked)
            for path, options, n in (
                ("/retrieve", BY_LEVEL, N_RETRIEVALS),
                ("/query", {}, N_ANSWERS),
            ):
                bodies = [{"question": question, **options} for question in islice(asked, n)]
                rate(address, path, bodies)
            publishes(address, at, asked)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python tests/benchmarks/serve.py INDEX")
    main(Path(sys.argv[1]))
