"""Filters of a store: what passes, whatever LanceDB is asked, against what they mean in Python."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from records import metadata_of, replace_all
from store.oracle import Oracle, holds, passing, seen

from hierindex import HierarchyStore, Node
from hierindex.errors import InputError
from hierindex.store import search
from hierindex.store.filters import OF_NODE, OURS, TYPE_OF, Filters, prefilter

pytestmark = pytest.mark.filterwarnings("ignore:The filter on .* matches nothing")

Op = FilterOperator
AND, OR, NOT = FilterCondition.AND, FilterCondition.OR, FilterCondition.NOT
SQL = "x') OR array_has_any(digests, ['x"
ODD = ["", SQL, *"x'\\%_üÜn1\n🌲", 'a"b', "''", "日本", "n\0l"]
KEYS = ["author", "n", "tags", SQL, "n\0l", "", "kind"]
NUMBERS = [0, 1, 2, -1, 1.0, 1.5, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63]
VALUES = [None, True, False, *NUMBERS, float("nan"), 1e300, *ODD, [], [1, "x"], ["x", None, True]]
VALUES += [[SQL, "ü"], [1, "x"] * 50, (1, "x"), {}, {"x": 1}, [[1], {}]]


def f(key, value, operator=Op.EQ):
    return MetadataFilter(key=key, value=value, operator=operator)


def all_of(*filters):
    return MetadataFilters(filters=list(filters))


def any_of(*filters):
    return MetadataFilters(filters=list(filters), condition=OR)


def not_(*filters):
    return MetadataFilters(filters=list(filters), condition=NOT)


def node(i):
    """One of a pool that differ in every key, some of them not there."""
    made = TextNode(id_=ODD[i] if 0 < i < len(ODD) else f"{i}", text="", embedding=[1.0, i])
    made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=ODD[-i % len(ODD)])
    made.metadata = {KEYS[(i + j) % 7]: VALUES[(i * 7 + j) % len(VALUES)] for j in range(i % 5)}
    made.metadata |= {"author": ODD[-i % len(ODD)]} if i % 3 else {}
    made.metadata |= metadata_of(
        level=i % 3,
        level_max=i % 3 + i % 2,
        kind=["chunk", "extractive", SQL][i % 3],
        documents=tuple(ODD[i % len(ODD) : i % len(ODD) + i % 3]),
    )
    return made


NODES = [node(i) for i in range(2 * len(VALUES))]
ORACLE = Oracle(NODES)
expected = ORACLE.passing


def indexed(folder, nodes):
    """A store with the indices of a large table, whose answers are not its rows' own."""
    store = HierarchyStore(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "SCALAR_ROWS", 1)
        replace_all(store, nodes)
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return indexed(tmp_path_factory.mktemp("index"), NODES)


def found(store, filters=None, **fields):
    query = VectorStoreQuery([1.0, 1.0], similarity_top_k=200, filters=filters, **fields)
    return set(store.query(query).ids)


texts = st.sampled_from([*ODD, "X", "\ud800"])
numbers = st.sampled_from([*NUMBERS, 0.0, float("nan"), 1e300])
wanted = st.one_of(
    *(st.none(), texts, numbers, st.lists(texts, max_size=3), st.lists(numbers, max_size=3))
)
integers = st.integers(-1, 4)
some = {"condition": st.sampled_from([*FilterCondition, None])}


def combined(single):
    one = st.builds(MetadataFilters, filters=st.lists(single, min_size=1, max_size=3), **some)
    return st.recursive(
        one,
        lambda inner: st.builds(
            MetadataFilters, filters=st.lists(single | inner, min_size=1, max_size=3), **some
        ),
        max_leaves=4,
    )


def of_keys(*keys):
    key, operator = st.sampled_from(keys), st.sampled_from(Op)
    return st.builds(MetadataFilter, key=key, value=wanted, operator=operator)


metadata = of_keys(*KEYS, "hierindex_documents", "documents", "missing", "\ud800", "level")
own = of_keys(*OF_NODE) | st.builds(
    MetadataFilter,
    key=st.sampled_from(["hierindex_level", "hierindex_level_max"]),
    value=integers | st.lists(integers, min_size=1, max_size=3),
    operator=st.sampled_from([Op.EQ, Op.NE, Op.LT, Op.LTE, Op.GT, Op.GTE, Op.IN, Op.NIN]),
)
nested = combined(metadata) | combined(own)
nested |= st.builds(all_of, combined(metadata), combined(own))


def check(store, filters, expected):
    assert found(store, filters) == expected
    assert {node.node_id for node in store.get_nodes(filters=filters)} == expected
    query = VectorStoreQuery([1.0, 1.0], similarity_top_k=2, filters=filters)
    assert len(store.query(query).ids) == min(2, len(expected))


@given(nested)
@example(all_of(f("n", float("nan"))))
@example(all_of(f("n", [1.0], Op.NIN)))
@example(all_of(f("tags", 1, Op.CONTAINS)))
@example(all_of(f("tags", [1], Op.ANY)))
@example(all_of(f("n", 1)))
def test_the_rows_found_are_those_whose_metadata_passes(store, filters):
    check(store, filters, expected(filters))


stored = texts.filter(lambda text: text != "\ud800")
scalars = st.none() | st.booleans() | stored | numbers
lists = st.lists(scalars, max_size=3) | st.just([1, "x"] * 50)
json_values = scalars | lists | st.just((1, "x")) | st.dictionaries(stored, scalars, max_size=2)


@pytest.mark.slow
@given(
    st.lists(
        st.dictionaries(st.sampled_from(KEYS), json_values, max_size=4), min_size=1, max_size=8
    ),
    nested,
)
def test_rows_of_any_kind_are_found(tmp_path_factory, rows, filters):
    nodes = [
        TextNode(id_=f"{i}", text="", embedding=[1.0, i], metadata=row)
        for i, row in enumerate(rows)
    ]
    check(indexed(tmp_path_factory.mktemp("index"), nodes), filters, passing(filters, nodes))


@given(nested)
def test_a_value_enters_a_condition_only_in_quotes(filters):
    outside_quotes = re.sub(r"'[\w ./-]*'|'[-+\d.e]+'", "''", prefilter(Filters.of(filters)).sql)
    columns = "|".join(["digests", "scalars", *TYPE_OF])
    functions = "array_has_any|json_get_float|json_get_string|coalesce|contains|upper|cast|try_cast"
    words = rf"{functions}|as|double|string|AND|OR|NOT|IN|true|false|X|{columns}"
    assert re.fullmatch(rf"(?:\b(?:{words})\b|''|-?\d+|[<>=]+|[][(), ])*", outside_quotes)


@pytest.mark.parametrize("level", [f("hierindex_level", 0), not_(f("hierindex_level", 1))])
def test_a_filter_on_the_node_is_combined_with_others_by_and(store, level):
    one = f("author", "x")
    for mixed in (any_of(level, one), not_(all_of(level, one)), all_of(one, any_of(one, level))):
        with pytest.raises(InputError, match="can be combined only by AND"):
            found(store, mixed)
    assert found(store, not_(one, level)) == expected(not_(one, level))


@pytest.mark.parametrize("key", ["level) OR (1=1", "id'", "vector", "metadata.x", "", "n\0l"])
def test_no_key_is_read_as_a_query(store, key):
    assert found(store, all_of(f(key, "x"))) == set()


UNKNOWN = {
    "!=": f("missing", "x", Op.NE),
    "nin": f("missing", ["x"], Op.NIN),
    "is_empty": f("missing", None, Op.IS_EMPTY),
    "inside a NOT": not_(f("missing", "x")),
    "inside two": not_(not_(f("missing", "x"))),
    "beside another in a NOT": not_(f("n", 77), f("missing", "x")),
    "with another": all_of(f("n", 77, Op.NE), f("missing", "x", Op.NE)),
}


@pytest.mark.parametrize("one", UNKNOWN.values(), ids=UNKNOWN)
def test_a_condition_on_a_key_that_no_node_has_matches_nothing(store, one):
    with pytest.warns(UserWarning, match="The filter on 'missing' matches nothing"):
        assert found(store, all_of(one)) == set()
    before = len(store.get_nodes())
    with pytest.raises(InputError, match="No chunk has the key 'missing'"):
        store.delete_nodes(filters=all_of(one))
    assert len(store.get_nodes()) == before


@pytest.mark.parametrize("one", UNKNOWN.values(), ids=UNKNOWN)
def test_the_other_alternatives_are_found(store, one):
    with pytest.warns(UserWarning, match="matches nothing"):
        assert found(store, any_of(one, f("n", 1))) == expected(all_of(f("n", 1)))


LEAF = {"n": 2, "f": 2.0, "s": "Müller & Söhne", "tags": ["a", "b"], "flag": True, "none": None}
LEAF |= {"empty": "", "empties": [], "zero": 0, "numbers": [1, 2]}
PASSES = {
    "EQ": ("n", Op.EQ, 2),
    "EQ of int and float": ("n", Op.EQ, 2.0),
    "EQ of float and int": ("f", Op.EQ, 2),
    "EQ of a list": ("tags", Op.EQ, ["a", "b"]),
    "NE": ("n", Op.NE, 3),
    "NE of another type": ("n", Op.NE, "2"),
    "NE of a missing key": ("missing", Op.NE, "x"),
    "GT": ("n", Op.GT, 1.5),
    "GTE": ("n", Op.GTE, 2),
    "LT": ("s", Op.LT, "N"),
    "LTE": ("f", Op.LTE, 2),
    "IN": ("n", Op.IN, [1, 2]),
    "IN a single value": ("n", Op.IN, 2),
    "NIN": ("n", Op.NIN, [1, 3]),
    "NIN of a missing key": ("missing", Op.NIN, ["x"]),
    "ANY": ("tags", Op.ANY, ["b", "x"]),
    "ANY of a scalar": ("n", Op.ANY, [2, 9]),
    "ALL": ("tags", Op.ALL, ["b", "a"]),
    "CONTAINS": ("tags", Op.CONTAINS, "a"),
    "CONTAINS a number": ("numbers", Op.CONTAINS, 2),
    "IS_EMPTY of none": ("none", Op.IS_EMPTY, None),
    "IS_EMPTY of a missing key": ("missing", Op.IS_EMPTY, None),
    "IS_EMPTY of a text": ("empty", Op.IS_EMPTY, None),
    "IS_EMPTY of a list": ("empties", Op.IS_EMPTY, None),
    "TEXT_MATCH": ("s", Op.TEXT_MATCH, "ller &"),
    "TEXT_MATCH_INSENSITIVE": ("s", Op.TEXT_MATCH_INSENSITIVE, "MÜLLER"),
}
FAILS = {
    "EQ": ("n", Op.EQ, 3),
    "EQ of digits": ("n", Op.EQ, "2"),
    "EQ of another case": ("s", Op.EQ, "müller & söhne"),
    "EQ of a boolean and a number": ("flag", Op.EQ, 1),
    "EQ of a missing key": ("missing", Op.EQ, "x"),
    "EQ of a missing key and none": ("missing", Op.EQ, None),
    "EQ of an item": ("tags", Op.EQ, "a"),
    "NE": ("n", Op.NE, 2),
    "GT": ("n", Op.GT, 2),
    "GT of a text": ("s", Op.GT, 0),
    "GT of digits": ("n", Op.GT, "1"),
    "GT of none": ("none", Op.GT, 0),
    "GTE": ("n", Op.GTE, 2.5),
    "LT": ("n", Op.LT, 2),
    "LT of a list": ("tags", Op.LT, "z"),
    "LTE": ("n", Op.LTE, 1),
    "IN": ("n", Op.IN, [1, 3]),
    "IN of digits": ("n", Op.IN, ["2"]),
    "IN nothing": ("n", Op.IN, ["x"]),
    "NIN": ("n", Op.NIN, [2]),
    "ANY": ("tags", Op.ANY, ["x"]),
    "ANY of part of a text": ("s", Op.ANY, ["M"]),
    "ALL": ("tags", Op.ALL, ["a", "x"]),
    "CONTAINS": ("tags", Op.CONTAINS, "x"),
    "CONTAINS part of a text": ("s", Op.CONTAINS, "M"),
    "CONTAINS of a missing key": ("missing", Op.CONTAINS, "x"),
    "IS_EMPTY": ("s", Op.IS_EMPTY, None),
    "IS_EMPTY of zero": ("zero", Op.IS_EMPTY, None),
    "TEXT_MATCH of another case": ("s", Op.TEXT_MATCH, "MÜLLER"),
    "TEXT_MATCH of a number": ("n", Op.TEXT_MATCH, "2"),
    "TEXT_MATCH of a missing key": ("missing", Op.TEXT_MATCH, ""),
    "TEXT_MATCH of none": ("missing", Op.TEXT_MATCH, None),
    "TEXT_MATCH_INSENSITIVE": ("s", Op.TEXT_MATCH_INSENSITIVE, "muller"),
    "a wildcard": ("s", Op.TEXT_MATCH, "%"),
}


def test_each_operator_passes_and_fails(tmp_path):
    store = HierarchyStore(tmp_path)
    others = {"missing": "x", "none": "x"}  # or no filter on these keys would match anything
    for node_id, metadata in ("leaf", LEAF), ("other", others):
        store.add([TextNode(id_=node_id, text="", embedding=[1.0, 1.0], metadata=metadata)])
    for cases, passes in (PASSES, True), (FAILS, False):
        assert {operator for _, operator, _ in cases.values()} == set(Op)
        for name, (key, operator, value) in cases.items():
            filters = all_of(f(key, value, operator))
            assert ("leaf" in found(store, filters)) == passes, name
            assert holds(filters, LEAF) == passes, name


def test_a_name_in_a_filter_is_the_users_metadata(tmp_path):
    """Whatever hierindex calls its own columns."""
    keys = [key.removeprefix("hierindex_") for key in OURS]
    values = [dict.fromkeys(keys, value) for value in ("public", "confidential")]
    store = HierarchyStore(tmp_path)
    store.add(
        [
            TextNode(id_=f"n{i}", text="", embedding=[1.0, i], metadata=metadata)
            for i, metadata in enumerate([*values, {}])
        ]
    )
    for key in keys:
        public, other = all_of(f(key, "public")), all_of(f(key, "confidential", Op.NE))
        for filters, ids in ((public, {"n0"}), (other, {"n0", "n2"})):
            assert found(store, filters) == ids
            assert {n.node_id for n in store.get_nodes(filters=filters)} == ids
        not_public = all_of(f(key, "public", Op.NE))
        assert store.delete_nodes(filters=not_public, dry_run=True) == 2
    assert len(store.get_nodes()) == 3
    assert store.delete_nodes(filters=not_public) == 2
    assert {n.node_id for n in store.get_nodes()} == {"n0"}


def test_documents_are_ours_unless_a_user_has_such_a_key(tmp_path):
    store = HierarchyStore(tmp_path)
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="a.txt")}
    store.add([TextNode(id_="x", text="", embedding=[1.0, 0.0], relationships=source)])
    short, own = all_of(f("documents", "a.txt")), all_of(f("hierindex_documents", "a.txt"))
    assert found(store, short) == found(store, own) == {"x"}
    store.add([TextNode(id_="y", text="", embedding=[1.0, 0.0], metadata={"documents": "a.txt"})])
    assert found(store, short) == {"y"}
    assert found(store, own) == {"x"}


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(["x"], {"x"}), ([SQL, "ü", "nobody"], {SQL, "ü"}), (["nobody"], set()), (["n\0l"], {"n\0l"})],
)
def test_node_ids_of_a_query(store, ids, expected):
    assert found(store, node_ids=ids) == expected


@pytest.mark.parametrize("documents", [[each] for each in (*ODD[1:], "nobody")] + [[]])
def test_doc_ids_of_a_query(store, documents):
    def of(node):
        return Node.of(node).documents

    chunks = [node for node in NODES if seen(node)["hierindex_level"] == 0]
    ids = {n.node_id for n in chunks if {*documents} & {*of(n)}}
    assert found(store, doc_ids=documents) == ids


def test_ids_documents_and_filters_of_a_query_all_hold(store):
    node = next(node for node in NODES if seen(node)["hierindex_level"] == 0)
    own = {"node_ids": [node.node_id, "x"], "doc_ids": seen(node)["hierindex_documents"][:1]}
    level = 0
    assert found(store, all_of(f("hierindex_level", level)), **own) == {node.node_id}
    assert found(store, all_of(f("hierindex_level", level + 1)), **own) == set()


@pytest.mark.parametrize(
    "asked",
    [{}, {"filters": all_of()}, {"filters": any_of()}, {"node_ids": []}],
    ids=["nothing", "no filters", "no alternatives", "no ids"],
)
def test_a_query_without_filters(store, asked):
    assert found(store, **asked) == {node.node_id for node in NODES}
    assert len(store.get_nodes(filters=asked.get("filters"))) == len(NODES)


@pytest.mark.parametrize("key", [*OURS, "hierindex_mine"])
def test_a_key_under_our_prefix_is_refused_where_nodes_enter(tmp_path, key):
    store = HierarchyStore(tmp_path)
    with pytest.raises(InputError, match=f"Metadata key '{key}' of node n is reserved"):
        store.add([TextNode(id_="n", text="", embedding=[1.0, 0.0], metadata={key: "mine"})])
    assert store.get_nodes() == []


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
