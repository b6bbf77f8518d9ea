"""The tree that a cluster builds is the one that one process builds, also after deaths."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import Document
from loopback import LoopbackServer, names_words
from processes import process
from scale.deaths import AtMoments, kill_workers, killed_driver, with_lost_nodes
from scale.models import Different, Slow, SmallPools, Telling
from tiny_models import save_tiny_bart

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyStore,
    Node,
    RaptorHierarchy,
    SemanticHierarchy,
)
from hierindex.errors import InputError, LimitError
from hierindex.jobs.job import Job
from hierindex.models.llm import load_llm
from hierindex.scale import RayEngine
from hierindex.summarize import LLMRewriter, Seq2SeqRewriter, TwoStageSummarizer

CHUNK = 60
CONCURRENCY = 3
LATENCY = 0.05  # seconds
PATIENCE = 600  # seconds for a build in another process


def hierarchy(kind, model=None, **options):
    return kind(model or HashingEmbedding(), max_children=3, summary_tokens=60, **options)


def rows(index):
    return {node.node_id: node.to_dict() for node in index.store.get_nodes()}


def built(sources, uri, tree, engine=None):
    return HierarchicalIndex.build(sources, uri, hierarchy=tree, chunk_size=CHUNK, engine=engine)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (SemanticHierarchy, {}),
        (RaptorHierarchy, {}),
        (RaptorHierarchy, {"scope": "document"}),
        (DocumentHierarchy, {}),
    ],
)
def test_the_tree_is_that_of_one_process(cluster, folder, tmp_path, kind, options):
    tree = hierarchy(kind, **options)
    alone = built(folder, tmp_path / "alone", tree)
    steps = []
    tree.progress = lambda *step: steps.append(step)
    many = built(folder, tmp_path / "many", tree, RayEngine(workers=2))
    assert rows(many) == rows(alone)
    assert many.verify().ok
    reports = [index.last_build for index in (alone, many)]
    for what in ("added", "skipped", "names", "usage", "grounding", "statistics"):
        assert len({repr(getattr(report, what)) for report in reports}) == 1, what
    n = alone.last_build.added
    assert ("read", n + 2, n + 2) in steps
    assert ("grow documents", n, n) in steps
    (folder_edit := tmp_path / "one.md").write_text("A boat left the pier at night.")
    for index in (alone, many):  # what a cluster has built is updated by one process
        index.update(folder_edit)
    assert rows(many) == rows(alone)


def wait_for_free_nodes():
    """Wait until the processes of earlier builds are gone, as workers go where there is room."""
    import ray

    end = time.monotonic() + PATIENCE
    while ray.available_resources().get("CPU", 0) < ray.cluster_resources()["CPU"]:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_nodes_share_the_work_and_nothing_is_paid_twice(cluster, folder, tmp_path):
    wait_for_free_nodes()
    model = Telling(file=str(tmp_path / "asked"))
    tree, uri = hierarchy(SemanticHierarchy, model), tmp_path / "index"
    built(folder, uri, tree, RayEngine(workers=2))
    asked = model.asked()
    chunks = {node.text for node in HierarchyStore(uri).get_nodes() if not Node.of(node).level}
    workers = [each for each in asked if chunks & {*each.texts}]
    assert len({each.node for each in workers}) == 2
    assert len({each.process for each in workers} - {os.getpid()}) == 2
    times = Counter(text for each in asked for text in each.texts)
    assert max(times.values()) <= 2  # of two workers at once
    again = built(folder, uri, tree, RayEngine(workers=2)).last_build
    assert len(model.asked()) == len(asked)
    assert (again.generation, again.unchanged) == (2, len({*folder.glob("*.md")}) - 1)


@pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy])
def test_a_worker_that_is_killed(cluster, folder, tmp_path, kind):
    alone = built(folder, tmp_path / "alone", hierarchy(kind))
    model = Telling(file=str(tmp_path / "asked"), deadly="yeast")
    many = built(folder, tmp_path / "many", hierarchy(kind, model), RayEngine())
    assert (tmp_path / "asked.died").exists()
    assert rows(many) == rows(alone)
    assert many.verify().ok


@pytest.mark.parametrize("is_killed", [False, True])
def test_pools_grow_in_all_workers(cluster, folder, tmp_path, monkeypatch, is_killed):
    monkeypatch.setattr(Job, "part", 10)
    alone = built(folder, tmp_path / "alone", hierarchy(SmallPools))
    nodes = alone.store.get_nodes()
    texts = {n.text for n in nodes if Node.of(n).level == 1}
    model = Telling(file=str(tmp_path / "asked"), deadly=min(texts) if is_killed else "")
    tree, steps = hierarchy(SmallPools, model), []
    tree.progress = lambda *step: steps.append(step)
    many = built(folder, tmp_path / "many", tree, RayEngine(workers=2))
    assert rows(many) == rows(alone)
    assert (tmp_path / "asked.died").exists() == is_killed
    if not is_killed:  # or the process that takes the place of another would be a second one
        assert len({each.process for each in model.asked() if texts & {*each.texts}}) == 2
    done, total = max(step[1:3] for step in steps if step[0] == "grow pools")
    assert done == total > 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy])
def test_nodes_that_are_lost(folder, tmp_path, kind):
    pytest.importorskip("ray", reason="run `make test-ray`")
    alone = built(folder, tmp_path / "alone", hierarchy(kind))
    make = partial(kind, Slow(), max_children=3, summary_tokens=60)
    driver = process(with_lost_nodes, make, folder, tmp_path / "many", CHUNK)
    driver.join(PATIENCE)
    assert driver.exitcode == 0
    many = HierarchicalIndex.open(tmp_path / "many", embed_model=Slow())
    assert rows(many) == rows(alone)
    assert many.verify().ok


def test_a_model_of_transformers_is_loaded_by_workers(cluster, folder, tmp_path):
    save_tiny_bart(tmp_path / "bart", 64)
    summarizer = TwoStageSummarizer(Seq2SeqRewriter(str(tmp_path / "bart"), device="cpu"))
    tree = SemanticHierarchy(HashingEmbedding(), summarizer, max_children=3, summary_tokens=60)
    alone, many = (
        built([*folder.glob("?.md")], tmp_path / str(n), tree, engine)
        for n, engine in enumerate([None, RayEngine(workers=2)])
    )
    kinds = Counter(Node.of(node).kind for node in many.store.get_nodes())
    assert kinds["abstractive"] > 1
    assert rows(many) == rows(alone)


def same_grounding(one, other):
    """Whether both count the same; their faults are in the order in which parts are grown."""
    one, other = (replace(each, faults=tuple(sorted(each.faults))) for each in (one, other))
    return one == other


def with_llm(kind, server, **limits):
    rewriter = LLMRewriter(load_llm("tiny", server.base_url), concurrency=CONCURRENCY, **limits)
    return kind(
        HashingEmbedding(),
        TwoStageSummarizer(rewriter),
        max_children=3,
        summary_tokens=60,
    )


@pytest.mark.parametrize("kind", [SemanticHierarchy, DocumentHierarchy])
def test_a_language_model_is_asked_within_its_limits(cluster, folder, tmp_path, kind):
    with LoopbackServer(reply=names_words, latency=LATENCY) as server:
        alone = built(folder, tmp_path / "alone", with_llm(kind, server))
        n = len(server.requests)
        many = built(folder, tmp_path / "many", with_llm(kind, server), RayEngine(workers=2))
        prompts = [request.prompt for request in server.requests]
        assert sorted(prompts[:n]) == sorted(prompts[n:])
        assert server.most_in_flight <= CONCURRENCY
        assert rows(many) == rows(alone)
        assert many.last_build.usage == alone.last_build.usage
        assert same_grounding(many.last_build.grounding, alone.last_build.grounding)
        assert alone.last_build.grounding.replaced > 0
        with pytest.raises(LimitError, match="of the 2,000 tokens of the budget are spent"):
            built(
                folder,
                tmp_path / "other",
                with_llm(kind, server, token_limit=2000),
                RayEngine(workers=2),
            )
        spent = [outcome.tokens for outcome in server.outcomes[2 * n :] if outcome.tokens]
        assert sum(map(sum, spent)) <= 2000


def build_by_command(folder, uri, server, *options):
    command = [sys.executable, "-m", "hierindex", "build", str(folder), "--json"]
    given = {
        "--index": uri,
        "--chunk-size": CHUNK,
        "--llm": "tiny",
        "--llm-base-url": server.base_url,
        "--llm-concurrency": CONCURRENCY,
    }
    given = [str(part) for option in given.items() for part in option]
    return subprocess.Popen(
        [*command, *given, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_a_driver_that_is_killed(cluster, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", cluster)
    few = tmp_path / "few"
    few.mkdir()
    for i in range(8):
        (few / f"{i}.md").write_text((folder / f"{i}.md").read_text())
    on_cluster = ["--engine", "ray"]
    with LoopbackServer(reply=names_words, latency=LATENCY) as server:
        said, wrong = build_by_command(few, tmp_path / "alone", server).communicate(timeout=120)
        assert said, wrong
        n = len(server.requests)
        prompts = {request.prompt for request in server.requests}
        killed = build_by_command(few, tmp_path / "many", server, *on_cluster)
        until = time.monotonic() + 120
        while len(server.requests) < n + n // 2 and time.monotonic() < until:
            time.sleep(0.01)
        killed.kill()
        assert killed.wait() < 0, killed.communicate()
        assert not HierarchyStore(tmp_path / "many").snapshot().exists
        again = build_by_command(few, tmp_path / "many", server, *on_cluster)
        said, wrong = again.communicate(timeout=120)
        assert said, wrong
    asked = Counter(request.prompt for request in server.requests[n:])
    assert asked.keys() == prompts
    assert asked.total() - len(asked) <= CONCURRENCY
    assert json.loads(said)["usage"]["cached_summaries"] > 0
    alone, many = (rows(HierarchicalIndex.open(tmp_path / name)) for name in ("alone", "many"))
    assert many == alone


def test_an_index_in_a_bucket(cluster, library, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    alone = built(folder, tmp_path / "alone", hierarchy(SemanticHierarchy))
    uri = f"{library}/index"
    many = built(folder, uri, hierarchy(SemanticHierarchy), RayEngine(workers=2))
    assert rows(many) == rows(alone)
    (folder_edit := tmp_path / "one.md").write_text("A boat left the pier at night.")
    for index in (alone, many):
        index.update(folder_edit)
    assert rows(many) == rows(alone)
    assert many.ask("Who left the pier?").sources


def test_documents_without_files(cluster, tmp_path):
    documents = [
        Document(text=f"The bell rang {i} times. A boat left.", id_=str(i)) for i in (1, 2)
    ]
    alone = built(documents, tmp_path / "alone", hierarchy(DocumentHierarchy))
    many = built(documents, tmp_path / "many", hierarchy(DocumentHierarchy), RayEngine(workers=1))
    assert rows(many) == rows(alone)


def test_a_worker_of_another_version_is_refused(cluster, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("hierindex.scale.engine.version", lambda _: "0.0.1")
    with pytest.raises(InputError, match=r"by hierindex 0.0.1, but a worker on .* has"):
        built(folder, tmp_path / "index", hierarchy(SemanticHierarchy), RayEngine())
    assert not HierarchyStore(tmp_path / "index").snapshot().exists


def test_a_worker_with_another_model_is_refused(cluster, folder, tmp_path):
    with pytest.raises(InputError, match=r"The embedding model 'hashing' on .* differs"):
        built(folder, tmp_path / "index", hierarchy(SemanticHierarchy, Different()), RayEngine())
    assert not HierarchyStore(tmp_path / "index").snapshot().exists


@pytest.mark.parametrize("name", ["tech-books", "meetings"])
@pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy])
def test_a_corpus_also_after_deaths(cluster, corpus, tmp_path, embed_model, name, kind):
    folder, uri, engine = corpus(name), tmp_path / "after deaths", RayEngine(workers=2)
    alone = HierarchicalIndex.build(folder, tmp_path / "alone", hierarchy=kind())
    many = HierarchicalIndex.build(folder, tmp_path / "many", hierarchy=kind(), engine=engine)
    assert rows(many) == rows(alone)
    driver = process(killed_driver, kind, folder, uri, cluster)
    driver.join(PATIENCE)
    assert driver.exitcode == -signal.SIGKILL
    assert not HierarchyStore(uri).snapshot().exists
    kills = AtMoments(kill_workers)
    again = HierarchicalIndex.build(folder, uri, hierarchy=kind(progress=kills), engine=engine)
    assert not kills.left
    assert rows(again) == rows(alone)
    assert again.verify().ok
