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
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from records import metadata_of
from store.oracle import Oracle, holds, seen

from hierindex.errors import InputError
from hierindex.node import Node
from hierindex.store.filters import MOST_DEEP, OURS
from hierindex.store.vector_store import HierarchyStore

pytestmark = pytest.mark.filterwarnings("ignore:The filter on .* matches nothing")

Op = FilterOperator
AND, OR, NOT = FilterCondition.AND, FilterCondition.OR, FilterCondition.NOT
SQL = "x' OR 1=1 --"
ODD = [
    "",
    "x",
    SQL,
    'a"b',
    "'",
    "''",
    "\\",
    "%",
    "_",
    "ü",
    "Ü",
    "日本",
    "🌲",
    "n\0l",
    "n",
    "\n",
    "1",
]
OWN = ["id", "level", "level_max", "kind", "documents"]
KEYS = [*(f"hierindex_{key}" for key in OWN), "documents", "author", "n", "tags", "missing", SQL]
NUMBERS = [0, 1, 2, -1, 1.0, 1.5, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63]


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
    made = TextNode(id_=ODD[i] or "empty", text="text", embedding=[1.0, i])
    made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=ODD[-i])
    values = {"author": ODD[-i - 1], "n": NUMBERS[i % len(NUMBERS)], SQL: i}
    values |= {"tags": ODD[i : i + 3] if i % 2 else NUMBERS[: i % 4]}
    made.metadata = {key: value for j, (key, value) in enumerate(values.items()) if (i + j) % 5}
    made.metadata |= metadata_of(
        level=i % 3,
        level_max=i % 3 + i % 2,
        kind=["chunk", "extractive", SQL][i % 3],
        documents=tuple(ODD[i : i + i % 3]),
    )
    return made


NODES = [node(i) for i in range(len(ODD))]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add(NODES)
    return store


def found(store, filters=None, **fields):
    query = VectorStoreQuery([1.0, 1.0], similarity_top_k=100, filters=filters, **fields)
    return set(store.query(query).ids)


ORACLE = Oracle(NODES)
expected = ORACLE.passing


texts = st.sampled_from(ODD)
integers = st.sampled_from([n for n in NUMBERS if isinstance(n, int)])
floats = st.sampled_from([float(n) for n in NUMBERS])
values = st.one_of(
    st.none(),
    texts,
    integers,
    floats,
    *(st.lists(v, max_size=3) for v in (texts, integers, floats)),
)
single = st.builds(
    MetadataFilter, key=st.sampled_from(KEYS), value=values, operator=st.sampled_from(Op)
)
on_columns = st.one_of(
    st.builds(
        MetadataFilter,
        key=st.sampled_from(["hierindex_level", "hierindex_level_max"]),
        value=st.integers(-1, 4) | st.lists(st.integers(-1, 4), min_size=1, max_size=3),
        operator=st.sampled_from([Op.EQ, Op.NE, Op.LT, Op.LTE, Op.GT, Op.GTE, Op.IN, Op.NIN]),
    ),
    st.builds(
        MetadataFilter,
        key=st.sampled_from(["hierindex_id", "hierindex_kind"]),
        value=texts | st.lists(texts, min_size=1, max_size=3) | st.sampled_from(["chunk", "empty"]),
        operator=st.sampled_from([Op.EQ, Op.NE, Op.LT, Op.LTE, Op.GT, Op.GTE, Op.IN, Op.NIN]),
    ),
)


def nested(leaves):
    conditions = st.sampled_from([*FilterCondition, None])
    return st.recursive(
        st.builds(
            MetadataFilters, filters=st.lists(leaves, min_size=1, max_size=3), condition=conditions
        ),
        lambda inner: st.builds(
            MetadataFilters,
            filters=st.lists(leaves | inner, min_size=1, max_size=3),
            condition=conditions,
        ),
        max_leaves=4,
    )


@given(nested(single | on_columns))
def test_the_rows_found_are_those_whose_metadata_passes(store, filters):
    assert found(store, filters) == expected(filters)
    assert {node.node_id for node in store.get_nodes(filters=filters)} == expected(filters)


@given(nested(on_columns))
def test_an_expression_finds_what_python_finds(store, filters):
    assert found(store, filters) == expected(filters)


@pytest.mark.spread
@pytest.mark.parametrize("key", [*(f"hierindex_{key}" for key in OWN), "author", "documents"])
@pytest.mark.parametrize("value", [*ODD, "1 OR 1=1", "level", None, *NUMBERS, ODD, [1, 2], [1.5]])
def test_no_value_of_any_type_is_read_as_a_query(store, key, value):
    for operator in (Op.EQ, Op.NIN, Op.LT):
        assert found(store, all_of(f(key, value, operator))) == expected(
            all_of(f(key, value, operator))
        )


@pytest.mark.parametrize("key", ["level) OR (1=1", "id'", "vector", "metadata.x", "", "n\0l"])
def test_no_key_is_read_as_a_query(store, key):
    assert found(store, all_of(f(key, "x"))) == set()
    assert found(store, any_of(f(key, "x"), f("hierindex_level", 0))) == found(
        store, all_of(f("hierindex_level", 0))
    )


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
    for dry_run in (True, False):
        with pytest.raises(InputError, match="No chunk has the key 'missing'"):
            store.delete_nodes(filters=all_of(one), dry_run=dry_run)
    assert len(store.get_nodes()) == before


@pytest.mark.parametrize("one", UNKNOWN.values(), ids=UNKNOWN)
def test_the_other_alternatives_are_found(store, one):
    with pytest.warns(UserWarning, match="matches nothing"):
        assert found(store, any_of(one, f("hierindex_level", 0))) == expected(
            all_of(f("hierindex_level", 0))
        )


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
    "NIN of nothing": ("n", Op.NIN, ["2"]),
    "NIN of a missing key": ("missing", Op.NIN, ["x"]),
    "ANY": ("tags", Op.ANY, ["b", "x"]),
    "ANY of a scalar": ("n", Op.ANY, [2, 9]),
    "ALL": ("tags", Op.ALL, ["b", "a"]),
    "ALL of some": ("tags", Op.ALL, ["b"]),
    "CONTAINS": ("tags", Op.CONTAINS, "a"),
    "CONTAINS a number": ("numbers", Op.CONTAINS, 2),
    "IS_EMPTY of none": ("none", Op.IS_EMPTY, None),
    "IS_EMPTY of a missing key": ("missing", Op.IS_EMPTY, None),
    "IS_EMPTY of a text": ("empty", Op.IS_EMPTY, None),
    "IS_EMPTY of a list": ("empties", Op.IS_EMPTY, None),
    "TEXT_MATCH": ("s", Op.TEXT_MATCH, "ller &"),
    "TEXT_MATCH of nothing": ("s", Op.TEXT_MATCH, ""),
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
    "NE of int and float": ("n", Op.NE, 2.0),
    "GT": ("n", Op.GT, 2),
    "GT of a text": ("s", Op.GT, 0),
    "GT of digits": ("n", Op.GT, "1"),
    "GT of a missing key": ("missing", Op.GT, 0),
    "GT of none": ("none", Op.GT, 0),
    "GTE": ("n", Op.GTE, 2.5),
    "LT": ("n", Op.LT, 2),
    "LT of a list": ("tags", Op.LT, "z"),
    "LTE": ("n", Op.LTE, 1),
    "IN": ("n", Op.IN, [1, 3]),
    "IN of digits": ("n", Op.IN, ["2"]),
    "IN nothing": ("n", Op.IN, ["x"]),
    "IN of a missing key": ("missing", Op.IN, ["x"]),
    "NIN": ("n", Op.NIN, [2]),
    "ANY": ("tags", Op.ANY, ["x"]),
    "ANY of part of a text": ("s", Op.ANY, ["M"]),
    "ANY of a missing key": ("missing", Op.ANY, ["x"]),
    "ALL": ("tags", Op.ALL, ["a", "x"]),
    "ALL of a missing key": ("missing", Op.ALL, ["x"]),
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


@pytest.mark.parametrize(("key", "operator", "value"), PASSES.values(), ids=PASSES)
def test_passes(key, operator, value):
    assert holds(all_of(f(key, value, operator)), LEAF)


@pytest.mark.parametrize(("key", "operator", "value"), FAILS.values(), ids=FAILS)
def test_fails(key, operator, value):
    assert not holds(all_of(f(key, value, operator)), LEAF)


def test_every_operator_has_a_case_of_each():
    assert {operator for _, operator, _ in PASSES.values()} == set(Op)
    assert {operator for _, operator, _ in FAILS.values()} == set(Op)


yes, no = f("n", 2), f("n", 3)
CONDITIONS = {
    "AND": (all_of(yes, yes), True),
    "AND of one that fails": (all_of(yes, no), False),
    "AND of none": (all_of(), True),
    "no condition": (MetadataFilters(filters=[yes, no], condition=None), False),
    "OR": (any_of(no, yes), True),
    "OR of none that passes": (any_of(no, no), False),
    "NOT of one that passes": (not_(yes), False),
    "NOT of one that fails": (not_(no), True),
    "NOT of two that fail": (not_(no, no), True),
    "NOT of one of two": (not_(yes, no), False),
    "NOT of NOT": (not_(not_(yes)), True),
    "AND of OR": (all_of(yes, any_of(no, yes)), True),
    "OR of AND": (any_of(no, all_of(yes, no)), False),
    "NOT of OR": (not_(any_of(no, yes)), False),
    "NOT of AND": (not_(all_of(no, yes)), True),
}


@pytest.mark.parametrize(("filters", "passes"), CONDITIONS.values(), ids=CONDITIONS)
def test_conditions(filters, passes):
    assert holds(filters, LEAF) is passes


@given(
    st.lists(
        st.builds(
            MetadataFilter,
            key=st.sampled_from(["n", "f", "missing"]),
            value=st.integers(0, 3) | st.floats(0, 3) | st.none(),
            operator=st.sampled_from([Op.EQ, Op.NE, Op.IS_EMPTY]),
        )
        | st.builds(
            MetadataFilter,
            key=st.sampled_from(["n", "f", "missing"]),
            value=st.integers(0, 3) | st.floats(0, 3),
            operator=st.sampled_from([Op.LT, Op.LTE, Op.GT, Op.GTE]),
        )
        | st.builds(
            MetadataFilter,
            key=st.sampled_from(["n", "f", "missing"]),
            value=st.lists(st.integers(0, 3), max_size=3),
            operator=st.sampled_from([Op.IN, Op.NIN]),
        )
        | st.builds(
            MetadataFilter,
            key=st.sampled_from(["tags", "missing"]),
            value=st.lists(st.sampled_from("abx"), max_size=3),
            operator=st.sampled_from([Op.ANY, Op.ALL]),
        )
        | st.builds(
            MetadataFilter,
            key=st.sampled_from(["s", "missing"]),
            value=st.sampled_from(["Müller", "müller", "x", ""]),
            operator=st.sampled_from([Op.TEXT_MATCH, Op.TEXT_MATCH_INSENSITIVE]),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([*FilterCondition, None]),
)
@example([f("n", 2), f("n", 3)], NOT)
@example([f("missing", None)], AND)
@example([f("missing", None, Op.NE)], AND)
@example([f("missing", [], Op.ALL)], AND)
def test_values_of_the_right_type_pass_as_in_llama_index(filters, condition):
    metadata = {key: LEAF[key] for key in ("n", "f", "s", "tags")}
    filters = MetadataFilters(filters=filters, condition=condition)
    theirs = build_metadata_filter_fn(lambda _: metadata, filters)
    assert holds(filters, metadata) == theirs("id")


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


@pytest.mark.parametrize("document", [*ODD[1:], "nobody"])
def test_doc_ids_of_a_query(store, document):
    def of(node):
        return Node.of(node).documents

    chunks = [node for node in NODES if seen(node)["hierindex_level"] == 0]
    assert found(store, doc_ids=[document]) == {n.node_id for n in chunks if document in of(n)}


def test_no_documents_are_not_all(store):
    assert found(store, doc_ids=[]) == set()


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


def test_filters_of_a_class_of_the_users(store):
    class Mine(MetadataFilters):
        pass

    mine = Mine(filters=[any_of(f("n", 1), f("n", 2))])
    mine.condition = "or"
    assert found(store, filters=mine) == found(store, filters=any_of(f("n", 1), f("n", 2)))


def test_what_filters_see_of_a_node():
    record = metadata_of(level=1, level_max=2, kind="extractive", documents=("a", "b"))
    made = TextNode(id_="n", text="", metadata={"author": "Ada"} | record)
    told = seen(made)
    own = {"id": "n", "level": 1, "level_max": 2, "kind": "extractive", "documents": ["a", "b"]}
    assert {key: told[f"hierindex_{key}"] for key in own} == own
    assert told["author"] == "Ada"


@pytest.mark.spread
@pytest.mark.parametrize("join", [all_of, any_of, not_])
@pytest.mark.parametrize("key", ["author", "hierindex_level"])
def test_deeply_nested_filters(tmp_path, join, key):
    store, nested = HierarchyStore(tmp_path), f("author", "Ada")
    store.add([TextNode(text="a", embedding=[1.0], metadata={"author": "Ada"})])
    for _ in range(MOST_DEEP):
        nested = join(nested, f(key, 0))
    assert len(store.get_nodes(filters=nested)) <= 1
    with pytest.raises(InputError, match=f"nested more than {MOST_DEEP} deep"):
        store.get_nodes(filters=join(nested))


@pytest.mark.parametrize("key", [*OURS, "hierindex_mine"])
def test_a_key_under_our_prefix_is_refused_where_nodes_enter(tmp_path, key):
    store = HierarchyStore(tmp_path)
    with pytest.raises(InputError, match=f"Metadata key '{key}' of node n is reserved"):
        store.add([TextNode(id_="n", text="", embedding=[1.0, 0.0], metadata={key: "mine"})])
    assert store.get_nodes() == []
