"""Cells tile those above them, and positions are a walk through the forest."""

from itertools import pairwise

import numpy as np
import pytest
from core.test_cut import forests
from hypothesis import given
from hypothesis import strategies as st

from hierindex.core.forest import Forest, Icicle


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
    assert [icicle.position(row) for row in rows] == [*range(len(rows))]
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
    assert [six.position(row) for row in range(6)] == [4, 3, 2, 1, 0, 5]
    assert [six.children(of).tolist() for of in (None, 0, 1, 4)] == [[0, 5], [1, 4], [2, 3], []]
    assert (six.path(3), six.path(0)) == ([0, 1], [])


def test_widths_are_the_text_below(six):
    assert [*zip(six.x0, six.x1, strict=True)] == [(0, 3), (0, 2), (0, 1), (1, 2), (2, 3), (3, 3)]
