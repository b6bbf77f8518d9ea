"""Trees whose summaries are written by OpenAI's Batch API, in builds that are killed."""

import logging
import random
from collections import Counter

import httpx
import pytest
from batch_builds import Killed, Mortal, llm_of, rewriter_of, sizes
from batch_service import BatchServer
from fakes import HashingEmbedding
from histories import WORDS, text
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode

from hierindex import HierarchicalIndex
from hierindex.hierarchy.transforms import DocumentHierarchy, SemanticHierarchy
from hierindex.indexing import job
from hierindex.summarize.two_stage import TwoStageSummarizer

pytestmark = pytest.mark.usefixtures("no_pauses")


def nodes(n):
    draw = random.Random(1)
    texts = (f"On day {i} the {' met the '.join(draw.sample(WORDS, 4))}." for i in range(n))
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="a.txt")}
    return [TextNode(id_=str(i), text=t, relationships=source) for i, t in enumerate(texts)]


def tree(server, n, cache, *, batch=True, progress=None, **llm):
    """All that is known of the nodes of a tree but their vectors; each level has a third."""
    rewriter = rewriter_of(server, llm=llm, batch=batch)
    given = {"cache": cache, **({"progress": progress} if progress else {})}
    given |= {"summary_tokens": 40, "max_children": 3, "max_levels": 6}
    summarizer = TwoStageSummarizer(rewriter, grounding=None)
    grown = [
        n.to_dict() for n in SemanticHierarchy(HashingEmbedding(), summarizer, **given)(nodes(n))
    ]
    return sorted(
        ({k: v for k, v in node.items() if k != "embedding"} for node in grown),
        key=lambda node: node["id_"],
    )


@pytest.mark.parametrize(
    ("n_nodes", "n_levels", "n_summaries"),
    [(12, 3, 6), pytest.param(1000, 6, 500, marks=pytest.mark.slow)],
)
def test_a_tree_that_is_killed_at_ten_moments_pays_for_no_prompt_twice(
    tmp_path, n_nodes, n_levels, n_summaries
):
    """Nine requests, before they have an effect or after, and one while answers are kept."""
    with BatchServer() as single:
        expected = tree(single, n_nodes, tmp_path / "a", batch=False)
    draw = random.Random(0)
    with BatchServer() as server:
        for _ in range(9):
            transport = Mortal(draw.randint(1, 8), after=draw.random() < 0.5)
            with pytest.raises(Killed):
                tree(server, n_nodes, tmp_path / "b", http_client=httpx.Client(transport=transport))

        def dies(stage, done, total, cost=""):
            if cost.endswith("tokens"):  # an answer is kept
                raise Killed

        with pytest.raises(Killed):
            tree(server, n_nodes, tmp_path / "b", progress=dies)
        assert tree(server, n_nodes, tmp_path / "b") == expected
    assert (len(sizes(server)), sum(sizes(server))) == (n_levels, server.paid.total())
    assert server.paid == Counter(request.prompt for request in single.requests)
    assert server.paid.total() >= n_summaries
    assert ({*server.paid.values()}, server.requests, server.files) == ({1}, [], {})


MODEL = HashingEmbedding(model_name="known")


def index_of(server, folder, names, kind=SemanticHierarchy, *, llm=None, **options):
    """An index of documents, each with a text of its own."""
    texts = {name: text(random.Random(name)) for name in names}
    summarizer = TwoStageSummarizer(rewriter_of(server, llm=llm), grounding=None)
    return HierarchicalIndex.build(
        [Document(text=text, id_=name) for name, text in texts.items()],
        folder,
        hierarchy=kind(MODEL, summarizer, max_children=3, summary_tokens=60, **options),
        chunk_size=60,
        replace=True,
    )


def test_an_index_takes_one_batch_a_level_in_however_many_parts_it_would_grow(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(job, "PART", 1)
    with BatchServer() as server:
        index = index_of(server, tmp_path, "abcd")
    assert len(sizes(server)) == len(index.info()["levels"]) - 1 > 2
    assert (server.requests, server.files) == ([], {})


def test_a_killed_build_leaves_nothing_at_the_service_also_if_documents_are_deleted(tmp_path):
    """A deletion clears the memory of the index of what has been written."""
    options = {"kind": DocumentHierarchy, "max_levels": 1}
    with BatchServer() as server:
        index = index_of(server, tmp_path, "ab", **options)
        dying = {"http_client": httpx.Client(transport=Mortal(3))}
        with pytest.raises(Killed):
            index_of(server, tmp_path, "abc", llm=dying, **options)
        assert len(server.files) == 1
        index.delete("b", llm=llm_of(server))
        index_of(server, tmp_path, "ac", **options)
    assert (server.requests, server.files) == ([], {})


def test_the_key_is_in_no_file_and_in_no_log(tmp_path, caplog):
    with BatchServer() as server, caplog.at_level(logging.DEBUG, "hierindex"):
        uploaded, add = [], server.add
        server.add = lambda *given: uploaded.append(given) or add(*given)
        key = {"api_key": "sk-secret"}
        dying = {**key, "http_client": httpx.Client(transport=Mortal(4))}
        with pytest.raises(Killed):
            index_of(server, tmp_path, "ab", llm=dying)
        index_of(server, tmp_path, "ab", llm=key)
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert stored
    assert not any(b"sk-secret" in each for each in stored)
    assert "tiny" in caplog.text
    assert "sk-secret" not in f"{caplog.text} {uploaded}"
