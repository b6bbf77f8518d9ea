import llama_index.core
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hierindex import Node
from hierindex.errors import InputError
from hierindex.node import Found
from hierindex.retrieve.search import selected


@pytest.fixture(autouse=True, scope="module")
def words_are_tokens():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llama_index.core, "global_tokenizer", str.split)
        yield


def found(*lengths):
    """Nodes of so many words, best first."""
    return [Found(Node(f"{i}", " ".join(["word"] * n)), 1 / (i + 1)) for i, n in enumerate(lengths)]


def lengths(nodes):
    return [len(n.node.text.split()) for n in nodes]


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 100))
def test_the_budget_is_kept_and_filled_best_first(sizes, budget):
    nodes = found(*sizes)
    assume(not sizes or min(sizes) <= budget)
    kept = selected(nodes, None, budget)
    assert sum(lengths(kept)) <= budget
    left = budget
    for node in nodes:
        fits = len(node.node.text.split()) <= left
        assert (node in kept) == fits
        left -= fits * len(node.node.text.split())


@pytest.mark.parametrize(("hidden", "n_tokens"), [([], 5), (["author"], 3)])
def test_metadata_that_a_model_is_shown_counts(hidden, n_tokens):
    others = {"excluded_llm_metadata_keys": hidden}
    nodes = [Found(Node("n", "one two three", {"author": "Ada"}, others=others), 1.0)]
    assert selected(nodes, None, n_tokens) == nodes
    with pytest.raises(
        InputError, match=f"fits token_budget={n_tokens - 1}; the shortest has {n_tokens} tokens"
    ):
        selected(nodes, None, n_tokens - 1)


def family(*names):
    """Nodes by name, best first; one named "abc" has the children "a", "b" and "c"."""
    return [
        Found(Node(name, "word", children=[*name] if len(name) > 1 else []), 1 / (i + 1))
        for i, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("found", "top_k", "kept"),
    [
        pytest.param(["ab", "a", "b", "c"], 4, ["a", "b", "c"], id="all children were taken"),
        pytest.param(["ab", "a", "b", "c"], 3, ["a", "b", "c"], id="the next best has its place"),
        pytest.param(["ab", "a", "b", "c"], 2, ["ab", "a"], id="one was not taken"),
        pytest.param(["a", "ab", "c"], 3, ["a", "ab", "c"], id="one was not found"),
        pytest.param(["a", "b"], 1, ["a"], id="no parent"),
        pytest.param([], 3, [], id="nothing"),
    ],
)
def test_a_parent_whose_children_are_all_taken_makes_room(found, top_k, kept):
    assert [n.node.id for n in selected(family(*found), top_k)] == kept
