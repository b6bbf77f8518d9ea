"""Trees after edits: what stays as it was, where new rows go, and what is divided or joined."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import SUMMARY_TOKENS, parents, seeds, unit_vectors

from hierindex.core.bounds import Caps
from hierindex.core.groupers import ByMixture
from hierindex.core.membership import Membership, groups_of, one_hot
from hierindex.core.revision import Earlier, Revised
from hierindex.core.rows import Rows
from hierindex.core.tree import grow_tree

CAPS = Caps(max_tokens=10 * SUMMARY_TOKENS, max_children=5)


def rows_of(X, before=None, tokens=SUMMARY_TOKENS) -> Rows:
    n = len(X)
    given = {} if before is None else {"before": np.asarray(before)}
    return Rows(X, np.full(n, tokens), np.arange(n), **given)


def earlier_of(layers: list[Membership]) -> Earlier:
    """Number the nodes level by level; a group of one row passes up."""
    level, links = [0] * layers[0].shape[0], []
    current = list(range(len(level)))
    for depth, M in enumerate(layers, start=1):
        above = []
        for group in groups_of(M):
            if len(group) == 1:
                above.append(current[group[0]])
            else:
                above.append(len(level))
                level.append(depth)
        for row, column, weight in zip(*M.nonzero(), M.data, strict=True):
            if current[row] != above[column]:
                links.append((current[row], above[column], weight))
        current = above
    row, column, weight = np.array(links).reshape(-1, 3).T
    shape = len(level), len(level)
    return Earlier(
        np.array(level), csr_array((weight, (row.astype(int), column.astype(int))), shape)
    )


def grown(leaves: Rows, groupers, earlier: Earlier | None = None):
    """The layers over leaves, and the rows of each level, which know what they continue."""
    growth, levels, layers = grow_tree(leaves, groupers), [leaves], []
    try:
        M = next(growth)
        while True:
            layers.append(M)
            rows, below = parents(levels[-1], M), levels[-1]
            if earlier is not None:
                before = earlier.continued(M, below.before)
                for g, group in enumerate(groups_of(M)):
                    if len(group) == 1:
                        before[g] = below.before[group[0]]
                rows = replace(rows, before=before)
            levels.append(rows)
            M = growth.send(rows)
    except StopIteration:
        return layers, levels


def sets(M: Membership, names) -> set[frozenset[int]]:
    return {frozenset(names[row] for row in group) for group in groups_of(M)}


@given(seed=seeds(), shape=st.sampled_from(["noise", "blobs", "one_outlier"]))
def test_a_tree_of_the_same_rows_stays_as_it_was(seed, shape) -> None:
    X = unit_vectors(shape, 40, 6, seed)
    grouper = ByMixture(0, CAPS)
    layers, _ = grown(rows_of(X), [grouper])
    earlier = earlier_of(layers)
    again, _ = grown(rows_of(X, np.arange(40)), [Revised(grouper, earlier)], earlier)
    assert [M.shape for M in again] == [M.shape for M in layers]
    for M, N in zip(layers, again, strict=True):
        assert np.allclose(M.toarray(), N.toarray())


@given(seed=seeds(), gone=st.integers(0, 39))
def test_without_a_row_only_its_groups_change(seed, gone) -> None:
    X = unit_vectors("blobs", 40, 6, seed)
    (M, *_), _ = grown(rows_of(X), [ByMixture(0, CAPS)])
    stay = np.delete(np.arange(40), gone)
    N = Revised(ByMixture(0, CAPS), earlier_of([M]))(rows_of(X[stay], stay))
    assert N is not None
    untouched = {group for group in sets(M, range(40)) if gone not in group}
    alone = {group - {gone} for group in sets(M, range(40)) if gone in group and len(group) == 2}
    changed = untouched - sets(N, stay)
    assert len(changed) <= len(alone)  # a row that is left alone joins another group


@given(seed=seeds(), n_new=st.integers(1, 15))
def test_groups_with_new_rows_are_within_the_caps(seed, n_new) -> None:
    X = unit_vectors("blobs", 45, 6, seed)
    n = 45 - n_new
    layers, _ = grown(rows_of(X[:n]), [ByMixture(0, CAPS)])
    earlier = earlier_of(layers)
    before = np.concatenate([np.arange(n), np.full(n_new, -1)])
    again, levels = grown(rows_of(X, before), [Revised(ByMixture(0, CAPS), earlier)], earlier)
    for M, rows in zip(again, levels, strict=False):
        assert np.allclose(M.sum(axis=1), 1)
        for group in groups_of(M):
            assert CAPS.hold(int(rows.n_tokens[group].sum()), len(group))
    assert len(levels[-1]) == 1
    assert all(len(one) > len(other) for one, other in pairwise(levels))


def test_a_new_row_joins_the_group_of_its_neighbours() -> None:
    X = np.repeat(np.eye(4), 3, axis=0)
    earlier = earlier_of([one_hot(np.repeat(np.arange(4), 3))])
    near = np.array([[0, 0, 0.6, 0.8]])
    M = Revised(ByMixture(0, CAPS), earlier)(rows_of(np.concatenate([X, near]), [*range(12), -1]))
    assert M is not None
    assert frozenset([9, 10, 11, 12]) in sets(M, range(13))
    assert M.shape == (13, 4)


def test_a_full_group_is_halved() -> None:
    X = np.repeat(np.eye(4), 5, axis=0)
    earlier = earlier_of([one_hot(np.repeat(np.arange(4), 5))])
    rows = rows_of(np.concatenate([X, X[:1]]), [*range(20), -1], tokens=1)
    M = Revised(ByMixture(0, CAPS), earlier)(rows)
    assert M is not None
    assert sorted(map(len, groups_of(M))) == [3, 3, 5, 5, 5]


def test_a_crowded_group_is_clustered_anew() -> None:
    """Sixteen rows arrive near a group of four."""
    X = np.repeat(np.eye(8), 4, axis=0)
    earlier = earlier_of([one_hot(np.repeat(np.arange(4), 4))])
    arriving = X[16:] + 0.1 * np.eye(8)[3]
    arriving /= np.linalg.norm(arriving, axis=1, keepdims=True)
    rows = rows_of(np.concatenate([X[:16], arriving]), [*range(16), *[-1] * 16], tokens=1)
    M, anew = Revised(ByMixture(0, CAPS), earlier)(rows), ByMixture(0, CAPS)(rows[12:])
    assert M is not None
    assert anew is not None
    assert sets(M, range(32)) == sets(one_hot(np.repeat([0, 1, 2], 4)), range(12)) | sets(
        anew, range(12, 32)
    )


@pytest.mark.parametrize("before", [[-1] * 30 + [0] * 10, [40] * 40])
def test_a_level_of_new_rows_or_roots_is_clustered_anew(before) -> None:
    X = unit_vectors("blobs", 40, 6, 1)
    earlier = Earlier(np.zeros(41, dtype=np.int64), csr_array((41, 41)))
    M = Revised(ByMixture(0, CAPS), earlier)(rows_of(X, before))
    fresh = ByMixture(0, CAPS)(rows_of(X))
    assert M is not None
    assert fresh is not None
    assert np.array_equal(M.toarray(), fresh.toarray())


def test_few_rows_are_one_group() -> None:
    earlier = earlier_of([one_hot(np.array([0, 0, 1, 1]))])
    M = Revised(ByMixture(0, CAPS), earlier)(rows_of(np.eye(4), np.arange(4)))
    assert M is not None
    assert M.shape == (4, 1)


def test_rows_that_no_group_admits_end_the_tree() -> None:
    too_long = CAPS.max_tokens
    earlier = earlier_of([one_hot(np.array([0, 0]))])
    revised = Revised(ByMixture(0, CAPS), earlier)
    assert revised(rows_of(np.eye(2), np.arange(2), tokens=too_long)) is None


def test_a_row_that_passed_up_stays_alone() -> None:
    """Rows 0 to 4 have a parent; row 5 passed that level and has the root as parent."""
    level = np.array([0, 0, 0, 0, 0, 0, 1, 2])
    links = csr_array((np.ones(7), ([0, 1, 2, 3, 4, 5, 6], [6] * 5 + [7, 7])), shape=(8, 8))
    X = np.concatenate([np.repeat(np.eye(2)[:1], 5, axis=0), np.eye(2)[1:]])
    M = Revised(ByMixture(0, CAPS), Earlier(level, links))(rows_of(X, np.arange(6), tokens=1))
    assert M is not None
    assert frozenset([5]) in sets(M, range(6))


def test_each_node_is_continued_once() -> None:
    """A group that was halved is continued by the larger part."""
    earlier = earlier_of([one_hot(np.array([0, 0, 0, 1, 1]))])
    M = one_hot(np.array([0, 0, 1, 2, 2]))
    assert earlier.continued(M, np.arange(5)).tolist() == [5, -1, 6]
