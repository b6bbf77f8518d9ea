"""Calls, prompt tokens and seconds of our tree summarise and of LlamaIndex's, of the same nodes.

An OpenAI-compatible server in a process of its own answers after 200 ms in a hundred words, and
refuses a prompt that leaves no room for its answer in the window of 4,000 tokens. The nodes are
the chunks most like the question.

Usage: python tests/benchmarks/responses.py CORPUS
"""

import multiprocessing
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

sys.path.append(str(Path(__file__).parents[1]))  # for loopback, here and in the server's process

QUESTION = "What are the main conclusions, and what do they rest on?"
LATENCY = 0.2  # seconds
WINDOW = 4_000
ANSWER_TOKENS = 256  # of an answer, for which a prompt must leave room
N_NODES = (5, 50, 300)


def words(prompt: str, n: int) -> str:
    """Words of the prompt, taken from all over it, as sentences of ten."""
    said = re.findall(r"\w+", prompt)
    chosen = [said[i * len(said) // n] for i in range(n)] + [str(crc32(prompt.encode()))]
    return " ".join(" ".join(chosen[i : i + 10]) + "." for i in range(0, n + 1, 10))


class Served(NamedTuple):
    """What a server has seen since it was last asked."""

    n_calls: int
    prompt_tokens: int
    n_refused: int


def serve(connection: Connection) -> None:
    """Tell the address; whenever asked, tell what was served since, until told to end."""
    from llama_index.core.utils import get_tokenizer
    from loopback import LoopbackServer

    tokenizer = get_tokenizer()

    @cache
    def count(text: str) -> int:
        return len(tokenizer(text))

    seen, reply, longest = 0, partial(words, n=100), WINDOW - ANSWER_TOKENS
    with LoopbackServer(reply, latency=LATENCY, window=longest, count=count) as server:
        connection.send(server.base_url)
        while connection.recv():
            outcomes = server.outcomes[seen:]
            lengths = [count(request.prompt) for request in server.requests[seen:]]
            refused = sum(o.fault is not None and o.fault.status == 400 for o in outcomes)
            seen = len(server.requests)
            connection.send(Served(len(lengths), sum(lengths), refused))


@contextmanager
def server_apart() -> Iterator[tuple[str, Callable[[], Served]]]:
    """A server in another process: its address, and what it served since that was last asked."""
    spawned = multiprocessing.get_context("spawn")
    here, there = spawned.Pipe()
    process = spawned.Process(target=serve, args=(there,))
    process.start()

    def served() -> Served:
        here.send(True)
        told: Served = here.recv()
        return told

    try:
        yield here.recv(), served
        here.send(False)
        process.join(10)
    finally:
        process.kill()  # where something failed


def model(url: str) -> Any:
    from llama_index.llms.openai_like import OpenAILike

    return OpenAILike(
        model="loopback",
        api_base=url,
        api_key="none",
        is_chat_model=True,
        context_window=WINDOW,
        max_tokens=ANSWER_TOKENS,
        max_retries=0,
    )


def ways() -> dict[str, Callable[..., Any]]:
    """What makes an answer of a model, by name."""
    from llama_index.core.response_synthesizers import Refine, TreeSummarize

    from hierindex import BoundedTreeSummarize

    return {
        "ours": BoundedTreeSummarize,
        "TreeSummarize": TreeSummarize,
        "Refine": Refine,
    }


def compare(nearest: list[Any]) -> None:
    """A line for each number of nodes: what each way to answer from them takes."""
    makers = ways()
    with server_apart() as (url, served):

        def measured(name: str, nodes: list[Any]) -> tuple[Served, float]:
            llm = model(url)
            llm.complete("Hello.")  # makes its client, as one that was asked before has it
            served()
            synthesizer = makers[name](llm=llm)
            start = time.perf_counter()
            synthesizer.synthesize(QUESTION, nodes)
            seconds = time.perf_counter() - start
            return served(), seconds

        for name in makers:
            measured(name, nearest[:1])  # imports and tokenizers
        for n in N_NODES:
            took = {name: measured(name, nearest[:n]) for name in makers}
            cells = [
                f"{log.n_calls}, {log.prompt_tokens / 1000:.1f}k, {seconds:.1f}"
                for log, seconds in took.values()
            ]
            print(f"| {len(nearest[:n])} | {' | '.join(cells)} |", flush=True)
            logs = {name: log for name, (log, _) in took.items()}
            assert not any(log.n_refused for log in logs.values()), logs
            assert logs["ours"].n_calls <= logs["TreeSummarize"].n_calls, logs


def main(folder: str) -> None:
    from hierindex import HierarchicalIndex

    with tempfile.TemporaryDirectory() as uri:
        index = HierarchicalIndex.build(folder, uri)
        retriever = index.as_retriever(level=0, token_budget=None, top_k=max(N_NODES))
        columns = ("nodes", *ways())
        print(f"\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        compare(retriever.retrieve(QUESTION))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/responses.py CORPUS")
    main(sys.argv[1])
