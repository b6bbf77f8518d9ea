import llama_index.core
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from llama_index.core.schema import NodeWithScore, TextNode
from strategies import modest

from hierindex.errors import InputError
from hierindex.retrieve.budget import within_budget


@pytest.fixture(autouse=True, scope="module")
def words_are_tokens():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llama_index.core, "global_tokenizer", str.split)
        yield


def found(*lengths):
    """Nodes of so many words, best first."""
    return [
        NodeWithScore(node=TextNode(text=" ".join(["word"] * n)), score=1 / (i + 1))
        for i, n in enumerate(lengths)
    ]


def lengths(nodes):
    return [len(n.node.text.split()) for n in nodes]


@modest
@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 100))
def test_the_budget_is_kept_and_filled_best_first(sizes, budget):
    nodes = found(*sizes)
    assume(not sizes or min(sizes) <= budget)
    kept = within_budget(nodes, budget)
    assert sum(lengths(kept)) <= budget
    left = budget
    for node in nodes:
        fits = len(node.node.text.split()) <= left
        assert (node in kept) == fits
        left -= fits * len(node.node.text.split())


@modest
@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 100))
def test_what_is_kept_stays_in_order(sizes, budget):
    nodes = found(*sizes)
    assume(not sizes or min(sizes) <= budget)
    places = [nodes.index(node) for node in within_budget(nodes, budget)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("sizes", "budget", "kept"),
    [
        pytest.param([], 5, [], id="nothing found"),
        pytest.param([5], 5, [5], id="one that just fits"),
        pytest.param([3, 4, 2], 5, [3, 2], id="one passed over"),
        pytest.param([9, 1, 1], 2, [1, 1], id="the best too long"),
        pytest.param([3, 4, 2], None, [3, 4, 2], id="no bound"),
        pytest.param([5, 0], 5, [5, 0], id="an empty text is free"),
    ],
)
def test_named_cases(sizes, budget, kept):
    assert lengths(within_budget(found(*sizes), budget)) == kept


@pytest.mark.parametrize(("hidden", "n_tokens"), [([], 5), (["author"], 3)])
def test_metadata_that_a_model_is_shown_counts(hidden, n_tokens):
    node = TextNode(
        text="one two three", metadata={"author": "Ada"}, excluded_llm_metadata_keys=hidden
    )
    nodes = [NodeWithScore(node=node, score=1.0)]
    assert within_budget(nodes, n_tokens) == nodes
    with pytest.raises(InputError, match=f"at least {n_tokens} here, got {n_tokens - 1}"):
        within_budget(nodes, n_tokens - 1)
