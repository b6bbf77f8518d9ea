"""A build that is killed and run again pays only for what was in flight, and makes the same tree.

The builds are processes of their own; the server, which counts, lives in the test's.
"""

import json
import random
import signal
import time
from collections import Counter
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from histories import WORDS
from loopback import LoopbackServer, quotes_sentences
from processes import started

from hierindex import HierarchyStore

CONCURRENCY = 4
LATENCY = 0.05  # seconds, so that kills meet requests in flight
PATIENCE = 120  # seconds of one build
N_DOCUMENTS = 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Short documents, of a summary each; their summaries are summarised."""
    folder, draw = tmp_path_factory.mktemp("documents"), random.Random(0)
    for i in range(N_DOCUMENTS):
        lines = (
            f"On day {i} the {first} met the {second} by the {third}."
            for first, second, third in (draw.sample(WORDS, 3) for _ in range(8))
        )
        (folder / f"{i}.txt").write_text("\n\n".join(lines))
    return folder


def build_in_process(folder: Path, index: Path, server: LoopbackServer) -> BaseProcess:
    options = {
        "--index": index,
        "--method": "document",
        "--chunk-size": 64,
        "--llm": "tiny",
        "--llm-base-url": server.base_url,
        "--llm-concurrency": CONCURRENCY,
    }
    given = [str(part) for option in options.items() for part in option]
    return started(["build", str(folder), *given, "--json"], index.parent)


def build(folder: Path, index: Path, server: LoopbackServer) -> dict:
    """Build to the end; give the report."""
    process = build_in_process(folder, index, server)
    process.join(PATIENCE)
    process.kill()
    process.join()
    assert process.exitcode == 0, (index.parent / "err").read_text()
    return json.loads((index.parent / "out").read_text())


def kill(folder: Path, index: Path, server: LoopbackServer, n_requests: int, then: float) -> None:
    """Kill a build some seconds after so many of its requests have arrived."""
    target, patience = len(server.requests) + n_requests, time.monotonic() + PATIENCE
    process = build_in_process(folder, index, server)
    while len(server.requests) < target and process.is_alive() and time.monotonic() < patience:
        time.sleep(0.001)
    time.sleep(then)
    process.kill()
    process.join()
    said = (index.parent / "err").read_text()
    assert process.exitcode == -signal.SIGKILL, f"ended before its moment: {said}"
    assert len(server.requests) >= target, f"no more requests in {PATIENCE} seconds: {said}"


def tree_of(index: Path) -> list[dict]:
    """All that is known of each node, apart from its vector."""
    nodes = [node.to_dict() for node in HierarchyStore(index).get_nodes()]
    for node in nodes:
        del node["embedding"]
    return sorted(nodes, key=lambda node: node["id_"])


@pytest.fixture(scope="module")
def undisturbed(folder, tmp_path_factory) -> tuple[list[str], list[dict]]:
    """The prompts and the tree of a build that nobody kills."""
    index = tmp_path_factory.mktemp("undisturbed") / "index"
    with LoopbackServer(reply=quotes_sentences, latency=LATENCY) as server:
        report = build(folder, index, server)
    prompts, tree = [request.prompt for request in server.requests], tree_of(index)
    assert report["usage"]["llm_calls"] == len(prompts) == len({*prompts}) >= N_DOCUMENTS
    assert report["usage"]["fallbacks"] == 0
    assert len(report["statistics"]) >= 3  # levels, the chunks among them
    return prompts, tree


def check_killed(folder: Path, index: Path, undisturbed, *, n_kills: int, seed: int) -> None:
    prompts, tree = undisturbed
    draw = random.Random(seed)
    moments = sorted(draw.sample(range(1, len(prompts) + 1), n_kills))  # of an undisturbed build
    with LoopbackServer(reply=quotes_sentences, latency=LATENCY) as server:
        for before, moment in zip([0, *moments], moments, strict=False):
            kill(folder, index, server, moment - before, then=draw.uniform(0, LATENCY))
        n_before = len(server.requests)
        usage = build(folder, index, server)["usage"]
    asked = Counter(request.prompt for request in server.requests)
    assert asked.keys() == {*prompts}
    assert asked.total() - len(asked) <= CONCURRENCY * n_kills
    assert max(asked.values()) <= 1 + n_kills
    assert server.most_in_flight <= CONCURRENCY
    assert usage["llm_calls"] == len(server.requests) - n_before
    assert usage["llm_calls"] + usage["cached_summaries"] == len(prompts)
    assert tree_of(index) == tree


def test_only_what_was_in_flight_is_asked_again(folder, undisturbed, tmp_path) -> None:
    check_killed(folder, tmp_path / "index", undisturbed, n_kills=2, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_at_fifty_moments(folder, undisturbed, tmp_path, seed) -> None:
    check_killed(folder, tmp_path / "index", undisturbed, n_kills=5, seed=1 + seed)
