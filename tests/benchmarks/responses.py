"""Calls, prompt tokens and seconds of our tree summarise and of LlamaIndex's, of the same nodes.

An OpenAI-compatible server in a process of its own answers after 200 ms in a hundred words, and
refuses a prompt that leaves no room for its answer in the window. "nearest" are the chunks most
like the question, "in a row" those of whole documents, of which the index has summaries, too.

Then a server answers in 2,000 words, nothing, or the prompt: how many calls that makes, and how
it ends. From 200 calls on it fails, which is how a tree that does not end ends here.

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
WINDOWS = (4_000, 16_000)
ANSWER_TOKENS = 256  # of an answer, for which a prompt must leave room
N_NODES = (5, 50, 300)
MOST_CALLS = 200  # of a server that answers badly


def words(prompt: str, n: int) -> str:
    """Words of the prompt, taken from all over it, as sentences of ten."""
    said = re.findall(r"\w+", prompt)
    chosen = [said[i * len(said) // n] for i in range(n)] + [str(crc32(prompt.encode()))]
    return " ".join(" ".join(chosen[i : i + 10]) + "." for i in range(0, n + 1, 10))


def too_long(prompt: str) -> str:
    return words(prompt, 2_000)


def nothing(prompt: str) -> str:
    return ""


def repeated(prompt: str) -> str:
    return prompt


class Served(NamedTuple):
    """What a server has seen since it was last asked."""

    n_calls: int
    prompt_tokens: int
    n_refused: int


def serve(
    connection: Connection, reply: Callable[[str], str], window: int, most_calls: int | None
) -> None:
    """Tell the address; whenever asked, tell what was served since, until told to end."""
    from llama_index.core.utils import get_tokenizer
    from loopback import Fault, LoopbackServer

    tokenizer = get_tokenizer()

    @cache
    def count(text: str) -> int:
        return len(tokenizer(text))

    def fault(number: int) -> Fault | None:
        return Fault(500) if most_calls and number - seen >= most_calls else None

    seen = 0
    latency = 0.0 if most_calls else LATENCY
    with LoopbackServer(reply, fault, latency, window - ANSWER_TOKENS, count) as server:
        connection.send(server.base_url)
        while connection.recv():
            outcomes = server.outcomes[seen:]
            lengths = [count(request.prompt) for request in server.requests[seen:]]
            refused = sum(o.fault is not None and o.fault.status == 400 for o in outcomes)
            seen = len(server.requests)
            connection.send(Served(len(lengths), sum(lengths), refused))


@contextmanager
def server_apart(
    reply: Callable[[str], str], window: int, most_calls: int | None = None
) -> Iterator[tuple[str, Callable[[], Served]]]:
    """A server in another process: its address, and what it served since that was last asked."""
    spawned = multiprocessing.get_context("spawn")
    here, there = spawned.Pipe()
    process = spawned.Process(target=serve, args=(there, reply, window, most_calls))
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


def model(url: str, window: int) -> Any:
    from llama_index.llms.openai_like import OpenAILike

    return OpenAILike(
        model="loopback",
        api_base=url,
        api_key="none",
        is_chat_model=True,
        context_window=window,
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
        "TreeSummarize, async": partial(TreeSummarize, use_async=True),
        "Refine": Refine,
    }


def nodes_of(index: Any) -> dict[str, list[Any]]:
    """As many nodes as are asked of, by how they were found."""
    whole = {"mode": "document", "whole_documents": True, "n_documents": 300}
    options = {"token_budget": None, "top_k": max(N_NODES)}
    nearest = index.as_retriever(level=0, **options).retrieve(QUESTION)
    in_a_row = index.as_retriever(**whole, **options).retrieve(QUESTION)
    found = {f"{n} nearest": nearest[:n] for n in N_NODES if n <= len(nearest)}
    return found | {f"{n} in a row": in_a_row[:n] for n in N_NODES[1:] if n <= len(in_a_row)}


def compare(found: dict[str, list[Any]], window: int) -> None:
    """A line for each set of nodes: what each way to answer from it takes."""
    makers = ways()
    with server_apart(partial(words, n=100), window) as (url, served):

        def measured(name: str, nodes: list[Any]) -> tuple[Served, float]:
            llm = model(url, window)
            llm.complete("Hello.")  # makes its client, as one that was asked before has it
            served()
            synthesizer = makers[name](llm=llm)
            start = time.perf_counter()
            synthesizer.synthesize(QUESTION, nodes)
            seconds = time.perf_counter() - start
            return served(), seconds

        for name in makers:
            measured(name, found["5 nearest"][:1])  # imports and tokenizers
        for what, nodes in found.items():
            asked = [name for name in makers if name != "Refine" or "nearest" in what]
            took = {name: measured(name, nodes) for name in asked}
            cells = [
                f"{log.n_calls}, {log.prompt_tokens / 1000:.1f}k, {seconds:.1f}"
                for log, seconds in took.values()
            ] + [""] * (len(makers) - len(asked))
            print(f"| {window:,} | {what} | {' | '.join(cells)} |", flush=True)
            logs = {name: log for name, (log, _) in took.items()}
            assert not any(log.n_refused for log in logs.values()), logs
            most = max(log.n_calls for name, log in logs.items() if name.startswith("ours"))
            assert most <= logs["TreeSummarize"].n_calls, logs


def ends(found: dict[str, list[Any]], window: int) -> None:
    """How ours and LlamaIndex's end where the model does not answer as it should."""
    from llama_index.core.response_synthesizers import TreeSummarize
    from openai import OpenAIError

    from hierindex import BoundedTreeSummarize, HierindexError

    for reply in (too_long, nothing, repeated):
        with server_apart(reply, window, MOST_CALLS) as (url, served):
            for what, nodes in found.items():
                told = list[str]()
                for way in (BoundedTreeSummarize, TreeSummarize):
                    try:
                        answer = way(llm=model(url, window)).synthesize(QUESTION, nodes).response
                        end = f"answers {answer[:24]!r}" if answer else "answers nothing"
                    except HierindexError as error:
                        end = str(error)
                    except (OpenAIError, RecursionError):
                        end = "does not end"
                    told += [str(served().n_calls), end]
                kind = reply.__name__.replace("_", " ")
                print(f"| {kind} | {window:,} | {what} | {' | '.join(told)} |", flush=True)


def main(folder: str) -> None:
    from hierindex import HierarchicalIndex

    with tempfile.TemporaryDirectory() as uri:
        index = HierarchicalIndex.build(folder, uri)
        found = nodes_of(index)
        show_columns("window", "nodes", *ways())
        for window in WINDOWS:
            compare(found, window)
        show_columns("answers", "window", "nodes", "ours, calls", "end", "stock, calls", "end")
        several = {what: found[what] for what in found if what in ("50 nearest", "300 nearest")}
        for window in WINDOWS:
            ends(several, window)


def show_columns(*names: str) -> None:
    print(f"\n| {' | '.join(names)} |\n|{'---|' * len(names)}")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/responses.py CORPUS")
    main(sys.argv[1])
