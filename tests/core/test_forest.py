"""Cuts cover all text; cells tile those above them, and positions are a walk through the forest."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.core.forest import Forest, Icicle, select_cut, shares


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


def ancestors(forest, row):
    while (row := forest.parent[row]) >= 0:
        yield row


def mask(*rows, n=9):
    return np.isin(np.arange(n), rows)


@given(forests(30))
def test_sums_and_children_follow_the_tree(forest):
    parent, level = forest
    tree, n = Forest(parent, level), len(parent)
    x = np.arange(n, dtype=np.float64)
    below = [[r for r in range(n) if row in ancestors(tree, r)] for row in range(n)]
    assert tree.summed(x).tolist() == [x[row] + x[below[row]].sum() for row in range(n)]
    assert tree.is_text.tolist() == [each == 0 for each in level]
    for row in range(-1, n):
        assert tree.children(row).tolist() == np.flatnonzero(parent == row).tolist()


@given(forests(), st.data())
def test_the_highest_marked_row_is_the_last_on_the_way_up(forest, data):
    tree = Forest(*forest)
    n = len(tree.parent)
    marked = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=np.bool_)
    for row, found in enumerate(tree.highest(marked).tolist()):
        way = [each for each in [row, *ancestors(tree, row)] if marked[each]]
        assert found == (way[-1] if way else -1)


@given(forests(30, 1), st.booleans(), st.data())
def test_a_row_has_the_share_of_the_rows_under_it(forest, asked, data):
    """The roots have all, and a summary without text has none."""
    parent, level = forest
    level[level.argmin()] = 0
    tree, n = Forest(parent, level), len(parent)
    counts = st.lists(st.integers(1, 300), min_size=n, max_size=n)
    n_tokens = np.array(data.draw(counts), dtype=np.int64)
    share = shares(tree, n_tokens, np.cos(np.arange(n)) if asked else None)
    assert ((share > 0) == (tree.summed(tree.is_text) > 0)).all()
    for row in np.flatnonzero(~tree.is_text):
        assert share[row] == pytest.approx(share[tree.children(row)].sum())
    assert share[parent == -1].sum() == pytest.approx(1)
    if not asked:
        text = np.where(tree.is_text, n_tokens, 0)
        assert share[tree.is_text] == pytest.approx((text / text.sum())[tree.is_text])


@pytest.mark.parametrize(
    ("cosine", "more"), [([0.9, 0.1, 0.5], [0]), ([0.1, 0.9, 0.5], [1]), ([0.5, 0.5, 0.9], [])]
)
def test_text_like_the_question_counts_for_more(cosine, more):
    tree = Forest(np.array([2, 2, -1]), np.array([0, 0, 1]))
    share = shares(tree, np.array([10, 10, 5]), np.array(cosine))
    assert np.flatnonzero(share[:2] > 0.5).tolist() == more
    assert share[2] == pytest.approx(1)


@given(forests(30, 1), st.integers(0, 30), st.data())
def test_a_cut_stands_for_all_text_in_as_many_rows_as_there_is_room_for(forest, most, data):
    tree, n = Forest(*forest), len(forest[0])
    masks = st.lists(st.booleans(), min_size=n, max_size=n).map(np.array)
    may, first = data.draw(masks | st.just(np.ones(n, dtype=bool))), data.draw(masks)
    share = shares(tree, np.ones(n, dtype=np.int64)) if tree.is_text.any() else np.zeros(n)
    rows = select_cut(tree, share, may, first, most)
    told = may & (share > 0)
    assert (np.diff(rows) > 0).all()
    assert len(rows) <= most
    assert told[rows].all()
    assert not any({*ancestors(tree, row)} & {*rows} for row in rows)
    tops = [row for row in np.flatnonzero(told) if not any(told[[*ancestors(tree, row)]])]
    if len(tops) > most:
        assert sorted(share[rows]) == sorted(share[tops])[len(tops) - most :]
        return
    chosen = mask(*rows, n=n)
    for row in np.flatnonzero(told & tree.is_text):
        assert chosen[[row, *ancestors(tree, row)]].any()
    for row in rows:
        under = [i for i in tree.children(row) if share[i] > 0]
        assert not under or not may[under].all() or len(rows) - 1 + len(under) > most


#       8          of two documents, 6 with the sections 4 and 5, and 7 with the text 3;
#     6   7        4 has the text 0, and 5 has 1 and 2
#   4  5    3
#   0 1 2
TREE = Forest(np.array([4, 5, 5, 7, 6, 6, 8, 8, -1]), np.array([0, 0, 0, 0, 1, 1, 2, 2, 3]))
SHARE = shares(TREE, np.array([10, 30, 30, 30, 1, 1, 1, 1, 1]))
EVERY, NONE = mask(*range(9)), mask()


@pytest.mark.parametrize(
    ("may", "first", "most", "expected"),
    [
        pytest.param(EVERY, NONE, 0, [], id="no room"),
        pytest.param(EVERY, NONE, 1, [8], id="one for all"),
        pytest.param(EVERY, NONE, 2, [3, 6], id="an only child instead of its parent"),
        pytest.param(EVERY, NONE, 3, [0, 3, 5], id="the larger document in its sections"),
        pytest.param(EVERY, NONE, 4, [0, 1, 2, 3], id="all text"),
        pytest.param(EVERY, NONE, 99, [0, 1, 2, 3], id="more room than text"),
        pytest.param(NONE, NONE, 9, [], id="nothing may be selected"),
        pytest.param(~mask(8), NONE, 1, [6], id="the largest of too many"),
        pytest.param(~mask(8), NONE, 2, [3, 6], id="what is under a root"),
        pytest.param(~mask(2), NONE, 9, [0, 3, 5], id="all children or none"),
        pytest.param(mask(4, 5, 6, 7, 8), NONE, 9, [4, 5, 7], id="no text"),
    ],
)
def test_named_cuts(may, first, most, expected):
    assert select_cut(TREE, SHARE, may, first, most).tolist() == expected


@pytest.mark.parametrize(("first", "expected"), [([], [0, 1, 5]), ([5], [2, 3, 4])])
def test_the_largest_row_is_opened_unless_another_comes_first(first, expected):
    tree = Forest(np.array([4, 4, 5, 5, -1, -1]), np.array([0, 0, 0, 0, 1, 1]))
    share = shares(tree, np.array([40, 30, 10, 20, 1, 1]))
    every = mask(*range(6), n=6)
    assert select_cut(tree, share, every, mask(*first, n=6), 3).tolist() == expected


@pytest.mark.parametrize(("most", "expected"), [(1, "a"), (2, "ad"), (3, "bdf"), (4, "bcef")])
def test_of_rows_of_equal_share_the_first_by_name_is_selected_or_opened(most, expected):
    tree, names = Forest(np.array([2, 2, -1, 5, 5, -1]), np.array([0, 0, 1, 0, 0, 1])), "cedfba"
    share, every = shares(tree, np.full(6, 10)), np.ones(6, bool)
    rows = select_cut(tree, share, every, ~every, most, names.__getitem__)
    assert "".join(names[row] for row in rows) == expected


def test_a_row_without_text_is_left_out():
    tree = Forest(np.array([3, 3, -1, -1]), np.array([0, 1, 1, 2]))
    share = shares(tree, np.array([5, 5, 5, 5]))
    assert select_cut(tree, share, np.ones(4, bool), np.zeros(4, bool), 9).tolist() == [0]


@st.composite
def icicles(draw):
    parent, level = draw(forests(max_rows=20))
    place = draw(st.lists(st.integers(0, 5), min_size=len(level), max_size=len(level)))
    return Icicle(Forest(parent, level), np.array(place, np.int64)), parent, level, np.array(place)


@given(icicles())
def test_positions_are_a_walk_through_the_forest(given):
    icicle, parent, level, place = given

    def walk(of):
        children = np.flatnonzero(parent == of).tolist()
        for row in sorted(children, key=lambda row: (place[row], row)):
            yield row
            yield from walk(row)

    rows = [*walk(-1)]
    assert icicle.row.tolist() == rows
    assert icicle.position[rows].tolist() == [*range(len(rows))]
    for position, row in enumerate(rows):
        above = icicle.row[icicle.parent[position]] if icicle.parent[position] >= 0 else -1
        assert above == parent[row]
        assert icicle.level[position] == level[row]
        assert icicle.row[icicle.part(position)].tolist() == [row, *walk(row)]
        path = icicle.path(position)
        assert len(path) == icicle.depth[position]
        assert all(icicle.parent[b] == a for a, b in pairwise(path))
        assert path[-1:] == ([] if above < 0 else [icicle.parent[position]])


@given(icicles())
def test_children_are_in_order_and_tile_their_parent(given):
    icicle, parent, _, _ = given
    n_text = icicle.x1.max(initial=0)
    assert n_text == (icicle.level == 0).sum()
    for of in (None, *range(len(parent))):
        children = icicle.children(of)
        start, end = (0, n_text) if of is None else (icicle.x0[of], icicle.x1[of])
        assert (np.diff(children) > 0).all()
        if of is None:
            assert (icicle.parent[children] == -1).all()
        else:
            assert len(children) == icicle.n_children[of]
            assert (icicle.parent[children] == of).all()
            if icicle.level[of] == 0:
                assert (end - start, len(children)) == (1, 0)
                continue
        edges = [start, *icicle.x1[children].tolist()]
        assert edges[:-1] == icicle.x0[children].tolist()
        assert edges[-1] == (end if len(children) else start)
        assert len(children) or start == end


@pytest.mark.parametrize("n", [0, 1])
def test_few_rows(n):
    icicle = Icicle(Forest(np.full(n, -1), np.zeros(n, np.int64)), np.zeros(n, np.int64))
    assert icicle.children(None).tolist() == [*range(n)]


@pytest.fixture
def six():
    """A root over a chunk and over a summary of two, beside a summary of nothing."""
    parent, level = np.array([4, 3, 3, 4, -1, -1]), np.array([0, 0, 0, 1, 2, 1])
    return Icicle(Forest(parent, level), np.array([2, 1, 0, 0, 0, 1]))


def test_a_tree_is_walked_in_reading_order(six):
    assert six.row.tolist() == [4, 3, 2, 1, 0, 5]
    assert six.position.tolist() == [4, 3, 2, 1, 0, 5]
    assert [six.children(of).tolist() for of in (None, 0, 1, 4)] == [[0, 5], [1, 4], [2, 3], []]
    assert (six.path(3), six.path(0)) == ([0, 1], [])


def test_widths_are_the_text_below(six):
    assert [*zip(six.x0, six.x1, strict=True)] == [(0, 3), (0, 2), (0, 1), (1, 2), (2, 3), (3, 3)]
