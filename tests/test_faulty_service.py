"""A build whose language model fails in every way: the tree is whole, and nothing is uncounted."""

import random

import pytest
from clients import llm_of
from indexes import built
from llama_index.core import Document
from loopback import (
    CUT_OFF,
    EMPTY,
    FILTERED,
    NO_JSON,
    OTHER_JSON,
    REFUSAL,
    WEB_PAGE,
    Fault,
    LoopbackServer,
    quotes_sentences,
)

from hierindex import Node
from hierindex.errors import FallbackWarning
from hierindex.summarize import LLMRewriter, TwoStageSummarizer

CONCURRENCY = 4
TIMEOUT = 1.0  # seconds of a request: an answer without a delay takes some milliseconds
FAULTS = [
    Fault(429, retry_after=0.01),
    Fault(500),
    Fault(502, body="<html>Bad gateway</html>", content_type="text/html"),
    Fault(dropped=True),
    EMPTY,
    REFUSAL,
    CUT_OFF,
    FILTERED,
    NO_JSON,
    OTHER_JSON,
    WEB_PAGE,
    Fault(delay=20 * TIMEOUT),
]
PERIOD = 40  # requests in which each fault comes once, which is 30% of them
WORDS = "harbour sail mast anchor keel rudder tide wind deck crew flour yeast oven dough".split()


def documents() -> list[Document]:
    """Texts in which no two groups read the same."""
    draw = random.Random(0).choice
    return [
        Document(
            text="\n\n".join(
                f"In {name} the {draw(WORDS)} of day {i} met {draw(WORDS)} and {draw(WORDS)}."
                for i in range(60)
            ),
            id_=name,
        )
        for name in ("Aberdeen", "Bergen", "Cuxhaven", "Dover", "Emden", "Falmouth")
    ]


def faults_of(seed: int):
    """The faults of a run: the same number of each in any long stretch of requests."""

    def fault(number: int) -> Fault | None:
        period = [*FAULTS, *[None] * (PERIOD - len(FAULTS))]
        random.Random(f"{seed} {number // PERIOD}").shuffle(period)
        return period[number % PERIOD]

    return fault


def build(server, tmp_path):
    """The nodes and the usage of a whole build."""
    rewriter = LLMRewriter(llm_of(server, timeout=TIMEOUT), concurrency=CONCURRENCY)
    options = {"summarizer": TwoStageSummarizer(rewriter), "max_children": 4, "chunk_size": 60}
    index = built(documents(), tmp_path / "index", **options)
    return index.store.get_nodes(), index.last_build.usage


def check_whole(nodes) -> None:
    """Every node but the one root has a parent, and every parent its children."""
    records = {node.node_id: Node.of(node) for node in nodes}
    assert sum(not record.parents for record in records.values()) == 1
    assert max(record.level for record in records.values()) >= 3
    for node in nodes:
        assert node.text.strip()
        assert all(parent in records for parent, _ in records[node.node_id].parents)
        children = [child.node_id for child in node.child_nodes or ()]
        assert bool(children) == (records[node.node_id].level > 0)
        for child in children:
            assert node.node_id in dict(records[child].parents)


@pytest.mark.usefixtures("no_wait")
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_every_group_and_every_request_is_accounted_for(tmp_path, seed):
    with LoopbackServer(reply=quotes_sentences, faults=faults_of(seed), latency=0.002) as server:
        with pytest.warns(FallbackWarning):
            nodes, usage = build(server, tmp_path)
        sent, answered = len(server.requests), server.answered
    assert {outcome.fault for outcome in server.outcomes} == {Fault(), *FAULTS}

    check_whole(nodes)
    records = [Node.of(node) for node in nodes]
    kinds = [record.kind for record in records if record.level > 0]
    assert set(kinds) == {"abstractive", "extractive_fallback"}
    replies = {quotes_sentences(request.prompt) for request in server.requests}
    for node, record in zip(nodes, records, strict=True):
        assert record.kind != "abstractive" or node.text in replies
        assert not any(fault.text in node.text for fault in FAULTS if fault.text)

    assert usage.fallbacks == kinds.count("extractive_fallback")
    assert usage.cached_summaries == 0
    assert usage.llm_calls == sent
    assert (usage.prompt_tokens, usage.completion_tokens) == answered[1:]
    assert 2 <= server.most_in_flight <= CONCURRENCY
