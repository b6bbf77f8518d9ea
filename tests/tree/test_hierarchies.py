"""The three hierarchies, driven on small texts whose likeness can be reasoned about."""

import asyncio
import copy
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from itertools import chain, pairwise

import numpy as np
import pytest
from clients import llm_of
from fakes import HashingEmbedding
from guarantees import check_tree
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import ImageNode, TextNode
from loopback import LoopbackServer
from records import as_chunks, as_text_nodes
from store.trees import CountingSummarizer, columns_of, seed_and_ids_of_trees
from writers import Writer

from hierindex import (
    DocumentHierarchy,
    ExtractiveSynthesizer,
    HierarchyStore,
    Mixture,
    Node,
    RaptorHierarchy,
    SemanticHierarchy,
)
from hierindex.cache import open_cache
from hierindex.errors import InputError, WindowWarning
from hierindex.rules import Percentile
from hierindex.summarize import (
    ExtractiveSummarizer,
    LLMRewriter,
    SalientSentences,
    TwoStageSummarizer,
)

TOPICS = [
    text.split()
    for text in (
        "harbour sail mast anchor keel rudder tide wind deck crew",
        "flour yeast oven dough crust salt knead loaf bake water",
        "nova orbit comet moon eclipse dust light dwarf galaxy ring",
    )
]
HIERARCHIES = {
    "semantic": SemanticHierarchy,
    "raptor": RaptorHierarchy,
    "document": DocumentHierarchy,
    "raptor per document": partial(RaptorHierarchy, scope="document"),
    "semantic by percentile": partial(SemanticHierarchy, rule=Percentile(40)),
    "raptor as published": partial(RaptorHierarchy, mixture=Mixture(target_size=None)),
}


class OtherSentences(SalientSentences):
    """Describes itself as another extractor."""

    def to_dict(self):
        return {"method": "other"}


def text_of(name: str, n_paragraphs: int = 8) -> str:
    """Paragraphs of three sentences; every second one turns to another of the three topics."""
    start = sum(map(ord, name))
    paragraphs = []
    for i in range(n_paragraphs):
        topic = TOPICS[(start + i // 2) % 3]
        paragraphs.append(
            " ".join(
                f"In {name} part {i} the {topic[(i + k) % 10]} meets the {topic[(i + k + 3) % 10]}"
                f" near the {topic[(i + k + 5) % 10]}."
                for k in range(3)
            )
        )
    return "\n\n".join(paragraphs)


def documents_of(*names: str, n_paragraphs: int = 8) -> list[Document]:
    return [Document(text=text_of(name, n_paragraphs), id_=name) for name in names]


def chunks_of(documents: Sequence[Document]) -> list[TextNode]:
    return SentenceSplitter(chunk_size=48, chunk_overlap=0)(documents)


def grown(kind=SemanticHierarchy, *names: str, **options) -> list[TextNode]:
    options = {"embed_model": HashingEmbedding(), "max_children": 4, **options}
    return kind(**options)(chunks_of(documents_of(*(names or "abcde"))))


@cache
def grown_once(kind) -> list[TextNode]:
    """What no test may change."""
    return grown(kind)


@pytest.mark.parametrize("kind", HIERARCHIES.values(), ids=HIERARCHIES)
def test_a_tree_has_one_root_and_cuts_that_shrink(kind) -> None:
    nodes = {node.node_id: Node.of(node) for node in grown_once(kind)}
    assert len(nodes) == len(grown_once(kind))
    check_tree([*nodes.values()])
    for node in nodes.values():
        weights = [weight for _, weight in node.parents]
        assert weights == sorted(weights, reverse=True)
        assert len(weights) <= 3
        assert bool(node.children) == (node.level > 0)
        below = [nodes[child].documents for child in node.children] or [node.documents]
        assert {*node.documents} == {*chain(*below)}
    levels = [(node.level, node.level_max) for node in nodes.values()]
    cuts = [sum(low <= cut <= high for low, high in levels) for cut in range(1 + max(levels)[1])]
    assert cuts == sorted(cuts, reverse=True)
    assert cuts[-1] == 1


@pytest.mark.parametrize("kind", HIERARCHIES.values(), ids=HIERARCHIES)
def test_links_are_those_of_llama_index(kind) -> None:
    nodes = grown_once(kind)
    for node in nodes:
        documents = Node.of(node).documents
        assert node.ref_doc_id == (documents[0] if len(documents) == 1 else None)
        strongest = [parent for parent, _ in Node.of(node).parents[:1]]
        assert ([node.parent_node.node_id] if node.parent_node else []) == strongest
    leaves = [node for node in nodes if not Node.of(node).level]
    for before, after in pairwise(leaves):
        if before.ref_doc_id == after.ref_doc_id:
            assert before.next_node.node_id == after.node_id
            assert after.prev_node.node_id == before.node_id


def test_another_process_grows_the_same_nodes() -> None:
    """One that hashes texts with another seed."""
    seed, ids = Writer(seed_and_ids_of_trees).ended().result
    own_seed, own_ids = seed_and_ids_of_trees()
    assert seed != own_seed
    assert [*ids] == own_ids


def test_one_batch_and_one_summary_call_a_level() -> None:
    embed_model, summarizer = HashingEmbedding(), CountingSummarizer()
    nodes = grown(embed_model=embed_model, summarizer=summarizer)
    n_levels = max(Node.of(node).level for node in nodes)
    written = Counter(Node.of(node).level for node in nodes)
    assert summarizer.calls == [written[level] for level in range(1, n_levels + 1)]
    assert [len(batch) for batch in embed_model.batches] == [
        written[level] for level in range(n_levels + 1)
    ]


@pytest.mark.parametrize(
    "other",
    [
        {"summary_tokens": 30},
        {"summarizer": ExtractiveSummarizer(OtherSentences())},
        {"embed_model": HashingEmbedding(model_name="other")},
    ],
)
def test_what_is_shaped_in_another_way_is_made_again(tmp_path, other) -> None:
    chunks = chunks_of(documents_of(*"abc"))
    with open_cache(str(tmp_path)) as cache:
        for options in {}, other:
            options = {"embed_model": HashingEmbedding(), "max_children": 4, **options}
            grown = SemanticHierarchy(**options).grow([as_chunks(chunks)], cache)
            assert grown.usage.cached_summaries == 0


def test_input_is_not_modified() -> None:
    chunks = chunks_of(documents_of("a", "b"))
    before = copy.deepcopy(chunks)
    SemanticHierarchy(embed_model=HashingEmbedding())(chunks)
    assert chunks == before


def test_own_keys_never_reach_a_text() -> None:
    documents = [Document(text=text_of("a"), id_="a", metadata={"level": "advanced"})]
    nodes = SemanticHierarchy(embed_model=HashingEmbedding())(chunks_of(documents))
    for node in nodes:
        assert node.get_content("llm").startswith("level: advanced\n\n")
        assert "hierindex" not in node.get_content("llm").partition("\n\n")[0]
        if Node.of(node).level:
            assert node.get_content("embed") == node.text


def test_parents_can_have_the_mean_of_their_children() -> None:
    embed_model = HashingEmbedding()
    nodes = grown(embed_model=embed_model, parent_embedding="mean")
    assert len(embed_model.batches) == 1  # the chunks
    for node in nodes:
        assert sum(x * x for x in node.embedding) == pytest.approx(1.0, abs=1e-5)


def test_given_embeddings_are_kept() -> None:
    embed_model = HashingEmbedding()
    chunks = embed_model(chunks_of(documents_of("a", "b")))
    embed_model.batches.clear()
    nodes = SemanticHierarchy(embed_model=embed_model)(chunks)
    assert not any(chunks[0].text in batch for batch in embed_model.batches)
    assert nodes[0].embedding == chunks[0].embedding


def test_embeddings_of_another_model_are_refused() -> None:
    chunks = HashingEmbedding(dim=32)(chunks_of(documents_of("a")))
    with pytest.raises(InputError, match="32 dimensions, summaries of 64"):
        SemanticHierarchy(embed_model=HashingEmbedding())(chunks)
    chunks[0].embedding = [1.0] * 16
    with pytest.raises(InputError, match=r"same dimension, got \[16, 32\]"):
        SemanticHierarchy(embed_model=HashingEmbedding())(chunks)


def test_a_known_chunk_with_other_metadata_is_embedded_again(tmp_path) -> None:
    embed_model = HashingEmbedding()
    hierarchy = SemanticHierarchy(embed_model=embed_model)
    with open_cache(str(tmp_path)) as cache:
        known = as_chunks(chunks_of(documents_of("a")))
        before = {node.id for node in hierarchy.grow([known], cache).nodes}
        documents = [Document(text=text_of("a"), id_="a", metadata={"title": "Alpha"})]
        embed_model.batches.clear()
        chunks = SentenceSplitter(chunk_size=52, chunk_overlap=0)(documents)
        after = hierarchy.grow([as_chunks(chunks)], cache)
    titled = [node for node in after.nodes if node.id in before and not node.level]
    assert titled
    assert all(node.embedded_text in embed_model.batches[0] for node in titled)


class TestFewChunks:
    def test_none(self) -> None:
        assert SemanticHierarchy(embed_model=HashingEmbedding())([]) == []

    def test_blank_ones_are_left_out(self) -> None:
        chunks = [TextNode(text="  \n"), TextNode(text="One sentence stands here.")]
        assert len(SemanticHierarchy(embed_model=HashingEmbedding())(chunks)) == 1

    @pytest.mark.parametrize("kind", [SemanticHierarchy, RaptorHierarchy])
    def test_one_is_its_own_root(self, kind) -> None:
        (node,) = kind(embed_model=HashingEmbedding())([TextNode(text="One sentence.")])
        assert (Node.of(node).level, Node.of(node).level_max) == (0, 0)
        assert not Node.of(node).parents

    def test_one_has_a_document_summary(self) -> None:
        hierarchy = DocumentHierarchy(embed_model=HashingEmbedding())
        leaf, summary = hierarchy([Document(text="One sentence stands here.", id_="a")])
        assert leaf.parent_node.node_id == summary.node_id
        assert summary.text == leaf.text

    def test_equal_texts_have_ids_of_their_own(self) -> None:
        chunks = [TextNode(text="The same sentence.") for _ in range(5)]
        nodes = SemanticHierarchy(embed_model=HashingEmbedding())(chunks)
        assert len({node.node_id for node in nodes}) == len(nodes)


def test_window_is_named() -> None:
    class Small(HashingEmbedding):
        max_length: int = 8

    with pytest.warns(WindowWarning, match="8 tokens that hashing reads"):
        nodes = grown(embed_model=Small(), summary_tokens=64)
    assert all(Node.of(node).n_tokens <= 8 for node in nodes if Node.of(node).level)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (ImageNode(), "text nodes"),
        (TextNode(text="x", metadata={"hierindex_level": "b"}), "'hierindex_level'.*rename"),
    ],
    ids=["image", "reserved key"],
)
def test_what_is_no_chunk_is_refused(node, message) -> None:
    with pytest.raises(InputError, match=message):
        SemanticHierarchy(embed_model=HashingEmbedding())([node])


def test_summaries_are_refused_but_their_chunks_are_not() -> None:
    nodes = grown()
    with pytest.raises(InputError, match="summary of an earlier hierarchy"):
        SemanticHierarchy(embed_model=HashingEmbedding())(nodes)
    leaves = [node for node in nodes if Node.of(node).level == 0]
    again = SemanticHierarchy(embed_model=HashingEmbedding(), max_children=4)(leaves)
    assert {node.node_id for node in again} == {node.node_id for node in nodes}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_children": 1}, "max_children must be a whole number of at least 2, got 1"),
        ({"summarizer": 7}, "summarizer must be .* got int"),
        ({"embed_model": 7}, "embed_model must be .* got int"),
        ({"rule": "optimal"}, "rule is invalid: it must be one of TargetSize, .* got 'optimal'."),
        ({"rule": Percentile}, "rule is invalid: it must be one of TargetSize, .* got <class"),
        (
            {"rule": {"class_name": "Cosine", "threshold": 2}},
            "rule is invalid: threshold must be in",
        ),
        ({"seed": -1}, "seed is invalid: it must be at least 0, got -1"),
        ({"mixture": {"n_dims": 0}}, "mixture is invalid: n_dims must be a whole number"),
        (
            {"mixture": {"reduction": "round"}},
            "mixture.reduction is invalid: it must be umap",
        ),
        ({"targetsize": 3}, "There is no option 'targetsize'."),
    ],
)
def test_options_are_checked_when_they_are_given(options, message) -> None:
    with pytest.raises(InputError, match=message):
        SemanticHierarchy(**{"embed_model": HashingEmbedding(), **options})


class TestSerialisation:
    @pytest.mark.parametrize("kind", HIERARCHIES.values(), ids=HIERARCHIES)
    def test_round_trip(self, kind) -> None:
        hierarchy = kind(embed_model=HashingEmbedding(), seed=3, max_children=7)
        data = json.loads(json.dumps(hierarchy.to_dict()))
        again = type(hierarchy).from_dict(data, embed_model=HashingEmbedding())
        assert again.to_dict() == hierarchy.to_dict()

    def test_a_rule_of_one_s_own_is_described_and_asked_for(self) -> None:
        class Percentile:  # not ours
            def breakpoints(self, rows, caps):
                return np.arange(1, len(rows) - 1, 2)

        hierarchy = SemanticHierarchy(embed_model=HashingEmbedding(), rule=Percentile())
        data = hierarchy.to_dict()
        assert data["rule"]["class_name"].endswith("<locals>.Percentile")
        with pytest.raises(InputError, match="or pass your own as rule=, got"):
            SemanticHierarchy.from_dict(data, embed_model=HashingEmbedding())
        again = SemanticHierarchy.from_dict(data, embed_model=HashingEmbedding(), rule=Percentile())
        chunks = chunks_of([Document(text=text_of("reef"), doc_id="reef")])
        assert [n.node_id for n in again(chunks)] == [n.node_id for n in hierarchy(chunks)]

    def test_no_secret_is_told(self) -> None:
        from llama_index.llms.openai_like import OpenAILike

        llm = OpenAILike(model="m", api_key="sk-secret", api_base="http://user:secret@127.0.0.1/v1")
        hierarchy = SemanticHierarchy(embed_model=HashingEmbedding(), summarizer=llm)
        assert "secret" not in json.dumps(hierarchy.to_dict()) + repr(hierarchy) + str(hierarchy)
        again = SemanticHierarchy.from_dict(
            hierarchy.to_dict(), embed_model=HashingEmbedding(), llm=llm
        )
        assert again.to_dict() == hierarchy.to_dict()

    def test_what_cannot_be_stored_is_asked_for(self) -> None:
        hierarchy = SemanticHierarchy(
            embed_model=HashingEmbedding(),
            summarizer=MockLLM(),
            metadata_rules={"title": lambda values: values[0]},
        )
        with pytest.raises(InputError, match="metadata_rules= with rules for \\['title'\\]"):
            SemanticHierarchy.from_dict(hierarchy.to_dict(), embed_model=HashingEmbedding())
        with pytest.raises(InputError, match="pass it as llm="):
            SemanticHierarchy.from_dict(
                hierarchy.to_dict(),
                embed_model=HashingEmbedding(),
                metadata_rules=hierarchy.metadata_rules,
            )


class TestInAPipeline:
    def test_the_store_holds_all_levels_and_a_vector_store_index_answers(self, tmp_path) -> None:
        """Splitter, embedding, hierarchy: the pipeline that this project grew from."""
        embed_model = HashingEmbedding()
        store = HierarchyStore(tmp_path)
        pipeline = IngestionPipeline(
            transformations=[
                SentenceSplitter(chunk_size=48, chunk_overlap=0),
                embed_model,
                SemanticHierarchy(embed_model=embed_model, max_children=4),
            ],
            vector_store=store,
        )
        nodes = pipeline.run(documents=documents_of(*"abc"))
        assert Counter(columns_of(store, "level")["level"]) == Counter(
            Node.of(n).level for n in nodes
        )

        index = VectorStoreIndex.from_vector_store(store, embed_model=embed_model)
        engine = index.as_query_engine(
            llm=MockLLM(), response_synthesizer=ExtractiveSynthesizer(embed_model)
        )
        assert "yeast" in str(engine.query("the yeast meets the crust"))

    def test_a_cache_keeps_what_models_made(self, tmp_path) -> None:
        """Of a run and the next, sync or async, with another pipeline and another model object."""
        chunks = chunks_of(documents_of(*"abc"))
        with LoopbackServer() as server:

            def pipeline(embed_model: HashingEmbedding) -> IngestionPipeline:
                rewriter = LLMRewriter(llm_of(server))
                summarizer = TwoStageSummarizer(rewriter)
                hierarchy = SemanticHierarchy(
                    embed_model, summarizer, cache=tmp_path, max_children=4
                )
                return IngestionPipeline(transformations=[hierarchy])

            nodes = pipeline(HashingEmbedding(model_name="known")).run(nodes=chunks)
            asked, again = len(server.requests), HashingEmbedding(model_name="known")
            assert asked
            assert pipeline(again).run(nodes=chunks) == nodes
            assert asyncio.run(pipeline(again).arun(nodes=chunks)) == nodes
            assert len(server.requests) == asked
        assert not again.batches

    def test_slices_are_refused(self) -> None:
        pipeline = IngestionPipeline(
            transformations=[SemanticHierarchy(embed_model=HashingEmbedding())]
        )
        with pytest.raises(InputError, match="num_workers slices them"):
            pipeline.run(nodes=chunks_of(documents_of("a", "b")), num_workers=2)
        with pytest.raises(InputError, match="num_workers slices them"):
            asyncio.run(pipeline.arun(nodes=chunks_of(documents_of("a", "b")), num_workers=2))


@pytest.mark.spread
@pytest.mark.parametrize("hierarchy", [SemanticHierarchy, DocumentHierarchy])
@pytest.mark.parametrize("cached", [False, True])
def test_copies_are_paid_for_once(tmp_path, hierarchy, cached):
    """Also by an extractive summariser, and where no summary is kept."""

    def grown(names):
        model, summarizer = HashingEmbedding(), CountingSummarizer()
        grow = hierarchy(embed_model=model, summarizer=summarizer, max_children=3, max_levels=1)
        copies = [Document(text=text_of("a"), id_=name) for name in names]
        chunks = SentenceSplitter(chunk_size=60, chunk_overlap=0)(copies)
        if cached:
            with open_cache(str(tmp_path / names)) as cache:
                nodes = as_text_nodes(grow.grow([as_chunks(chunks)], cache).nodes)
        else:
            nodes = grow(chunks)
        return model.batches, summarizer.calls, [(n.text, Node.of(n).level) for n in nodes]

    *paid, nodes = grown("a")
    *paid_of_copies, nodes_of_copies = grown("abc")
    assert paid_of_copies == paid
    assert sorted(nodes_of_copies) == sorted(3 * nodes)
