from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import grown, memberships, unit_vectors

from hierindex.core.membership import one_hot
from hierindex.core.rows import Rows
from hierindex.core.tree import grow_tree, leaf_weights
from hierindex.errors import InputError


def pairs(rows):
    return one_hot(np.arange(len(rows)) // 2)


def alone(rows):
    return one_hot(np.arange(len(rows)))


def nothing(rows):
    return None


def refused(rows):
    pytest.fail(f"{len(rows)} rows were grouped.")


def rows_of(n):
    zeros = np.zeros(n, dtype=np.int64)
    return Rows(unit_vectors("noise", n, 4), zeros, zeros)


@pytest.mark.parametrize(
    ("n", "groupers", "max_levels", "expected"),
    [
        pytest.param(8, [pairs], None, [8, 4, 2, 1], id="up to one root"),
        pytest.param(8, [pairs], 2, [8, 4, 2], id="two levels"),
        pytest.param(8, [refused], 0, [8], id="no levels"),
        pytest.param(8, [nothing], None, [8], id="nothing to do"),
        pytest.param(8, [nothing, pairs], None, [8, 4, 2, 1], id="the next one takes over"),
        pytest.param(4, [alone], None, [4, 4], id="leaves may have groups of their own"),
        pytest.param(4, [alone, pairs], None, [4, 4, 2, 1], id="but only leaves may"),
        pytest.param(4, [pairs, alone], None, [4, 2, 1], id="no level without shrinking"),
        pytest.param(4, [alone, pairs], 2, [4, 4, 2], id="levels of all groupers count"),
        pytest.param(0, [refused], None, [0], id="no leaves"),
        pytest.param(3, [], None, [3], id="no groupers"),
    ],
)
def test_growth(n, groupers, max_levels, expected):
    tree, levels = grown(rows_of(n), groupers, max_levels=max_levels)
    assert [len(rows) for rows in levels] == expected
    assert [layer.shape for layer in tree.layers] == [*pairwise(expected)]
    assert tree.n_levels == len(expected)


def test_growth_waits_for_the_rows_of_each_level():
    growth = grow_tree(rows_of(4), [pairs])
    assert [next(growth).shape, growth.send(rows_of(2)).shape] == [(4, 2), (2, 1)]
    with pytest.raises(StopIteration) as end:
        growth.send(rows_of(1))
    assert end.value.value.n_levels == 3


@st.composite
def trees(draw):
    layers = [draw(memberships(draw(st.integers(1, 20))))]
    while (n := layers[-1].shape[1]) > 1:
        layers.append(draw(memberships(n)))
    tree, _ = grown(
        rows_of(layers[0].shape[0]), [lambda rows: layers[rows.level]], max_levels=len(layers)
    )
    return tree


@given(trees())
def test_every_leaf_reaches_every_level(tree):
    n_leaves = tree.layers[0].shape[0]
    for level, n_nodes in enumerate([n_leaves, *(layer.shape[1] for layer in tree.layers)]):
        weights = leaf_weights(tree, level)
        assert weights.shape == (n_leaves, n_nodes)
        np.testing.assert_allclose(weights.sum(axis=1), 1)


@given(trees())
def test_the_shares_in_a_level_are_those_in_the_level_below_spread_over_its_parents(tree):
    for level, layer in enumerate(tree.layers):
        above, below = leaf_weights(tree, level + 1), leaf_weights(tree, level)
        np.testing.assert_allclose(above.toarray(), below.toarray() @ layer.toarray())


def test_at_level_0_each_leaf_stands_for_itself():
    tree, _ = grown(rows_of(3), [pairs])
    assert np.array_equal(leaf_weights(tree, 0).toarray(), np.eye(3))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_leaves_without_parents_stand_for_themselves(n):
    tree, _ = grown(rows_of(n), [nothing])
    assert np.array_equal(leaf_weights(tree, 0).toarray(), np.eye(n))


@pytest.mark.parametrize("level", [-1, 3])
def test_leaf_weights_names_a_level_that_the_tree_does_not_have(level):
    tree, _ = grown(rows_of(4), [pairs])
    with pytest.raises(InputError) as error:
        leaf_weights(tree, level)
    assert str(error.value) == f"level must be in [0, 2], got {level}."
