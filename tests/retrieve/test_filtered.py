"""Nothing of what a filter leaves out is returned, in whatever way a question is asked."""

import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from fakes import HashingEmbedding
from indexes import built, where
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from store.oracle import Oracle, holds, seen

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    HierarchyRetriever,
    HierarchyStore,
    Node,
    RaptorHierarchy,
    SemanticHierarchy,
)
from hierindex.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore:The filter on .* matches nothing")

Op = FilterOperator
NOUNS = "kettle falcon marble candle willow anchor barley compass saddle violin".split()
TENANTS, TAGS = ["a", "b", "c"], ["red", "green", "blue"]
QUESTION = "the kettle met a falcon"
ALL = {"top_k": 1000, "token_budget": None}
WAYS = [
    {},
    {"level": 0},
    {"level": 1},
    {"level": [0, 2]},
    {"by": "hybrid"},
    {"by": "text"},
    {"by": "context", "level": 0},
    {"by": "context", "level": 1},
    {"mode": "traversal"},
    {"mode": "traversal", "beam": 1},
    {"mode": "document", "n_documents": 9},
    {"mode": "document", "whole_documents": True},
    {"mode": "collapsed"},
]
KINDS = {
    "semantic": (SemanticHierarchy, {"max_children": 3}),
    "raptor": (RaptorHierarchy, {"max_children": 3}),
    "document": (DocumentHierarchy, {}),
}


def marked(rng):
    """Chunks of some documents; each sentence has a word that no other has."""
    chunks = []
    for d in range(rng.randint(3, 7)):
        document = f"d{d}.txt"
        own = {"tenant": rng.choice(TENANTS), "year": rng.randint(2020, 2023)}
        inherited = own if d % 3 else {}  # else only the document itself has it
        at = 0
        for c in range(rng.randint(1, 6)):
            text = " ".join(
                f"The {rng.choice(NOUNS)} of x{d}x{c}x{s} met a {rng.choice(NOUNS)}."
                for s in range(2)
            )
            metadata = {"page": c, "tags": rng.sample(TAGS, rng.randint(0, 2))}
            source = RelatedNodeInfo(node_id=document, metadata=own)
            chunks.append(
                TextNode(
                    text=text,
                    metadata=inherited | metadata,
                    start_char_idx=at,
                    end_char_idx=at + len(text),
                    relationships={NodeRelationship.SOURCE: source},
                )
            )
            at += len(text) + 1
    return chunks


def marks(text):
    return {word.strip(".,") for word in text.split() if word.count("x") >= 3}


def of_chunks(rng):
    key, operator, value = rng.choice(
        [
            ("tenant", Op.EQ, rng.choice(TENANTS)),
            ("tenant", Op.NE, rng.choice(TENANTS)),
            ("tenant", Op.IN, rng.sample(TENANTS, 2)),
            ("tenant", Op.NIN, rng.sample(TENANTS, 2)),
            ("tenant", Op.TEXT_MATCH, rng.choice(TENANTS)),
            ("year", rng.choice([Op.GT, Op.GTE, Op.LT, Op.LTE]), rng.randint(2020, 2023)),
            ("page", Op.LTE, rng.randint(0, 4)),
            ("tags", Op.CONTAINS, rng.choice(TAGS)),
            ("tags", Op.ANY, rng.sample(TAGS, 2)),
            ("tags", Op.ALL, rng.sample(TAGS, 1)),
            ("tags", Op.IS_EMPTY, None),
            (rng.choice(["documents", "hierindex_documents"]), Op.ANY, two_documents(rng)),
            ("missing", Op.NE, "x"),
        ]
    )
    return MetadataFilter(key=key, operator=operator, value=value)


def two_documents(rng):
    return [f"d{rng.randint(0, 6)}.txt", f"d{rng.randint(0, 6)}.txt"]


def of_node(rng):
    key, operator, value = rng.choice(
        [
            ("hierindex_level", rng.choice([Op.LTE, Op.GTE, Op.EQ]), rng.randint(0, 3)),
            ("hierindex_level_max", Op.GTE, rng.randint(0, 3)),
            ("hierindex_kind", Op.EQ, rng.choice(["chunk", "extractive"])),
        ]
    )
    return MetadataFilter(key=key, operator=operator, value=value)


def filters(rng, leaf, depth=2):
    parts = [
        filters(rng, leaf, depth - 1) if depth and rng.random() < 0.4 else leaf(rng)
        for _ in range(rng.randint(1, 3))
    ]
    return MetadataFilters(filters=parts, condition=rng.choice(list(FilterCondition)))


def grown(kind, rng, folder):
    hierarchy, options = KINDS[kind]
    grow = hierarchy(embed_model=HashingEmbedding(), summary_tokens=40, **options)
    nodes = grow(marked(rng))
    store = HierarchyStore(folder)
    store.add(nodes)
    return nodes, store


def run(kind, seed, n_filters, folder):
    """Random filters on a random tree: the rows that pass, and three ways of asking each."""
    rng = random.Random(seed)
    nodes, store = grown(kind, rng, folder)
    oracle, model = Oracle(nodes), HashingEmbedding()
    leaves = [n for n in nodes if oracle.seen[n.node_id]["hierindex_level"] == 0]
    whole = any(seen["hierindex_whole_document"] for seen in oracle.seen.values())
    ways = [way for way in WAYS if whole or way.get("mode") != "document"]
    n_found = 0
    for _ in range(n_filters):
        for some in (False, True):
            one = MetadataFilters(filters=[filters(rng, of_chunks), filters(rng, of_node)])
            found = store.get_nodes(filters=one, partial_summaries=some)
            assert {n.node_id for n in found} == oracle.passing(one, partial=some), one
        one = filters(rng, of_chunks)
        excluded = [leaf for leaf in leaves if not oracle.passes(one, leaf.node_id)]
        hidden = {mark for leaf in excluded for mark in marks(leaf.text)}
        spans = [span for leaf in excluded for span in citations(leaf)]
        for way in [*rng.sample(ways, 3), {"outline": rng.choice([200, 10_000])}]:
            if "outline" in way:
                asked = way["outline"], rng.choice([None, QUESTION])
                ask = partial(HierarchicalIndex(store, model).outline, *asked, filters=one)
            else:
                retriever = HierarchyRetriever(store, model, filters=one, **(ALL | way))
                ask = partial(retriever.retrieve, QUESTION)
            if not {*keys(one)} <= oracle.known | {"documents"}:
                with pytest.raises(InputError, match="No chunk has the key"):
                    ask()
                continue
            found = ask()
            n_found += len(found)
            for node in (each.node for each in found):
                assert all(oracle.each(one, node.node_id)), (one, way)
                assert not marks(node.get_content(MetadataMode.ALL) + str(node.metadata)) & hidden
                assert not any(overlap(s, span) for s in spans for span in citations(node))
            check_nothing_is_missing(oracle, one, way, {each.node.node_id for each in found})
    assert n_found > n_filters  # it is not true of nothing


def check_nothing_is_missing(oracle, one, way, found):
    """What asks for all of a cut gets all of it that passes; a narrow way down still arrives."""
    if way.get("mode") == "collapsed":  # a summary makes room for its children
        passes = oracle.passing(one)
        assert found <= passes, (one, way)
        below = [oracle.below[node_id] for node_id in passes - found]
        assert all(children and passes.issuperset(children) for children in below), (one, way)
    level = 0 if way.get("mode") == "traversal" else way.get("level")
    if not isinstance(level, int):
        return
    place = oracle.seen.items()
    cut = {i for i, at in place if at["hierindex_level"] <= level <= at["hierindex_level_max"]}
    passes = oracle.passing(one) & cut
    if "beam" in way:
        assert bool(found) == bool(passes), (one, way)
    elif way.get("by") != "text":
        assert found == passes, (one, way)


def keys(one):
    for part in one.filters:
        yield from keys(part) if isinstance(part, MetadataFilters) else [part.key]


def overlap(one, other):
    return one.document == other.document and one.start < other.end and other.start < one.end


def level_of(node):
    return seen(node)["hierindex_level"]


def citations(node):
    return Node.of(node).citations


@pytest.mark.spread
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_no_character_of_what_is_left_out_is_returned(tmp_path, kind, seed):
    run(kind, seed, 3, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(100, 112))
def test_a_thousand_filters(tmp_path, kind, seed):
    run(kind, seed, 35, tmp_path)


def of_two_tenants(folder):
    """A tree whose root stands on documents of both."""
    nodes, store = grown("semantic", random.Random(3), folder)
    assert {seen(n)["tenant"] for n in nodes if level_of(n) == 0} >= {"a", "b"}
    return nodes, store


@pytest.fixture(scope="module")
def two_tenants(tmp_path_factory):
    return of_two_tenants(tmp_path_factory.mktemp("index"))


@pytest.mark.parametrize("operator", [Op.EQ, Op.NE])
def test_a_summary_of_both_passes_neither(two_tenants, operator):
    nodes, store = two_tenants
    root = max(nodes, key=lambda n: Node.of(n).level)
    one = where(operator, tenant="a")
    assert root.node_id not in {n.node_id for n in store.get_nodes(filters=one)}
    options = {"filters": one, "partial_summaries": True, **ALL}
    level = Node.of(root).level
    retriever = HierarchyRetriever(store, HashingEmbedding(), level=level, **options)
    assert [n.node.node_id for n in retriever.retrieve(QUESTION)] == [root.node_id]


def test_a_summary_that_has_lost_a_chunk_passes_nothing_of_chunks(tmp_path):
    nodes, store = of_two_tenants(tmp_path)
    parent = next(n for n in nodes if len(n.child_nodes or ()) > 1)
    tenant = seen(store.get_nodes([parent.child_nodes[0].node_id])[0])["tenant"]
    one = where(tenant=tenant)
    assert parent.node_id in {n.node_id for n in store.get_nodes(filters=one)}
    store.delete_nodes([parent.child_nodes[0].node_id])
    assert parent.node_id not in {n.node_id for n in store.get_nodes(filters=one)}
    own = where(hierindex_kind="extractive")
    assert parent.node_id in {n.node_id for n in store.get_nodes(filters=own)}


@pytest.mark.parametrize(
    ("operator", "value", "others"),
    [
        (Op.EQ, "d0.txt", False),
        (Op.NE, "d0.txt", True),
        (Op.IN, ["d0.txt"], False),
        (Op.NIN, ["d0.txt"], True),
        (Op.ANY, ["d0.txt"], False),
        (Op.CONTAINS, "d0.txt", False),
    ],
)
def test_a_document_is_named_by_any_operator(two_tenants, operator, value, others):
    nodes, store = two_tenants
    found = [citations(n) for n in store.get_nodes(filters=where(operator, documents=value))]
    of = {span.document for spans in found for span in spans}
    every = {span.document for n in nodes for span in citations(n)}
    assert of == (every - {"d0.txt"} if others else {"d0.txt"})


WIDE = {
    "100 alternatives": [MetadataFilter(key="page", value=i) for i in range(100)],
    "100 exclusions": [
        MetadataFilter(key="tenant", value=f"x{i}", operator="!=") for i in range(100)
    ],
    "10 pairs": [
        MetadataFilters(
            filters=[
                MetadataFilter(key="year", value=2020 + i % 4),
                MetadataFilter(key="tenant", value=TENANTS[i % 3]),
            ]
        )
        for i in range(10)
    ],
}


@pytest.mark.spread
@pytest.mark.parametrize("parts", WIDE.values(), ids=WIDE)
@pytest.mark.parametrize("condition", list(FilterCondition))
def test_filters_of_many_parts(two_tenants, parts, condition):
    nodes, store = two_tenants
    of_metadata = MetadataFilters(filters=parts, condition=condition)
    one = MetadataFilters(filters=[of_metadata, of_node(random.Random(0))])
    found = {n.node_id for n in store.get_nodes(filters=one)}
    assert found == Oracle(nodes).passing(one)
    query = VectorStoreQuery(nodes[0].embedding, 1000, filters=one)
    assert set(store.query(query).ids) == found


def test_deleting_by_a_filter_leaves_nothing_that_was_said(tmp_path):
    nodes, store = of_two_tenants(tmp_path)
    one = where(tenant="a")
    going = [n for n in nodes if level_of(n) == 0 and holds(one, seen(n))]
    hidden = {mark for n in going for mark in marks(n.text)}
    store.delete_nodes(filters=one)
    left = store.get_nodes()
    assert left
    assert not {mark for n in left for mark in marks(n.text)} & hidden


def test_deleting_by_a_filter_reaches_above_a_summary_that_is_gone(tmp_path):
    """The chunks of a summary that was deleted by its id are still told by those above it."""
    nodes, store = of_two_tenants(tmp_path)
    one = where(tenant="a")
    hidden = {m for n in nodes if level_of(n) == 0 and holds(one, seen(n)) for m in marks(n.text)}
    store.delete_nodes([n.node_id for n in nodes if level_of(n) == 1])
    assert {m for n in store.get_nodes() if level_of(n) > 1 for m in marks(n.text)} & hidden
    store.delete_nodes(filters=one)
    assert not {mark for n in store.get_nodes() for mark in marks(n.text)} & hidden


def test_questions_at_the_same_time_find_the_same_summaries(tmp_path):
    days = range(40)
    texts = {f"{noun}.txt": " ".join(f"The {noun} met {day}." for day in days) for noun in NOUNS}
    index = built(texts, tmp_path / "index")
    others = MetadataFilter(key="hierindex_documents", value="owl.txt", operator=Op.NE)
    retriever = index.as_retriever(level=1, filters=MetadataFilters(filters=[others]), **ALL)
    expected = len(retriever.retrieve(QUESTION))
    assert expected >= len(NOUNS)
    for _ in range(5):
        index.table.snapshot().known.clear()
        with ThreadPoolExecutor(4) as threads:
            found = [*threads.map(retriever.retrieve, [QUESTION] * 4)]
        assert {len(each) for each in found} == {expected}
