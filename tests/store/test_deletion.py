"""What a deletion leaves of the nodes that were linked to a deleted one."""

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from records import metadata_of
from store.trees import columns_of, record

from hierindex import HierarchyStore


def node(node_id, *, parents=None, children=(), level=0, **beside):
    """A node with parents by weight, in that order, children, and `next` and `previous`."""
    made = TextNode(id_=node_id, text=node_id, embedding=[1.0, 0.0])
    place = {"level": level, "level_max": level, "documents": ("d",), "n_tokens": 7}
    made.metadata = {"own": 1} | metadata_of(parents=tuple((parents or {}).items()), **place)
    if parents:
        related = RelatedNodeInfo(node_id=next(iter(parents)))
        made.relationships[NodeRelationship.PARENT] = related
    if children:
        related = [RelatedNodeInfo(node_id=child) for child in children]
        made.relationships[NodeRelationship.CHILD] = related
    for name, other in beside.items():
        made.relationships[NodeRelationship[name.upper()]] = RelatedNodeInfo(node_id=other)
    return made


@pytest.fixture
def store(tmp_path):
    return HierarchyStore(tmp_path)


@pytest.mark.parametrize(
    ("parents", "gone", "left"),
    [
        pytest.param({"p": 1.0}, "p", {}, id="the only parent"),
        pytest.param({"p": 0.6, "q": 0.4}, "p", {"q": 1.0}, id="the strongest"),
        pytest.param({"p": 0.5, "q": 0.3, "r": 0.2}, "p", {"q": 0.6, "r": 0.4}, id="of three"),
        pytest.param({"p": 0.5, "q": 0.25, "r": 0.25}, "pq", {"r": 1.0}, id="two of three"),
        pytest.param({"p": 0.5, "q": 0.5}, "pq", {}, id="all"),
        pytest.param({"p": 0.5, "q": 0.5}, "x", {"p": 0.5, "q": 0.5}, id="none"),
    ],
)
def test_parents_that_are_left_share_the_weight(store, parents, gone, left):
    above = [node(each, children="a", level=1) for each in parents]
    store.add([node("a", parents=parents), node("x"), *above, node("top", level=3)])
    store.delete_nodes([*gone])
    (freed,) = store.get_nodes(["a"])
    found = record(freed)
    assert dict(found.parents) == pytest.approx(left)
    assert [p for p, _ in found.parents] == list(left)
    assert (freed.parent_node and freed.parent_node.node_id) == next(iter(left), None)
    assert found.level_max == (0 if left else 3)  # a root
    assert (found.documents, found.n_tokens, freed.metadata["own"]) == (("d",), 7, 1)
    columns = columns_of(store, "id", "stale")
    stale = {i for i, lost in zip(*columns.values(), strict=True) if lost}
    assert stale == ({"a"} if left != parents else set())


def test_a_deleted_chunk_frees_its_neighbours_and_summaries(store):
    store.add(
        [
            node("a", next="b"),
            node("b", previous="a", next="c", parents={"p": 1.0}),
            node("c", previous="b"),
            node("p", children=["b", "c"], level=1),
        ]
    )
    store.delete_nodes(["b"])
    a, c, p = store.get_nodes(["a", "c", "p"])
    assert a.relationships == c.relationships == {}
    assert [child.node_id for child in p.child_nodes] == ["c"]
    assert columns_of(store, "id", "stale") == {"id": ["a", "c", "p"], "stale": ["", "", "child"]}
