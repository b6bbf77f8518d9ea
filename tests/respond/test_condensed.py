"""Where passages stand in the tree decides which are read together."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, TextNode
from store.trees import record, tree

from hierindex.respond.rounds import PlacedText, along_the_tree, joined, together
from hierindex.retrieve.retrieved import RetrievedNode

NODES = tree()


def passage(text, *path, place=("a.txt", 0)):
    return PlacedText(text, path, place)


@st.composite
def passages(draw, max_size=8):
    """Of a tree with two children a node and a walk down it as a path."""
    sides = st.lists(st.sampled_from("lr"), max_size=3)
    found = draw(st.lists(st.tuples(sides, st.integers(0, 50)), max_size=max_size))
    return [
        passage(str(i), *("".join(walk[:depth]) for depth in range(len(walk))), place=("a", at))
        for i, (walk, at) in enumerate(found)
    ]


@given(passages())
def test_a_walk_keeps_every_branch_together(found):
    walked = along_the_tree(found)
    assert sorted(p.text for p in walked) == sorted(p.text for p in found)
    for ancestor in {node for p in found for node in p.path}:
        at = [i for i, p in enumerate(walked) if ancestor in p.path]
        assert at == [*range(at[0], at[-1] + 1)]


def test_under_one_parent_passages_stand_as_in_their_document():
    found = [passage(f"{at}", "root", "one", place=("a.txt", at)) for at in (40, 0, 20)]
    assert [p.text for p in along_the_tree(found)] == ["0", "20", "40"]


@pytest.mark.parametrize(
    ("paths", "bonds"),
    [
        ([], []),
        ([("r",)], []),
        ([("r", "a"), ("r", "a")], [2]),
        ([("r", "a"), ("r", "b")], [1]),
        ([("r", "a"), ("r",)], [1]),
        ([("r", "a"), ("s", "a")], [0]),
        ([(), ("r",)], [0]),
    ],
    ids=["none", "one", "siblings", "cousins", "uncle", "other roots", "no path"],
)
def test_passages_are_bound_by_the_ancestors_they_share(paths, bonds):
    found = [passage("", *path) for path in paths]
    assert together(found).tolist() == bonds
    assert len(bonds) == max(0, len(paths) - 1)


def test_joined_passages_stand_under_their_lowest_common_ancestor():
    of_two = joined([passage("A.", "r", "a", place=("x", 3)), passage("B.", "r", "b")])
    assert of_two == passage("A.\n\nB.", "r", place=("x", 3))
    one = passage("A.", "r", "a")
    assert joined([one]) == one


def test_a_found_node_is_shown_with_its_path_from_the_root_down():
    (leaf, *_) = (node for node in NODES if record(node).level == 0)
    shown = PlacedText.of(RetrievedNode(node=leaf, score=1.0, path=["a", "b", "root"]))
    assert shown.path == ("root", "b", "a")
    assert shown.place == (record(leaf).documents[0], record(leaf).start)
    assert leaf.text in shown.text
    assert "hierindex" not in shown.text


def test_a_node_that_was_not_found_by_us_is_known_by_its_parent():
    (leaf, *_) = (node for node in NODES if record(node).level == 0)
    assert PlacedText.of(NodeWithScore(node=leaf)).path == (record(leaf).parents[0][0],)
    assert PlacedText.of(NodeWithScore(node=TextNode(text="Else."))) == PlacedText("Else.")


def test_the_leaves_of_a_tree_are_walked_as_their_documents_are_read():
    """Whatever the order of what was found."""
    leaves = [RetrievedNode(node=n, score=1.0) for n in NODES if record(n).level == 0]
    random.Random(0).shuffle(leaves)
    walked = along_the_tree([PlacedText.of(leaf) for leaf in leaves])
    places = [p.place for p in walked]
    assert places == sorted(places)
