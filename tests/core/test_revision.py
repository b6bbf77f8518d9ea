"""Trees after edits: what stays as it was, where new rows go, and what is divided or joined."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, vstack
from strategies import SUMMARY_TOKENS, seeds, unit_vectors

from hierindex.core.bounds import Caps
from hierindex.core.membership import Membership, Rows, groups_of, one_hot
from hierindex.core.tree import ByMixture, Revised, continued, joined

CAPS = Caps(max_tokens=10 * SUMMARY_TOKENS, max_children=5)


def rows_of(X, before=None, tokens=SUMMARY_TOKENS, *, is_part=False) -> Rows:
    n = len(X)
    return Rows(X, np.full(n, tokens), np.arange(n), before=before, is_part=is_part)


def before_of(labels: list[int]) -> csr_array:
    """Memberships in earlier groups; -1 for a row that was alone."""
    row = np.flatnonzero(np.array(labels) >= 0)
    column = np.array(labels)[row]
    n_groups = max(labels, default=-1) + 1
    return csr_array((np.ones(len(row)), (row, column)), shape=(len(labels), n_groups))


def sets(M: Membership, names) -> set[frozenset[int]]:
    return {frozenset(names[row] for row in group) for group in groups_of(M)}


def revised(rows: Rows) -> Membership:
    M = Revised(ByMixture(0, CAPS))(rows)
    assert M is not None
    return M


@given(
    seed=seeds(), shape=st.sampled_from(["noise", "blobs", "one_outlier"]), is_part=st.booleans()
)
def test_groups_of_the_same_rows_stay_as_they_were(seed, shape, is_part) -> None:
    X = unit_vectors(shape, 40, 6, seed)
    M = ByMixture(0, CAPS)(rows_of(X))
    assert M is not None
    assert np.allclose(revised(rows_of(X, M, is_part=is_part)).toarray(), M.toarray())


@given(seed=seeds(), gone=st.integers(0, 39))
def test_without_a_row_only_its_groups_change(seed, gone) -> None:
    X = unit_vectors("blobs", 40, 6, seed)
    M = ByMixture(0, CAPS)(rows_of(X))
    assert M is not None
    stay = np.delete(np.arange(40), gone)
    N = revised(rows_of(X[stay], M[stay]))
    untouched = {group for group in sets(M, range(40)) if gone not in group}
    alone = {group - {gone} for group in sets(M, range(40)) if gone in group and len(group) == 2}
    changed = untouched - sets(N, stay)
    assert len(changed) <= len(alone)  # a row that is left alone joins another group


@given(seed=seeds(), n_new=st.integers(1, 15), is_part=st.booleans())
def test_groups_with_new_rows_are_within_the_caps(seed, n_new, is_part) -> None:
    X = unit_vectors("blobs", 45, 6, seed)
    known = X[: 45 - n_new]
    M = ByMixture(0, CAPS)(rows_of(known))
    assert M is not None
    joins = one_hot_of(joined(X[len(known) :], known, M), M.shape[1])
    rows = rows_of(X, csr_array(vstack([M, joins])), is_part=is_part)
    N = revised(rows)
    assert np.allclose(N.sum(axis=1), 1)
    for group in groups_of(N):
        assert CAPS.hold(int(rows.n_tokens[group].sum()), len(group))


def one_hot_of(columns, n_groups: int) -> csr_array:
    n = len(columns)
    return csr_array((np.ones(n), (np.arange(n), columns)), shape=(n, n_groups))


def test_a_new_row_joins_the_group_of_its_neighbours() -> None:
    X = np.repeat(np.eye(4), 3, axis=0)
    near = np.array([[0, 0, 0.6, 0.8], [0.8, 0.6, 0, 0]])
    assert joined(near, X, one_hot(np.repeat(np.arange(4), 3))).tolist() == [3, 0]
    assert joined(near[:0], X, one_hot(np.arange(12))).tolist() == []


def test_a_full_group_is_halved() -> None:
    X = np.repeat(np.eye(4), 5, axis=0)
    labels = [*np.repeat(np.arange(4), 5).tolist(), 0]
    M = revised(rows_of(np.concatenate([X, X[:1]]), before_of(labels), tokens=1))
    assert sorted(map(len, groups_of(M))) == [3, 3, 5, 5, 5]


def test_a_crowded_group_is_clustered_anew() -> None:
    """Sixteen rows arrive near a group of four."""
    X = np.repeat(np.eye(8), 4, axis=0)
    arriving = X[16:] + 0.1 * np.eye(8)[3]
    arriving /= np.linalg.norm(arriving, axis=1, keepdims=True)
    labels = [*np.repeat(np.arange(4), 4).tolist(), *[3] * 16]
    rows = rows_of(np.concatenate([X[:16], arriving]), before_of(labels), tokens=1)
    M, anew = revised(rows), ByMixture(0, CAPS)(rows[12:])
    assert anew is not None
    assert sets(M, range(32)) == sets(one_hot(np.repeat([0, 1, 2], 4)), range(12)) | sets(
        anew, range(12, 32)
    )


def test_a_level_without_earlier_groups_is_clustered_anew() -> None:
    X = unit_vectors("blobs", 40, 6, 1)
    fresh = ByMixture(0, CAPS)(rows_of(X))
    assert fresh is not None
    assert np.array_equal(revised(rows_of(X)).toarray(), fresh.toarray())


def test_few_rows_are_one_group_unless_they_are_a_part() -> None:
    before = before_of([0, 0, 1, 1])
    assert revised(rows_of(np.eye(4), before)).shape == (4, 1)
    assert revised(rows_of(np.eye(4), before, is_part=True)).shape == (4, 2)


def test_rows_that_no_group_admits_end_the_tree_but_not_a_part() -> None:
    rows = rows_of(np.eye(2), before_of([0, 0]), tokens=CAPS.max_tokens)
    assert Revised(ByMixture(0, CAPS))(rows) is None
    assert revised(replace(rows, is_part=True)).shape == (2, 2)


def test_a_row_that_was_alone_stays_alone_where_the_groups_are_full() -> None:
    X = np.concatenate([np.repeat(np.eye(2)[:1], 5, axis=0), np.eye(2)[1:]])
    M = revised(rows_of(X, before_of([0] * 5 + [-1]), tokens=1))
    assert frozenset([5]) in sets(M, range(6))


def test_each_group_is_continued_once() -> None:
    """A group that was halved is continued by the larger part."""
    before = before_of([0, 0, 0, 1, 1])
    assert continued(one_hot(np.array([0, 0, 1, 2, 2])), before).tolist() == [0, -1, 1]
    assert continued(one_hot(np.array([0, 0])), csr_array((2, 0))).tolist() == [-1]
