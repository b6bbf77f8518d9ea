"""Cuts beside every antichain of small trees, and an exact knapsack of larger ones."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.core import cut
from hierindex.core.cut import Forest, select_cut, share_and_value
from hierindex.errors import InputError


@st.composite
def forests(draw, max_rows=9, min_rows=0):
    """Parent and level of each row; a level may be skipped, rows are in any order."""
    level = np.array(
        draw(st.lists(st.integers(0, 3), min_size=min_rows, max_size=max_rows)), dtype=np.int64
    )
    parent = np.full(len(level), -1)
    for row in range(len(level)):
        above = np.flatnonzero(level > level[row]).tolist()
        parent[row] = draw(st.sampled_from([-1, *above]))
    return parent, level


@st.composite
def problems(draw, max_rows=9):
    parent, level = draw(forests(max_rows))
    n = len(parent)
    n_tokens = np.array(draw(st.lists(st.integers(1, 9), min_size=n, max_size=n)), dtype=np.int64)
    value = np.array(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), dtype=np.float64)
    return Forest(parent, level), n_tokens, value, draw(st.integers(0, 30))


def ancestors(forest, row):
    while (row := forest.parent[row]) >= 0:
        yield row


def is_antichain(forest, rows):
    return not any(above in set(rows) for row in rows for above in ancestors(forest, row))


def highest(forest, n_tokens, value, budget):
    """Value of the best of all antichains."""
    rows = range(len(value))
    return max(
        value[list(some)].sum()
        for n in range(len(value) + 1)
        for some in combinations(rows, n)
        if n_tokens[list(some)].sum() <= budget and is_antichain(forest, some)
    )


@given(problems())
def test_no_antichain_is_worth_more(problem):
    forest, n_tokens, value, budget = problem
    rows = select_cut(forest, n_tokens, value, budget)
    assert rows.tolist() == sorted({*rows.tolist()})
    assert is_antichain(forest, rows)
    assert n_tokens[rows].sum() <= budget
    assert (value[rows] > 0).all()
    assert value[rows].sum() == highest(forest, n_tokens, value, budget)


@given(problems(max_rows=40), st.sampled_from([0, 30, 100, 300]), st.sampled_from([1, cut.N_STEPS]))
def test_a_small_table_loses_no_more_than_stated(problem, cells, n_steps):
    forest, n_tokens, value, budget = problem
    best = value[select_cut(forest, n_tokens, value, budget)].sum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut, "CELLS", cells)
        patch.setattr(cut, "N_STEPS", n_steps)
        rows = select_cut(forest, n_tokens, value, budget)
        fitting = np.where(n_tokens <= budget, value, 0.0)
        rate, base = cut._relaxed(forest, n_tokens, fitting, budget)
    assert is_antichain(forest, rows)
    assert n_tokens[rows].sum() <= budget
    assert value[base].sum() <= value[rows].sum() <= best
    if n_steps > 1:
        unused = budget - n_tokens[base].sum()
        assert best <= value[base].sum() + rate * unused + 1e-9


def test_a_search_for_the_rate_that_ends_early_still_finds_the_best_cut_of_few_rows(monkeypatch):
    monkeypatch.setattr(cut, "N_STEPS", 1)
    tree = Forest(np.full(4, -1), np.zeros(4, np.int64))
    n_tokens, value = np.array([1, 4, 9, 3]), np.array([9.0, 4.0, 3.0, 3.0])
    assert select_cut(tree, n_tokens, value, 5).tolist() == [0, 1]


def test_a_row_and_one_above_it_are_not_both_selected_with_a_row_of_no_value_between():
    tree = Forest(np.array([1, 2, -1]), np.array([0, 1, 2]))
    assert select_cut(tree, np.array([1, 1, 2]), np.array([2.0, 0.0, 3.0]), 3).tolist() == [2]


@given(forests(30))
def test_sums_and_masks_follow_the_tree(forest):
    parent, level = forest
    tree, n = Forest(parent, level), len(parent)
    x = np.arange(n, dtype=np.float64)
    below = [[r for r in range(n) if row in ancestors(tree, r)] for row in range(n)]
    assert tree.summed(x).tolist() == [x[row] + x[below[row]].sum() for row in range(n)]
    assert tree.is_text.tolist() == [each == 0 for each in level]
    marked = np.arange(n) % 3 == 0
    assert tree.under(marked).tolist() == [any(marked[[*ancestors(tree, r)]]) for r in range(n)]


@given(forests(30, 1), st.booleans(), st.data())
def test_a_row_tells_at_most_its_share(forest, asked, data):
    """And a summary without text under it tells nothing."""
    parent, level = forest
    level[level.argmin()] = 0
    tree, n = Forest(parent, level), len(parent)
    counts = st.lists(st.integers(1, 300), min_size=n, max_size=n)
    n_tokens = np.array(data.draw(counts), dtype=np.int64)
    cosine = np.cos(np.arange(n)) if asked else None
    share, value = share_and_value(tree, n_tokens, cosine)
    assert ((value > 0) == (tree.summed(tree.is_text) > 0)).all()
    assert (value <= share * (1 + 1e-9)).all()
    np.testing.assert_allclose(value[tree.is_text], share[tree.is_text])
    assert share[parent == -1].sum() == pytest.approx(1)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.integers(1, 9), st.data())
def test_the_best_cut_stands_for_most_of_a_collection(fan_outs, n_root, data):
    """By the bound that the docstring of `share_and_value` states."""
    parent, level, above = [-1], [len(fan_outs)], [0]
    for fan_out in fan_outs:
        at = len(parent)
        parent += np.repeat(above, fan_out).tolist()
        level += [level[above[0]] - 1] * (len(parent) - at)
        above = [*range(at, len(parent))]
    tree, n = Forest(np.array(parent), np.array(level)), len(parent)
    n_tokens = np.array(
        [n_root, *data.draw(st.lists(st.integers(1, 9), min_size=n - 1, max_size=n - 1))]
    )
    budget = data.draw(st.integers(n_root, int(n_tokens.sum())))
    share, value = share_and_value(tree, n_tokens)
    rows = select_cut(tree, n_tokens, value, budget)
    most = min(n_root, n_tokens[tree.is_text].sum())
    assert share[rows].sum() >= (most / budget) ** 0.5 * (1 - 1e-9)


def test_of_many_documents_none_is_left_out():
    """Whether a budget has room for the root, for some of its children or for all of them."""
    level = np.repeat([3, 2, 1, 0], [1, 4, 16, 128])  # 16 documents of 8 chunks
    of_chunks = np.arange(16).repeat(8) + 5
    parent = np.concatenate([[-1, 0, 0, 0, 0], np.arange(4).repeat(4) + 1, of_chunks])
    tree, n_tokens = Forest(parent, level), np.full(len(parent), 200)
    share, value = share_and_value(tree, n_tokens)
    shown = [select_cut(tree, n_tokens, value, budget) for budget in (200, 500, 800, 3200, 25_600)]
    assert [len(rows) for rows in shown] == [1, 1, 4, 16, 128]
    assert [share[rows].sum() for rows in shown] == pytest.approx([1.0] * 5)


def test_text_like_the_question_counts_for_more():
    tree = Forest(np.array([2, 2, -1]), np.array([0, 0, 1]))
    share, _ = share_and_value(tree, np.array([10, 10, 5]), np.array([0.9, 0.1, 0.5]))
    assert share[0] > share[1] > 0
    assert share[2] == pytest.approx(1)


def test_detail_where_it_matters():
    """Of two halves that a summary each stands for, the one that matters more is read in full."""
    tree = Forest(np.array([4, 4, 5, 5, 6, 6, -1]), np.array([0, 0, 0, 0, 1, 1, 2]))
    n_tokens = np.array([100, 100, 100, 100, 40, 40, 40])
    cosine = np.array([0.9, 0.9, 0.1, 0.1, 0.0, 0.0, 0.0])
    _, value = share_and_value(tree, n_tokens, cosine)
    assert select_cut(tree, n_tokens, value, 240).tolist() == [0, 1, 5]
    assert select_cut(tree, n_tokens, value, 80).tolist() == [4, 5]
    assert select_cut(tree, n_tokens, value, 40).tolist() == [6]


def test_the_highest_marked_row_may_be_the_row_itself():
    tree = Forest(np.array([2, 2, 3, -1]), np.array([0, 0, 1, 2]))
    assert tree.highest(np.array([True, False, True, False])).tolist() == [2, 2, 2, -1]
    assert tree.highest(np.array([True, False, False, False])).tolist() == [0, -1, -1, -1]


def test_a_budget_for_everything_selects_the_text():
    tree = Forest(np.array([2, 2, -1]), np.array([0, 0, 1]))
    n_tokens = np.array([10, 10, 5])
    assert select_cut(tree, n_tokens, share_and_value(tree, n_tokens)[1], 10**9).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("parent", "level"),
    [([1], [0]), ([-2], [0]), ([-1], [0, 1]), ([1, -1], [0, 0]), ([0], [0])],
)
def test_a_parent_is_a_row_of_a_higher_level(parent, level):
    with pytest.raises(InputError, match="parent"):
        Forest(np.array(parent), np.array(level))


@given(forests(), st.data())
def test_the_highest_marked_row_is_the_last_on_the_way_up(forest, data):
    forest = Forest(*forest)
    n = len(forest.parent)
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=np.bool_)
    found = forest.highest(marked).tolist()
    for row in range(n):
        way = [each for each in [row, *ancestors(forest, row)] if marked[each]]
        assert found[row] == (way[-1] if way else -1)
