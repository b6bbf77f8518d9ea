"""What a build would cost is what it then costs, and nobody is asked to find out."""

from dataclasses import replace
from functools import partial

import pytest
from clients import llm_of
from fakes import HashingEmbedding
from indexes import documents_of
from llama_index.core.utils import get_tokenizer
from loopback import LoopbackServer

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    RaptorHierarchy,
    SemanticHierarchy,
    Usage,
)
from hierindex.summarize import LLMRewriter, TwoStageSummarizer

TOPICS = (
    "The keeper of the lighthouse wrote a letter to the harbour about letter {}.",
    "A storm from the north broke window {} of the mill before the morning.",
    "They counted {} votes in the market hall and nobody knew the reason.",
)


TEXTS = {
    f"{d}.txt": " ".join(TOPICS[i // 8 % 3].format(f"{d}-{i}") for i in range(24)) for d in range(3)
}


def half(prompt):
    """Every second sentence of the fenced passages, as many as a summary may have."""
    passages = prompt.split(" ===\n")[-2].rpartition("\n")[0]
    return ". ".join(passages.split(". ")[::2])[:220]


@pytest.fixture
def server():
    count = get_tokenizer()
    with LoopbackServer(reply=half, count=lambda text: len(count(text))) as server:
        yield server


@pytest.fixture
def hierarchy_of(server):
    model = HashingEmbedding()

    def made(kind=SemanticHierarchy, **settings):
        rewriter = LLMRewriter(llm_of(server, model="loopback"), **settings)
        return kind(model, TwoStageSummarizer(rewriter), summary_tokens=60)

    return made


def build(uri, hierarchy, dry_run=False):
    sources = documents_of(TEXTS)
    made = HierarchicalIndex.build(
        sources, uri, hierarchy=hierarchy, chunk_size=80, dry_run=dry_run
    )
    assert made.last_build.dry_run == dry_run
    return made.last_build


estimate = partial(build, dry_run=True)


@pytest.mark.parametrize(
    "kind",
    [
        SemanticHierarchy,
        RaptorHierarchy,
        pytest.param(DocumentHierarchy, marks=pytest.mark.slow),
    ],
)
def test_an_estimate_is_near_and_asks_nobody(server, hierarchy_of, tmp_path, kind):
    hierarchy = hierarchy_of(kind)
    batches = hierarchy.embed_model.batches
    told = estimate(tmp_path, hierarchy)
    assert server.requests == []
    n_embedded = sum(map(len, batches))
    report = build(tmp_path, hierarchy)
    assert told.usage.llm_calls == pytest.approx(report.usage.llm_calls, rel=0.15)
    assert told.usage.prompt_tokens == pytest.approx(report.usage.prompt_tokens, rel=0.15)
    assert report.usage.completion_tokens <= told.usage.completion_tokens
    chunks = told.statistics[0].nodes
    assert chunks == report.statistics[0].nodes
    assert n_embedded >= chunks
    again = sum(map(len, batches)) - n_embedded
    assert again < n_embedded + report.usage.llm_calls * 40  # chunks are not embedded twice


def test_what_is_known_costs_nothing(server, hierarchy_of, tmp_path):
    n_calls = build(tmp_path, hierarchy_of()).usage.llm_calls
    told = estimate(tmp_path, hierarchy_of())
    assert told.usage == Usage(cached_summaries=n_calls)
    assert n_calls == len(server.requests)
    other = estimate(tmp_path, hierarchy_of(prompt="In brief: {text}"))
    assert other.usage.cached_summaries == 0
    assert other.usage.llm_calls == n_calls


def test_an_extractive_build_costs_nothing(tmp_path):
    told = estimate(tmp_path, SemanticHierarchy(HashingEmbedding()))
    assert told.usage == Usage()
    assert len(told.statistics) > 1
    used = replace(told, usage=Usage(1, prompt_tokens=2_000_000, completion_tokens=500_000))
    assert used.price(0.5, 2.0) == 2.0
