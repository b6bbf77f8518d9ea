"""What LanceDB is asked to filter by, against what the filters mean."""

import re

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from records import metadata_of, replace_all
from store.oracle import passing

from hierindex.node import PREFIX
from hierindex.store import search
from hierindex.store.filters import Filters
from hierindex.store.prefilter import MOST_ITEMS, TYPE_OF, hash_entry, prefilter
from hierindex.store.rows import schema
from hierindex.store.vector_store import HierarchyStore

pytestmark = pytest.mark.filterwarnings("ignore:The filter on .* matches nothing")

Op = FilterOperator
SQL = "x') OR array_has_any(digests, ['x"
texts = st.sampled_from(["", "x", "X", SQL, 'a"b', "'", "\\", "%", "ü", "日本", "n\0l", "\ud800"])
numbers = st.sampled_from([0, 1, -1, 2, 0.0, 1.0, 1.5, float("nan"), 2**63, 1e300])
keys = st.sampled_from(
    [
        *("author", "n", "tags", SQL, "n\0l", "", "\ud800", "level"),
        *("hierindex_kind", "hierindex_level"),
    ]
)
stored = texts.filter(lambda text: text != "\ud800")
scalars = st.none() | st.booleans() | stored | numbers
lists = st.lists(scalars, max_size=3) | st.just([1, "x"] * MOST_ITEMS)
values = scalars | lists | st.just((1, "x")) | st.dictionaries(stored, scalars, max_size=2)
own = keys.filter(lambda key: key != "\ud800" and not key.startswith(PREFIX))
metadata = st.dictionaries(own, values, max_size=4)
wanted = st.one_of(
    st.none(),
    texts,
    numbers,
    st.lists(texts, max_size=3),
    st.lists(st.integers(-1, 2), max_size=3),
    st.lists(st.sampled_from([0.0, 1.0, 1.5]), max_size=3),
)
single = st.builds(MetadataFilter, key=keys, value=wanted, operator=st.sampled_from(Op))
level = st.builds(
    MetadataFilter,
    key=st.sampled_from(["hierindex_level", "hierindex_level_max"]),
    value=st.integers(-1, 3),
    operator=st.sampled_from([Op.LTE, Op.GTE, Op.EQ, Op.NE]),
)
conditions = st.sampled_from([*FilterCondition, None])
nested = st.recursive(
    st.builds(
        MetadataFilters,
        filters=st.lists(single | level, min_size=1, max_size=3),
        condition=conditions,
    ),
    lambda inner: st.builds(
        MetadataFilters,
        filters=st.lists(single | inner, min_size=1, max_size=3),
        condition=conditions,
    ),
    max_leaves=4,
)


def f(key, value, operator=Op.EQ):
    return MetadataFilter(key=key, value=value, operator=operator)


def all_of(*filters):
    return MetadataFilters(filters=list(filters))


def with_record(i, given):
    place = metadata_of(level=i % 3, level_max=2, kind=["chunk", "x", SQL][i % 3])
    own = place if i % 2 else {}
    return TextNode(id_=f"{i}", text=f"t{i}", metadata=own | given, embedding=[1.0, i])


VALUES = [None, True, False, 0, 1, -1, 1.0, 1.5, float("nan"), 2**63, 1e300, "", "x", "X", SQL]
VALUES += ["日本", "n\0l", [], [1, "x"], ["x", None, True], [SQL, "ü"], [1, "x"] * MOST_ITEMS]
VALUES += [(1, "x"), {}, {"x": 1}, [[1], {}]]
KEYS = ["author", "n", "tags", SQL, "n\0l", "", "kind"]
NODES = [
    with_record(i, {KEYS[(i + j) % len(KEYS)]: VALUES[(i * 7 + j) % len(VALUES)] for j in range(4)})
    for i in range(2 * len(VALUES))
]


def indexed(folder, nodes):
    """A store with the indices of a large table, whose answers are not its rows' own."""
    store = HierarchyStore(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "SCALAR_ROWS", 1)
        replace_all(store, nodes)
    return store


def check(store, filters):
    nodes = store.get_nodes()
    expected = passing(filters, nodes)
    query = VectorStoreQuery([1.0, 1.0], similarity_top_k=len(nodes), filters=filters)
    assert set(store.query(query).ids) == expected
    assert {node.node_id for node in store.get_nodes(filters=filters)} == expected
    query.similarity_top_k = 2
    assert len(store.query(query).ids) == min(2, len(expected))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return indexed(tmp_path_factory.mktemp("index"), NODES)


@given(nested)
@example(all_of(f("n", float("nan"))))
@example(all_of(f("n", [1.0], Op.NIN)))
@example(all_of(f("tags", 1, Op.CONTAINS)))
@example(all_of(f("tags", [1], Op.ANY)))
@example(all_of(f("n", 1)))
def test_no_row_too_many_and_none_too_few(store, filters):
    check(store, filters)


@pytest.mark.slow
@given(st.lists(metadata, min_size=1, max_size=8), nested)
def test_no_row_of_any_kind_too_many(tmp_path_factory, rows, filters):
    nodes = [with_record(i, given) for i, given in enumerate(rows)]
    check(indexed(tmp_path_factory.mktemp("index"), nodes), filters)


@given(nested)
def test_a_value_enters_a_condition_only_in_quotes(filters):
    outside_quotes = re.sub("'(?:[^']|'')*'", "''", prefilter(Filters.of(filters)).sql)
    columns = "|".join(["digests", *TYPE_OF])
    words = rf"array_has_any|AND|OR|NOT|IN|true|false|`?(?:{columns})`?"
    assert re.fullmatch(rf"(?:{words}|''|[-+.\de]+|[<>=!]+|[][(), ])*", outside_quotes)


EXACT = {
    "level": f("hierindex_level", 1),
    "levels": f("hierindex_level", [0, 2], Op.IN),
    "a key": f("author", "x"),
    "not a key": f("author", "x", Op.NE),
    "one of some": f("author", ["x", "y"], Op.IN),
    "none of some": f("author", ["x", "y"], Op.NIN),
    "empty": f("author", None, Op.IS_EMPTY),
    "a level or a higher one": f("hierindex_level", 1, Op.GTE),
}
NARROW = {
    "an item": f("tags", "x", Op.CONTAINS),
    "any item": f("hierindex_documents", ["x"], Op.ANY),
    "all items": f("tags", ["x", "y"], Op.ALL),
    "a range": f("n", 1, Op.GT),
    "a part": f("author", "x", Op.TEXT_MATCH),
    "a list": f("tags", ["x"]),
}


@pytest.mark.parametrize("one", EXACT.values(), ids=EXACT)
def test_lancedb_alone_filters_by_values(one):
    for condition in FilterCondition:
        where = prefilter(Filters.of(MetadataFilters(filters=[one], condition=condition)))
        assert where.exact
        assert where.sql


@pytest.mark.parametrize("one", NARROW.values(), ids=NARROW)
def test_lancedb_narrows_the_rest(one):
    where = prefilter(Filters.of(all_of(f("hierindex_level", 1), one)))
    assert where.sql
    assert not where.exact
    negated = MetadataFilters(filters=[one], condition=FilterCondition.NOT)
    assert not prefilter(Filters.of(negated)).sql


def test_columns_of_their_own_are_compared_as_they_are():
    arrow = {str: pa.string(), int: pa.int32()}
    assert all(schema(1).field(key).type == arrow[kind] for key, kind in TYPE_OF.items())


def test_equal_values_have_one_digest():
    assert hash_entry("is", "n", 1) == hash_entry("is", "n", 1.0) != hash_entry("is", "n", True)
    assert hash_entry("is", "n", "1") != hash_entry("is", "n", 1)
    assert hash_entry("is", "ab", "c") != hash_entry("is", "a", "bc")
    assert hash_entry("is", "n", 2**53 + 1) != hash_entry("is", "n", float(2**53))


@pytest.mark.spread
@pytest.mark.parametrize("share", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("top_k", [1, 7, 40])
def test_as_many_as_asked_for_come_however_rare_they_are(full, share, top_k):
    wanted = round(share * 300)
    filters = all_of(f("n", wanted, Op.LT))
    result = full.query(VectorStoreQuery([0.0, 1.0], similarity_top_k=top_k, filters=filters))
    assert result.ids == [str(i) for i in range(wanted)][::-1][:top_k]


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    store = HierarchyStore(tmp_path_factory.mktemp("full"))
    store.add(
        [
            TextNode(id_=f"{i}", text="", embedding=[300.0 - i, i], metadata={"n": i})
            for i in range(300)
        ]
    )
    return store
