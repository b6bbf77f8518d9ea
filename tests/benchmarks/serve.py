"""Seconds of a question from the shell, replies a second of the server, and its memory.

"shell" is a process of `hierindex query`; "in Python" is `ask` of an open index. Each is the median
of 7 other questions, in turn, so that all meet the same noise.
Then 32 clients ask, each of which keeps its connection and asks one question after the other:
`/health`, the bound of what HTTP allows; `/retrieve` by `mode="level", level=0, by="dense"`; and
`/query` by the default mode. "embedding" is the bound of the model, on as many threads as there are
cores, in the process of the clients. Milliseconds are of processor time for each reply. Then 4
clients ask while 50 generations are published, each by a node that is written again. What is lost
is no reply with status 200. The index is copied, and its server is a process of its own. The times
of its processor are read from /proc, so this needs Linux.

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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import chain, islice, pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding

from hierindex import HierarchicalIndex

HIERINDEX = str(Path(sys.executable).parent / "hierindex")
RUNS = 7
CLIENTS, FEW_CLIENTS = 32, 4
N_RETRIEVALS, N_ANSWERS, N_PUBLISHES = 2000, 200, 50
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


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def shell(question: str, at: Path) -> float:
    command = [HIERINDEX, "query", question, "--index", str(at)]
    return seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


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


def replies(
    address: str, path: str, bodies: Iterator[dict[str, Any] | None]
) -> Iterator[tuple[int, int]]:
    """The status and generation of each reply to one client; None is no body."""
    connection = HTTPConnection(address, timeout=60)
    for body in bodies:
        try:
            connection.request("POST" if body else "GET", path, body and json.dumps(body))
            response = connection.getresponse()
            response.read()
            yield response.status, int(response.headers["Hierindex-Generation"])
        except OSError:
            connection.close()
            yield 0, 0
    connection.close()


def processor_time(pid: int) -> float:
    """Seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rate(address: str, pid: int, path: str, bodies: Sequence[dict[str, Any] | None]) -> None:
    """Print the replies a second, and the processor time of the server and of the clients."""
    parts = [bodies[i::CLIENTS] for i in range(CLIENTS)]
    start, before = time.perf_counter(), (processor_time(pid), time.process_time())
    with ThreadPoolExecutor(CLIENTS) as clients:
        found = [*clients.map(lambda part: [*replies(address, path, iter(part))], parts)]
    took, after = time.perf_counter() - start, (processor_time(pid), time.process_time())
    lost, n = sum(status != 200 for each in found for status, _ in each), len(bodies)
    server, client = (1000 * (b - a) / n for a, b in zip(before, after, strict=True))
    print(
        f"{path:<12}{n / took:8.0f} a second, {server:6.2f} ms of the server, {client:.2f} ms of "
        f"the clients, {lost} of {n} lost",
        flush=True,
    )


def embedding(model: BaseEmbedding, asked: Sequence[str]) -> None:
    """Print how many questions a second the model alone embeds."""
    model.get_query_embedding("Is all loaded?")
    start, before = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        found = sum(1 for _ in threads.map(model.get_query_embedding, asked))
    took, used = time.perf_counter() - start, time.process_time() - before
    print(f"embedding   {found / took:8.0f} a second, {1000 * used / found:6.2f} ms", flush=True)


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
        embedding(opened.embed_model, [*islice(asked, N_RETRIEVALS)])
        with served(at) as (address, pid):
            shells(opened, at, asked)
            rate(address, pid, "/health", [None] * N_RETRIEVALS)
            for path, options, n in (
                ("/retrieve", BY_LEVEL, N_RETRIEVALS),
                ("/query", {}, N_ANSWERS),
            ):
                bodies = [{"question": question, **options} for question in islice(asked, n)]
                rate(address, pid, path, bodies)
            publishes(address, at, asked)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python tests/benchmarks/serve.py INDEX")
    main(Path(sys.argv[1]))
