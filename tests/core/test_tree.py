from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import (
    SUMMARY_TOKENS,
    caps,
    grown,
    leaf_weights,
    leaves,
    rules,
    seeds,
    unit_vectors,
)

from hierindex.core.bounds import Caps
from hierindex.core.membership import Rows, groups_of, one_hot
from hierindex.core.tree import ByMixture, BySegment, Tree, by_document
from hierindex.rules import Rule, TargetSize

HIERARCHIES = {
    "segments": lambda rule, caps, seed: [BySegment(rule, caps)],
    "semantic": lambda rule, caps, seed: [BySegment(rule, caps), ByMixture(seed, caps)],
    "raptor": lambda rule, caps, seed: [ByMixture(seed, caps)],
    "raptor per document": lambda rule, caps, seed: [ByMixture(seed, caps, per_document=True)],
    "raptor in pools": lambda rule, caps, seed: [ByMixture(seed, caps, max_pool=12)],
    "documents": lambda rule, caps, seed: [by_document, ByMixture(seed, caps)],
}
PER_DOCUMENT = ["segments", "raptor per document"]
TO_ONE_ROOT = ["semantic", "raptor", "raptor in pools", "documents"]
FOURS = TargetSize(4)
ROOMY = Caps(max_tokens=10 * SUMMARY_TOKENS, max_children=4)


@dataclass(frozen=True)
class Recipe:
    hierarchy: str
    leaves: Rows
    rule: Rule = FOURS
    caps: Caps = ROOMY
    seed: int = 0

    def grown(self) -> tuple[Tree, list[Rows]]:
        groupers = HIERARCHIES[self.hierarchy](self.rule, self.caps, self.seed)
        return grown(self.leaves, groupers)

    def bounded_layers(self):
        """Each layer that the caps hold for, and the rows below it."""
        tree, levels = self.grown()
        layers = [*zip(tree, levels, strict=False)]
        return layers[1:] if self.hierarchy == "documents" else layers


def recipes(hierarchies=tuple(HIERARCHIES)):
    return st.builds(
        Recipe,
        st.sampled_from(hierarchies),
        leaves(most_rows=40),
        rules(),
        caps() | st.just(ROOMY),
        seeds(),
    )


@given(recipes())
def test_each_layer_has_weights_of_sum_1_in_one_to_three_groups_and_no_group_is_empty(recipe):
    tree, levels = recipe.grown()
    for layer, below, above in zip(tree, levels, levels[1:], strict=False):
        assert layer.shape == (len(below), len(above))
        np.testing.assert_allclose(layer.sum(axis=1), 1)
        assert layer.data.min() > 0
        assert set(np.diff(layer.indptr)) <= {1, 2, 3}
        assert all(len(group) for group in groups_of(layer))


@given(recipes())
def test_levels_shrink_and_every_group_is_within_the_caps(recipe):
    for layer, rows in recipe.bounded_layers():
        assert layer.shape[1] < len(rows)
        for group in groups_of(layer):
            assert recipe.caps.hold(rows.n_tokens[group].sum(), len(group))


@given(recipes(), st.integers(2, 9))
def test_the_tree_is_as_deep_as_the_logarithm_of_its_leaves(recipe, max_children):
    assume(len(recipe.leaves))
    most = max(recipe.leaves.n_tokens.max(), SUMMARY_TOKENS)
    tree, _ = replace(recipe, caps=Caps(2 * most, max_children)).grown()
    n, n_documents = len(recipe.leaves), len(np.unique(recipe.leaves.document))
    assert len(tree) <= np.ceil(np.log(n) / np.log(1.5)) + np.ceil(np.log2(n_documents)) + 1


@given(recipes())
def test_every_leaf_reaches_every_level(recipe):
    tree, levels = recipe.grown()
    for level in range(1, 1 + len(tree)):
        weights = leaf_weights(recipe.leaves, tree, level)
        assert weights.shape == (len(recipe.leaves), len(levels[level]))
        np.testing.assert_allclose(weights.sum(axis=1), 1)


@given(recipes())
def test_the_same_seed_gives_the_same_tree(recipe):
    (one, _), (other, _) = recipe.grown(), recipe.grown()
    for layer, same in zip(one, other, strict=True):
        assert np.array_equal(layer.toarray(), same.toarray())


@given(recipes(TO_ONE_ROOT))
def test_growth_ends_when_no_two_rows_may_share_a_group(recipe):
    top = recipe.grown()[1][-1]
    for pair in combinations(top.n_tokens.tolist(), 2):
        assert not recipe.caps.hold(sum(pair), 2)


@given(recipes(PER_DOCUMENT))
def test_growth_ends_when_no_two_neighbours_in_a_document_may_share_a_group(recipe):
    top = recipe.grown()[1][-1]
    for i in np.flatnonzero(np.diff(top.document) == 0):
        assert not recipe.caps.hold(top.n_tokens[i : i + 2].sum(), 2)


@given(recipes(PER_DOCUMENT), st.data())
def test_a_document_s_tree_is_the_same_without_the_other_documents(recipe, data):
    assume(len(recipe.leaves))
    rows = recipe.leaves
    of = rows.document == data.draw(st.sampled_from(rows.document.tolist()))
    mine = rows[np.flatnonzero(of)]
    alone, _ = replace(recipe, leaves=mine).grown()
    together, _ = recipe.grown()
    for level in range(1, 1 + len(together)):
        shares = leaf_weights(rows, together, level).toarray()[of]
        expected = leaf_weights(mine, alone, min(level, len(alone))).toarray()
        np.testing.assert_allclose(shares[:, shares.any(axis=0)], expected)


@given(leaves())
def test_each_document_has_a_node_also_if_it_is_one_leaf(leaves):
    layers = Recipe("documents", leaves).grown()[0]
    groups = groups_of(layers[0]) if layers else []
    assert len(groups) == len(np.unique(leaves.document))
    assert all(np.ptp(leaves.document[group]) == 0 for group in groups)


@pytest.mark.parametrize("hierarchy", HIERARCHIES)
@pytest.mark.parametrize(
    ("shape", "d"), [("noise", 1), ("noise", 8), ("identical", 8), ("one_outlier", 8)]
)
@pytest.mark.parametrize("n", [0, 1, 2, 4, 14])
def test_one_document_grows_up_to_one_root(hierarchy, shape, d, n):
    rows = Rows(unit_vectors(shape, n, d), np.full(n, SUMMARY_TOKENS), np.zeros(n, dtype=np.int64))
    assert len(Recipe(hierarchy, rows).grown()[1][-1]) == min(n, 1)


@pytest.mark.parametrize(
    ("hierarchy", "expected"),
    [
        pytest.param("segments", [[0], [1], [2, 3, 4]], id="segments"),
        pytest.param("semantic", [[0, 2, 3, 4], [1]], id="semantic"),
        pytest.param("raptor", [[0, 2, 3, 4], [1]], id="raptor"),
        pytest.param("raptor in pools", [[0, 2, 3, 4], [1]], id="raptor in pools"),
        pytest.param("raptor per document", [[0, 2, 3, 4], [1]], id="raptor per document"),
        pytest.param("documents", [[0, 1, 2, 3, 4]], id="documents"),
    ],
)
def test_a_row_over_the_token_cap_stays_alone_up_to_the_top(hierarchy, expected):
    n_tokens = np.array([20, 999, 20, 20, 20])
    rows = Rows(unit_vectors("identical", 5, 4), n_tokens, np.zeros(5, dtype=np.int64))
    tree, _ = Recipe(hierarchy, rows).grown()
    assert [group.tolist() for group in groups_of(leaf_weights(rows, tree, len(tree)))] == expected


@pytest.mark.parametrize("hierarchy", [*PER_DOCUMENT, "semantic", "raptor", "raptor in pools"])
def test_nothing_grows_where_every_pair_is_over_the_token_cap(hierarchy):
    n_tokens = np.full(14, ROOMY.max_tokens // 2 + 1)
    rows = Rows(unit_vectors("blobs", 14, 4), n_tokens, np.zeros(14, dtype=np.int64))
    assert Recipe(hierarchy, rows).grown()[0] == ()


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
    assert [layer.shape for layer in tree] == [*pairwise(expected)]
    assert 1 + len(tree) == len(expected)
