import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import grown, leaves, memberships, unit_vectors, vectors

from hierindex.core import statistics
from hierindex.core.membership import one_hot
from hierindex.core.rows import Rows
from hierindex.core.statistics import added, silhouette, tallies


def rows_of(X):
    return Rows(X, np.arange(1, len(X) + 1), np.zeros(len(X), dtype=np.int64))


def statistics_of(tree, levels):
    return [tally.statistics() for tally in tallies(tree.layers, levels)]


def test_by_hand():
    X = np.eye(2)[[0, 0, 0, 1, 1]]
    pair_and_trio = csr_array([[1, 0], [1, 0], [1, 0], [0.25, 0.75], [0, 1]])
    layers = [pair_and_trio, one_hot(np.zeros(2, dtype=np.int64))]
    tree, levels = grown(rows_of(X), [lambda rows: layers[rows.level]], max_levels=2)
    bottom, middle, top = statistics_of(tree, levels)
    assert (bottom.nodes, bottom.tokens) == (5, 15)
    assert (bottom.fan_out, bottom.overlap, bottom.cohesion, bottom.silhouette) == (None,) * 4
    assert (middle.nodes, middle.fan_out, middle.overlap) == (2, 3.0, 6 / 5)
    lengths = np.linalg.norm([3, 0.25]) + 1.75
    assert middle.cohesion == pytest.approx(lengths / 5)
    assert middle.silhouette == pytest.approx(1, abs=0.05)
    assert (top.level, top.nodes, top.fan_out, top.overlap, top.silhouette) == (2, 1, 2, 1, None)


@given(leaves(least_rows=1), st.data())
def test_a_level_counts_its_rows_and_tokens(rows, data):
    M = data.draw(memberships(len(rows)))
    tree, levels = grown(rows, [lambda _: M], max_levels=1)
    for level, of in zip(statistics_of(tree, levels), levels, strict=True):
        assert (level.nodes, level.tokens) == (len(of), of.n_tokens.sum())
    assert 1 <= level.overlap <= 3
    assert 0 <= level.cohesion <= 1 + 1e-6


def test_groups_of_one_have_no_fan_out():
    tree, levels = grown(rows_of(np.eye(3)), [lambda _: one_hot(np.arange(3))], max_levels=1)
    assert statistics_of(tree, levels)[1].fan_out is None


def test_no_rows():
    tree, levels = grown(rows_of(np.empty((0, 2))), [])
    assert [level.nodes for level in statistics_of(tree, levels)] == [0]


@given(vectors(least_rows=1), st.data())
def test_a_silhouette_is_between_minus_1_and_1(X, data):
    M = data.draw(memberships(len(X)))
    value = silhouette(M, X)
    assert (value is None) == (M.shape[1] < 2)
    assert value is None or -1 <= value <= 1


def test_a_silhouette_tells_blobs_from_noise_and_from_the_wrong_groups():
    X, blob = unit_vectors("blobs", 80, 16), np.arange(80) % 4
    right, wrong = one_hot(blob), one_hot(np.arange(80) // 20)
    assert silhouette(right, X) > 0.9
    assert silhouette(wrong, X) < 0.1 < silhouette(right, X)


def test_a_row_alone_has_a_silhouette_of_zero():
    assert silhouette(one_hot(np.arange(3)), np.eye(3)) == 0


def test_a_large_level_is_sampled(monkeypatch):
    X, blob = unit_vectors("blobs", 400, 16), np.arange(400) % 4
    exact = silhouette(one_hot(blob), X)
    monkeypatch.setattr(statistics, "SAMPLE", 50)
    assert silhouette(one_hot(blob), X, seed=1) == pytest.approx(exact, abs=0.02)


def tree_of(n_rows, height, seed):
    """A tree of a document, with pairs at each level."""
    rows = rows_of(unit_vectors("noise", n_rows, 4, seed))
    return grown(rows, [lambda rows: one_hot(np.arange(len(rows)) // 2)], max_levels=height)


def test_parts_side_by_side_add_up():
    (low, low_levels), (high, high_levels) = tree_of(4, 1, 0), tree_of(9, 3, 1)
    parts = [tallies(low.layers, low_levels), tallies(high.layers, high_levels)]
    chunks, pairs, upper, top = (tally.statistics() for tally in added(parts))
    assert (chunks.level, chunks.nodes, chunks.tokens) == (0, 13, 10 + 45)
    assert (pairs.nodes, pairs.fan_out, pairs.overlap) == (2 + 5, 2.0, 1.0)
    assert (upper.nodes, upper.fan_out, upper.overlap) == (2 + 3, 2.0, 1.0)  # two pass up
    assert (top.level, top.nodes, top.fan_out) == (3, 2 + 2, 2.0)
    of_parts = [parts[0][0].passing(1), parts[1][3]]
    assert top.cohesion == pytest.approx((2 + of_parts[1].similarity) / 5)
    assert top.silhouette == pytest.approx(of_parts[1].silhouettes / 5)
    assert parts[0][1].passing(2).statistics().cohesion == 1


def test_one_row_that_passes_up_has_no_silhouette():
    tree, levels = tree_of(2, 1, 0)
    alone = tallies(tree.layers, levels)[1].passing(2)
    assert (alone + alone).statistics().silhouette is None
    assert added([]) == []
