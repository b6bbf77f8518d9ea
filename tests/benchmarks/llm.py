"""How near a language model's wall clock is to ceil(calls / concurrency) * latency.

An OpenAI-compatible server in a process of its own answers after 200 ms. First 500 texts are
rewritten, sync and async; then a folder is indexed, where each level waits for the one below
it, so that the bound is summed over levels. "rewrite" is the language model's part of the
stage "summarize", which also extracts.

Usage: python tests/benchmarks/llm.py FOLDER
"""

import math
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))  # for loopback, here and in the server's process

LATENCY = 0.2  # seconds
CONCURRENCY = 8
N_TEXTS = 500
SUMMARY_TOKENS = 200
WORDS = "anchor bell crew dough gate harbour keel lamp mast oven pier rope sail storm tide".split()


class Served(NamedTuple):
    """What a server says after its last answer."""

    n_requests: int
    most_in_flight: int


def serve(connection: Connection) -> None:
    """Tell the address, wait until told to end, tell what was served."""
    from loopback import LoopbackServer, quotes_sentences

    with LoopbackServer(reply=quotes_sentences, latency=LATENCY) as server:
        connection.send(server.base_url)
        connection.recv()
        connection.send(Served(len(server.requests), server.most_in_flight))


@contextmanager
def server_apart() -> Iterator[tuple[str, list[Served]]]:
    """A server in another process: its address, and a list that holds its log afterwards."""
    spawned = multiprocessing.get_context("spawn")
    here, there = spawned.Pipe()
    process = spawned.Process(target=serve, args=(there,))
    process.start()
    log: list[Served] = []
    try:
        yield here.recv(), log
        here.send("end")
        log.append(here.recv())
        process.join()
    finally:
        process.kill()  # where something failed


def bound(n_calls: int) -> float:
    """Seconds that calls take if `CONCURRENCY` of them are in flight until the last ones."""
    return math.ceil(n_calls / CONCURRENCY) * LATENCY


def show(what: str, n_calls: int, seconds: float, least: float, in_flight: int | str = "") -> None:
    print(
        f"{what:<18}{n_calls:>7}{seconds:10.2f}{least:10.2f}{seconds / least:8.3f}{in_flight:>11}",
        flush=True,
    )


def texts(n: int) -> list[str]:
    """Of some hundred words each, no two alike."""
    draw = random.Random(0).choices
    return [f"This is text {i}. " + f"The {' '.join(draw(WORDS, k=9))}. " * 10 for i in range(n)]


def rewrites() -> None:
    """Rewrite texts, a first few of them untimed."""
    from hierindex.models.client import load_llm
    from hierindex.summarize import LLMRewriter

    with server_apart() as (url, log):
        rewriter = LLMRewriter(load_llm("loopback", url), concurrency=CONCURRENCY)

        rewriter.rewrite(texts(1), max_tokens=SUMMARY_TOKENS)
        start = time.perf_counter()
        rewriter.rewrite(texts(N_TEXTS), max_tokens=SUMMARY_TOKENS)
        seconds = time.perf_counter() - start
    n_calls = log[0].n_requests - 1
    show("rewrites", n_calls, seconds, bound(n_calls), log[0].most_in_flight)


def build(folder: str) -> None:
    """Index a folder, after one untimed text; a line for each level and one for all."""
    import hierindex
    from hierindex.models.client import load_llm
    from hierindex.summarize import LLMRewriter, TwoStageSummarizer

    class Timed(LLMRewriter):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.levels: list[tuple[int, float]] = []  # calls and seconds

        def rewrite(self, texts, **options):
            start = time.perf_counter()
            made = super().rewrite(texts, **options)
            seconds = time.perf_counter() - start
            self.levels.append((sum(rewrite.usage.llm_calls for rewrite in made), seconds))
            return made

    with server_apart() as (url, log), tempfile.TemporaryDirectory() as uri:
        rewriter = Timed(load_llm("loopback", url), concurrency=CONCURRENCY)
        rewriter.rewrite(texts(1), max_tokens=SUMMARY_TOKENS)
        rewriter.levels.clear()
        hierarchy = hierindex.SemanticHierarchy(summarizer=TwoStageSummarizer(rewriter))
        index = hierindex.HierarchicalIndex.build([folder], uri, hierarchy=hierarchy)
        n_chunks = index.info()["levels"][0]["nodes"]
    for level, (n_calls, seconds) in enumerate(rewriter.levels, start=1):
        show(f"level {level}", n_calls, seconds, bound(n_calls))
    n_calls, in_flight = log[0].n_requests - 1, log[0].most_in_flight
    least = sum(bound(of_level) for of_level, _ in rewriter.levels)
    show("rewrite", n_calls, sum(seconds for _, seconds in rewriter.levels), least, in_flight)
    stages = index.last_build.seconds
    show("summarize", n_calls, stages["summarize"], least)
    print(f"{n_chunks} chunks, {stages['total']:.1f} s in all")


def main(folder: str) -> None:
    print(f"{LATENCY * 1000:g} ms, concurrency {CONCURRENCY}, seconds")
    print(f"{'':<18}{'calls':>7}{'wall':>10}{'bound':>10}{'ratio':>8}{'in flight':>11}")
    rewrites()
    build(folder)


if __name__ == "__main__":
    if len(sys.argv) == 2 and Path(sys.argv[1]).is_dir():
        main(sys.argv[1])
    else:
        sys.exit("Usage: python tests/benchmarks/llm.py FOLDER")
