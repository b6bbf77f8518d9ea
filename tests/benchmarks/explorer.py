"""Milliseconds and bytes of the explorer's requests, and its memory.

The documents and vectors are those of `scale.py`. The server runs in a process of its own. "first"
is the first request of its kind after the start; the others are the median and the longest of 20,
each for another node, place or word. "page" are all requests of the first page load, one after the
other: the page, its files, the index, the outline, the icicle and the first node with a source.

Usage: python tests/benchmarks/explorer.py FOLDER [N_CHUNKS...]   (by default 2000 and 80000)
       python tests/benchmarks/explorer.py --index DIR
"""

import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from scale import N_CHUNKS, WordSums, build, write_documents

from hierindex import HierarchicalIndex
from hierindex.serve.inline import PAGE

SIZES = 2_000, 80_000
N_REQUESTS = 20
N_CELLS = 1500


class Client:
    """A client of the explorer, which notes what each request takes."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=600)

    def get(self, path: str, **query: Any) -> tuple[float, int, Any]:
        start = time.perf_counter()
        answer = self._client.get(path, params=query)
        took = 1000 * (time.perf_counter() - start)
        is_json = answer.headers["content-type"] == "application/json"
        found = answer.json() if is_json else None
        assert answer.status_code == 200, found
        return took, len(answer.content), found

    def note(self, name: str, queries: Iterable[dict[str, Any]]) -> list[Any]:
        times, sizes, found = zip(
            *(self.get(f"api/{name}", **each) for each in queries), strict=True
        )
        later = times[1:] or times
        print(
            f"{name:<8}{times[0]:10,.0f}{median(later):10,.0f}{max(later):10,.0f}{max(sizes):12,}",
            flush=True,
        )
        return list(found)


def page(client: Client) -> None:
    took, size = 0.0, 0

    def get(path: str, **query: Any) -> Any:
        nonlocal took, size
        ms, n_bytes, found = client.get(path, **query)
        took, size = took + ms, size + n_bytes
        return found

    get("")
    for path in PAGE.iterdir():
        get(f"assets/{path.name}")
    get("api/index")
    (root, *_) = get("api/nodes")["nodes"]
    get("api/nodes", of=root["id"])
    get("api/icicle", n=N_CELLS)
    (quote, *_) = get("api/node", id=root["id"])["quotes"]
    get("api/source", **{key: quote[key] for key in ("document", "start", "end")})
    print(f"{'page':<8}{took:10,.0f}{'':20}{size:12,}", flush=True)


def measure(client: Client) -> None:
    rng = random.Random(0)
    print(f"{'':<8}{'first':>10}{'median':>10}{'longest':>10}{'bytes':>12}")
    page(client)
    about, *_ = client.note("index", [{}] * (1 + N_REQUESTS))
    whole = client.get("api/icicle", n=10_000)[2]["cells"]
    cells = rng.choices(whole, k=N_REQUESTS)
    summaries = rng.choices([cell for cell in whole if cell["level"]], k=N_REQUESTS)
    client.note("nodes", [{"of": cell["id"]} for cell in summaries])
    nodes = client.note("node", [{"id": cell["id"]} for cell in cells])
    quotes = [rng.choice(node["quotes"]) for node in nodes]
    keys = ("document", "start", "end")
    client.note("source", [{key: quote[key] for key in keys} for quote in quotes])
    starts = [rng.random() for _ in cells]
    narrow = [{"from": x, "to": x + rng.random() * (1 - x), "n": N_CELLS} for x in starts]
    client.note("icicle", [{"n": N_CELLS}, *narrow])
    words = [word for node in nodes for word in rng.sample(node["text"].split(), 1)]
    client.note("search", [{"q": word} for word in words])
    questions = [" ".join(node["text"].split()[:9]) for node in nodes]
    client.note("ask", [{"q": question} for question in questions])
    levels = [level["level"] for level in about["levels"]]
    client.note("map", [{"level": level} for level in (1, *levels[1:])])


@contextmanager
def served(index: Path) -> Iterator[str]:
    """The address of the explorer in a process of its own, whose memory is printed at the end."""
    command = [sys.executable, "-W", "ignore", __file__, "--serve", str(index)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        yield process.stdout.readline().strip()
        process.stdin.close()
        print(f"peak of memory: {float(process.stdout.readline()):.2f} GiB")


def serve(index: Path) -> None:
    opened = HierarchicalIndex.open(index, _model(index))
    with opened.explore(0) as explorer:
        print(explorer.url, flush=True)
        sys.stdin.read()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, flush=True)


def _model(index: Path) -> WordSums | None:
    """The model of `scale.py`, if the index was made with it."""
    name = HierarchicalIndex.open(index).info()["embed_model"]
    return WordSums() if name == WordSums().model_name else None


def of_index(index: Path) -> None:
    sizes = HierarchicalIndex.open(index).info()["levels"]
    print(f"\n{len(sizes)} levels: " + ", ".join(f"{each['nodes']:,}" for each in sizes))
    with served(index) as url:
        measure(Client(url))


def main(folder: Path, sizes: list[int]) -> None:
    for size in sizes:
        with TemporaryDirectory() as at:
            texts, index = Path(at) / "texts", Path(at) / "index"
            write_documents(folder, texts, size // N_CHUNKS)
            build("semantic", texts, index)
            of_index(index)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--serve", index]:
            serve(Path(index))
        case ["--index", index]:
            of_index(Path(index))
        case [folder, *numbers] if Path(folder).is_dir():
            main(Path(folder), [int(n) for n in numbers] or [*SIZES])
        case _:
            sys.exit("Usage: python tests/benchmarks/explorer.py FOLDER [N_CHUNKS...]")
