"""Milliseconds and bytes of the explorer's requests, and its memory.

The tree is made up: documents of 36 passages of FOLDER's texts, in which six nodes that follow each
other have a parent, up to the root, whose text are the first words of each. Vectors are those of
`scale.py`. The server runs in a process of its own. "first" is the first request of its kind; the
others are the median and the longest of 20, each for another node, place or word. "page" are all
requests of the first page load, one after the other: the page, its files, the index, the outline
and the overview.

Usage: python tests/benchmarks/explorer.py FOLDER [N_NODES...]   (by default 2000 and 100000)
       python tests/benchmarks/explorer.py --index DIR
"""

import hashlib
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
import numpy as np
from scale import WordSums

from hierindex import HierarchicalIndex, HierarchyStore, Node, Quote, Span
from hierindex.node import Maker
from hierindex.serve import explore
from hierindex.serve.explorer import PAGE
from hierindex.store.temporary_files import RowFile

SIZES = 2_000, 100_000
MODEL = WordSums.model_fields["model_name"].default
FAN_OUT = 6
OF_DOCUMENT = FAN_OUT**2  # chunks; a node of level 2 is the whole of one
N_WORDS, N_QUOTED = 170, 25  # words of a chunk, and of each child in a summary
N_REQUESTS = 20


Made = tuple[str, tuple[Quote, ...]]  # a text and what it quotes


def make(folder: Path, n_nodes: int, at: Path) -> None:
    """Write an index of about so many nodes."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in {".txt", ".md", ".rst"})
    words = "\n".join(path.read_text(encoding="utf-8") for path in paths).split()
    layers = [chunks(words, n_nodes * (FAN_OUT - 1) // FAN_OUT)]
    while len(layers[-1]) > 1:
        below = layers[-1]
        groups = (below[i : i + FAN_OUT] for i in range(0, len(below), FAN_OUT))
        layers.append([summary(group) for group in groups])
    store, model = HierarchyStore(at), WordSums()
    with RowFile(store.table.connection) as file:
        for level in range(len(layers)):
            for start in range(0, len(layers[level]), 1024):
                numbers = range(start, min(start + 1024, len(layers[level])))
                nodes = [node_of(layers, level, i) for i in numbers]
                vectors = model.get_text_embedding_batch([node.text for node in nodes])
                for node, vector in zip(nodes, vectors, strict=True):
                    node.vector = np.array(vector)
                file.add(nodes)
        store.table.replace(file.reader(), {"settings": {"made": "up"}})


def chunks(words: list[str], number: int) -> list[Made]:
    rng, made, start = random.Random(0), list[Made](), 0
    for i in range(number):
        first = rng.randrange(len(words) - N_WORDS)
        text = " ".join(words[first : first + N_WORDS])
        start = start if i % OF_DOCUMENT else 0
        span = Span(f"{i // OF_DOCUMENT:05}.txt", start, start + len(text))
        made.append((text, (Quote(0, len(text), span),)))
        start += len(text) + 1
    return made


def summary(children: list[Made]) -> Made:
    texts, quotes, at = list[str](), list[Quote](), 0
    for text, (first, *_) in children:
        quoted = " ".join(text[: first.to].split(" ")[:N_QUOTED])
        texts.append(quoted)
        quotes.append(first.part(0, len(quoted))._replace(at=at, to=at + len(quoted)))
        at += len(quoted) + 1
    return " ".join(texts), tuple(quotes)


def node_of(layers: list[list[Made]], level: int, i: int) -> Node:
    (text, quotes), size = layers[level][i], FAN_OUT**level
    last = min((i + 1) * size, len(layers[0])) - 1
    names = [f"{n:05}.txt" for n in range(i * size // OF_DOCUMENT, last // OF_DOCUMENT + 1)]
    below = range(i * FAN_OUT, min((i + 1) * FAN_OUT, len(layers[level - 1]))) if level else ()
    before, after = (
        id_of(0, j) if not level and 0 <= j < len(layers[0]) and same_document(i, j) else ""
        for j in (i - 1, i + 1)
    )
    return Node(
        id=id_of(level, i),
        text=text,
        level=level,
        level_max=level,
        kind="extractive" if level else "chunk",
        documents=tuple(names),
        parents=((id_of(level + 1, i // FAN_OUT), 1.0),) if level + 1 < len(layers) else (),
        children=tuple(id_of(level - 1, j) for j in below),
        previous=before,
        next=after,
        quotes=quotes,
        n_tokens=len(text) // 5,
        maker=Maker("semantic", MODEL),
        whole_document=names[0] if level == 2 else "",
        title=", ".join(sorted({*text.split()}, key=len)[-2:]),
    )


def same_document(i: int, j: int) -> bool:
    return i // OF_DOCUMENT == j // OF_DOCUMENT


def id_of(level: int, i: int) -> str:
    return hashlib.blake2b(f"{level} {i}".encode(), digest_size=16).hexdigest()


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
            f"{name:<9}{times[0]:10,.0f}{median(later):10,.0f}{max(later):10,.0f}{max(sizes):12,}",
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
    get("api/overview")
    print(f"{'page':<9}{took:10,.0f}{'':20}{size:12,}", flush=True)


def measure(client: Client) -> None:
    rng = random.Random(0)
    print(f"{'':<9}{'first':>10}{'median':>10}{'longest':>10}{'bytes':>12}")
    page(client)
    about, *_ = client.note("index", [{}] * (1 + N_REQUESTS))
    client.note("overview", [{}] * (1 + N_REQUESTS))
    columns = client.get("api/overview")[2]["columns"]
    whole = [block for column in columns for block in column]
    cells = rng.choices(whole, k=N_REQUESTS)
    summaries = rng.choices(columns[0], k=N_REQUESTS)
    client.note("nodes", [{"of": cell["id"]} for cell in summaries])
    nodes = client.note("node", [{"id": cell["id"]} for cell in cells])
    quotes = [rng.choice(node["quotes"]) for node in nodes]
    places = [{"document": quote["document"], "at": quote["start"]} for quote in quotes]
    client.note("document", places)
    client.note("notes", [{"document": quote["document"]} for quote in quotes])
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
    with explore(opened, 0) as explorer:
        print(explorer.url, flush=True)
        sys.stdin.read()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, flush=True)


def _model(index: Path) -> WordSums | None:
    """The model of `scale.py`, if the index was made with it."""
    name = HierarchicalIndex.open(index).info()["embed_model"]
    return WordSums() if name == MODEL else None


def of_index(index: Path) -> None:
    sizes = HierarchicalIndex.open(index).info()["levels"]
    print(f"\n{len(sizes)} levels: " + ", ".join(f"{each['nodes']:,}" for each in sizes))
    with served(index) as url:
        measure(Client(url))


def main(folder: Path, sizes: list[int]) -> None:
    for size in sizes:
        with TemporaryDirectory() as at:
            make(folder, size, Path(at))
            of_index(Path(at))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--serve", index]:
            serve(Path(index))
        case ["--index", index]:
            of_index(Path(index))
        case ["--make", folder, number, at]:
            make(Path(folder), int(number), Path(at))
        case [folder, *numbers] if Path(folder).is_dir():
            main(Path(folder), [int(n) for n in numbers] or [*SIZES])
        case _:
            sys.exit("Usage: python tests/benchmarks/explorer.py FOLDER [N_CHUNKS...]")
