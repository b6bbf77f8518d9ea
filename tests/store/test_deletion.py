import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from records import metadata_of
from store.trees import columns_of, record

from hierindex.node import Node
from hierindex.store.deletion import unlinked
from hierindex.store.rows import node_of, row_of
from hierindex.store.vector_store import HierarchyStore
from hierindex.text_node import to_text_node

NEXT, PREVIOUS = NodeRelationship.NEXT, NodeRelationship.PREVIOUS
PARENT, CHILD = NodeRelationship.PARENT, NodeRelationship.CHILD


def node(node_id="n", *, parents=None, children=(), **beside):
    """A node with parents by weight, in that order, children, and `next` and `previous`."""
    made = TextNode(id_=node_id, text=node_id, embedding=[1.0, 0.0])
    made.metadata = metadata_of(parents=tuple((parents or {}).items()))
    if parents:
        made.relationships[PARENT] = RelatedNodeInfo(node_id=next(iter(parents)))
    if children:
        made.relationships[CHILD] = [RelatedNodeInfo(node_id=child) for child in children]
    for name, other in beside.items():
        made.relationships[NodeRelationship[name.upper()]] = RelatedNodeInfo(node_id=other)
    return made


def freed_of(node, gone, top):
    """The node without links to what goes."""
    return to_text_node(node_of(unlinked(row_of(Node.of(node)), set(gone), top)))


def parent(node):
    return node.parent_node and node.parent_node.node_id


@pytest.mark.parametrize(
    ("parents", "gone", "left"),
    [
        pytest.param({"p": 1.0}, "p", {}, id="the only parent"),
        pytest.param({"p": 0.6, "q": 0.4}, "p", {"q": 1.0}, id="the strongest"),
        pytest.param({"p": 0.6, "q": 0.4}, "q", {"p": 1.0}, id="the weaker"),
        pytest.param({"p": 0.5, "q": 0.3, "r": 0.2}, "p", {"q": 0.6, "r": 0.4}, id="of three"),
        pytest.param({"p": 0.5, "q": 0.25, "r": 0.25}, "pq", {"r": 1.0}, id="two of three"),
        pytest.param({"p": 0.5, "q": 0.5}, "pq", {}, id="all"),
        pytest.param({"p": 0.5, "q": 0.5}, "x", {"p": 0.5, "q": 0.5}, id="none"),
        pytest.param({}, "x", {}, id="a root"),
    ],
)
def test_the_parents_that_are_left(parents, gone, left):
    freed = freed_of(node(parents=parents), gone, top=3)
    assert dict(record(freed).parents) == pytest.approx(left)
    assert [p for p, _ in record(freed).parents] == list(left)
    assert parent(freed) == next(iter(left), None)


def test_the_rest_of_a_record_stays():
    full = metadata_of(level=1, level_max=2, documents=("d",), parents=(("p", 1.0),), n_tokens=7)
    made = TextNode(text="text", metadata={"own": 1} | full)
    freed = freed_of(made, "p", top=5)
    left = record(freed)
    assert (left.level, left.level_max, left.documents, left.n_tokens) == (1, 5, ("d",), 7)
    assert not left.parents
    assert freed.metadata["own"] == 1


@pytest.fixture
def store(tmp_path):
    return HierarchyStore(tmp_path)


def test_deleting_one_of_two_parents(store):
    store.add(
        [
            node("a", parents={"p": 0.75, "q": 0.25}),
            node("b", parents={"p": 1.0}),
            node("p", children="ab"),
            node("q", children="a"),
        ]
    )
    store.delete_nodes(["p"])
    a, b, q = store.get_nodes(["a", "b", "q"])
    assert (record(a).parents, parent(a)) == ((("q", 1.0),), "q")
    assert (record(b).parents, parent(b)) == ((), None)
    assert [child.node_id for child in q.child_nodes] == ["a"]
    columns = columns_of(store, "id", "parent_ids", "parent_weights", "child_ids")
    rows = {row_id: row for row_id, *row in zip(*columns.values(), strict=True)}
    assert rows == {"a": [["q"], [1.0], []], "b": [[], [], []], "q": [[], [], ["a"]]}


def test_deleting_a_chunk_frees_its_neighbours(store):
    store.add([node("a", next="b"), node("b", previous="a", next="c"), node("c", previous="b")])
    store.delete_nodes(["b"])
    assert [n.relationships for n in store.get_nodes(["a", "c"])] == [{}, {}]
