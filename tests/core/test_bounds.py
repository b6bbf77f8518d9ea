from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from strategies import UNBOUNDED, caps, leaves, memberships, rules, seeds, unit_vectors

from hierindex.core.bounds import Caps, bounded
from hierindex.core.membership import NO_HEADINGS, Rows, groups_of, one_hot, strongest_parent
from hierindex.core.segments import document_starts, segment
from hierindex.errors import InputError


def bounded_by(caps, M, X, n_tokens, document=None, heading=NO_HEADINGS):
    """Groups within the caps; in reading order if there are documents."""
    of = np.arange(len(X)) if document is None else document
    rows = Rows(X, n_tokens, of, heading=heading)
    return bounded(M, rows, caps, in_order=document is not None)


def sizes(M):
    return sorted(len(group) for group in groups_of(M))


@st.composite
def anywhere(draw):
    """Arguments of `bounded` whose groups may be any."""
    rows = draw(leaves(least_rows=1))
    most_parents = draw(st.sampled_from([1, 3]))
    return draw(caps()), draw(memberships(len(rows), most_parents)), rows.X, rows.n_tokens


@st.composite
def in_documents(draw):
    """Arguments of `bounded` whose groups are segments."""
    rows = draw(leaves(least_rows=1))
    M = segment(rows, rule=draw(rules()), caps=UNBOUNDED)
    return draw(caps()), M, rows.X, rows.n_tokens, rows.document, rows.heading


@given(anywhere() | in_documents())
def test_weights_sum_to_1_and_every_group_is_within_the_caps(given):
    caps, _, _, n_tokens, *_ = given
    M = bounded_by(*given)
    np.testing.assert_allclose(M.sum(axis=1), 1)
    assert all(caps.hold(n_tokens[group].sum(), len(group)) for group in groups_of(M))
    assert min(sizes(M)) > 0


@given(anywhere() | in_documents())
def test_there_are_fewer_groups_than_rows_unless_each_row_is_alone(given):
    M = bounded_by(*given)
    assert M.shape[1] < M.shape[0] or sizes(M) == [1] * M.shape[0]


@given(leaves(least_rows=1), st.integers(2, 9), st.data())
def test_where_any_two_rows_may_share_a_group_there_are_half_as_many_groups(rows, most, data):
    M = data.draw(memberships(len(rows)))
    caps = Caps(max(1, 2 * rows.n_tokens.max()), most)
    assert bounded_by(caps, M, rows.X, rows.n_tokens).shape[1] <= -(-len(rows) // 2)


@given(leaves(least_rows=1), rules(), st.integers(2, 9))
def test_and_of_segments_two_thirds_in_each_document(rows, rule, most):
    M = segment(rows, rule=rule, caps=UNBOUNDED)
    caps = Caps(max(1, 2 * rows.n_tokens.max()), most)
    column = strongest_parent(bounded_by(caps, M, rows.X, rows.n_tokens, rows.document))
    for document in np.unique(rows.document):
        of = column[rows.document == document]
        assert len(np.unique(of)) <= -(-2 * len(of) // 3)


@given(anywhere(), seeds())
def test_permuted_rows_permute_the_groups(given, seed):
    caps, M, X, n_tokens = given
    assume(len(np.unique(X, axis=0)) == len(X))
    order = np.random.default_rng(seed).permutation(len(X))
    shuffled = bounded_by(caps, M[order], X[order], n_tokens[order])
    assert {frozenset(order[group]) for group in groups_of(shuffled)} == {
        frozenset(group) for group in groups_of(bounded_by(*given))
    }


def test_equal_rows_are_split_in_their_order():
    X = np.repeat(unit_vectors("noise", 3, 24), 8, axis=0)
    M = bounded_by(Caps(1000, 5), one_hot(np.zeros(24, int)), X, np.ones(24, int))
    for group in groups_of(M):
        for _, equal in groupby(group.tolist(), lambda row: row // 8):
            rows = [*equal]
            assert rows == [*range(rows[0], rows[-1] + 1)]


def test_near_rows_stay_together():
    X, blob = unit_vectors("blobs", 32, 16), np.arange(32) % 4
    M = bounded_by(Caps(99, 8), one_hot(0 * blob), X, np.ones(32, dtype=np.int64))
    assert sizes(M) == [8] * 4
    assert all(np.ptp(blob[group]) == 0 for group in groups_of(M))


@given(anywhere())
def test_a_group_of_one_is_left_only_if_no_group_can_take_it(given):
    caps, _, _, n_tokens = given
    groups = groups_of(bounded_by(*given))
    for i, single in enumerate(groups):
        for other in groups[:i] + groups[i + 1 :] if len(single) == 1 else []:
            assert not caps.hold(n_tokens[other].sum() + n_tokens[single[0]], len(other) + 1)


@given(in_documents())
def test_a_single_row_is_left_only_if_no_neighbour_in_its_document_can_take_it(given):
    caps, _, _, n_tokens, document, _ = given
    groups = groups_of(bounded_by(*given))
    for one, next_ in pairwise(groups):
        if 1 in (len(one), len(next_)) and document[one[0]] == document[next_[0]]:
            both = np.concatenate([one, next_])
            assert not caps.hold(n_tokens[both].sum(), len(both))


@given(in_documents())
def test_segments_stay_runs_of_rows_in_one_document(given):
    column = strongest_parent(bounded_by(*given))
    assert set(np.diff(column)) <= {0, 1}
    assert set(document_starts(given[-2])) <= set(document_starts(column))


@given(in_documents())
def test_a_single_row_crosses_the_lower_of_two_headings_if_both_neighbours_can_take_it(given):
    caps, M, _, n_tokens, document, heading = given
    groups, column = groups_of(M), strongest_parent(bounded_by(*given))
    assume(all(caps.hold(n_tokens[group].sum(), len(group)) for group in groups))
    height = [1 / level if level else 0 for level in heading]
    for before, (*one, row), after in zip(groups, groups[1:], groups[2:], strict=False):
        both = [np.append(side, row) for side in (before, after)]
        is_free = len(before) > 1 < len(after) and not one
        can = all(caps.hold(n_tokens[side].sum(), len(side)) for side in both)
        if is_free and can and len({document[before[0]], document[row], document[after[0]]}) == 1:
            if height[row] > height[row + 1]:
                assert column[row] == column[row + 1]
            if height[row] < height[row + 1]:
                assert column[row] == column[row - 1]


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        pytest.param([1, 0, 0, 0, 0], [0, 0, 1, 1, 1], id="none: the nearest"),
        pytest.param([1, 0, 1, 0, 0], [0, 0, 1, 1, 1], id="before"),
        pytest.param([1, 0, 0, 1, 0], [0, 0, 0, 1, 1], id="after"),
        pytest.param([1, 0, 1, 2, 0], [0, 0, 1, 1, 1], id="after, lower"),
        pytest.param([1, 0, 3, 2, 0], [0, 0, 0, 1, 1], id="before, lower"),
        pytest.param([1, 0, 2, 2, 0], [0, 0, 1, 1, 1], id="equal: the nearest"),
    ],
)
def test_a_single_row_stays_on_its_side_of_the_higher_heading(heading, expected):
    X, same = np.eye(2)[[0, 0, 1, 1, 1]], np.zeros(5, dtype=np.int64)
    M = one_hot(np.array([0, 0, 1, 2, 2]))
    M = bounded_by(Caps(99, 4), M, X, same + 1, same, np.array(heading))
    assert strongest_parent(M).tolist() == expected


def test_a_single_row_joins_across_a_heading_if_its_own_side_is_full():
    X, same = unit_vectors("identical", 5, 2), np.zeros(5, dtype=np.int64)
    M, heading = one_hot(np.array([0, 0, 0, 1, 2])), np.array([1, 0, 0, 0, 1])
    M = bounded_by(Caps(99, 3), M, X, same + 1, same, heading)
    assert strongest_parent(M).tolist() == [0, 0, 0, 1, 1]


@given(anywhere() | in_documents())
def test_what_is_bounded_stays(given):
    caps, M, *rest = given
    once = bounded_by(caps, M, *rest)
    np.testing.assert_allclose(bounded_by(caps, once, *rest).toarray(), once.toarray())


@given(anywhere())
def test_the_membership_given_is_not_modified_and_no_row_has_more_groups(given):
    M = given[1]
    before = M.toarray()
    after = bounded_by(*given)
    assert np.array_equal(M.toarray(), before)
    assert (np.diff(after.indptr) <= np.diff(M.indptr)).all()


@given(st.integers(2, 60), st.integers(2, 9), st.booleans())
def test_rows_of_equal_length_are_split_evenly(n, max_children, in_order):
    M = bounded_by(
        Caps(n, max_children),
        one_hot(np.zeros(n, dtype=np.int64)),
        unit_vectors("noise", n, 4),
        np.ones(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64) if in_order else None,
    )
    assert M.shape[1] == -(-n // max_children)
    assert np.ptp(sizes(M)) <= 1


@pytest.mark.parametrize(
    ("n_tokens", "max_tokens", "expected"),
    [
        pytest.param([5, 5, 5, 5], 20, [[0, 1, 2, 3]], id="a cap is inclusive"),
        pytest.param([5, 5, 5, 5], 19, [[0, 1], [2, 3]], id="even"),
        pytest.param([9, 9, 1, 1, 1], 11, [[0], [1], [2, 3, 4]], id="tokens and rows alike"),
        pytest.param([1, 99, 1, 1], 9, [[0], [1], [2, 3]], id="a row over the cap is alone"),
        pytest.param([5, 5, 5, 5], 9, [[0], [1], [2], [3]], id="each pair is over the cap"),
        pytest.param([0, 0, 0, 0], 1, [[0, 1, 2, 3]], id="empty texts"),
    ],
)
def test_in_reading_order(n_tokens, max_tokens, expected):
    one, X = np.zeros(len(n_tokens), dtype=np.int64), unit_vectors("noise", len(n_tokens), 4)
    M = bounded_by(Caps(max_tokens, 4), one_hot(one), X, np.array(n_tokens), one)
    assert [group.tolist() for group in groups_of(M)] == expected


def test_groups_that_overlap_so_much_that_nothing_shrinks_lose_their_overlap():
    M = csr_array([[0.5, 0, 0.5], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    M = bounded_by(Caps(99, 2), M, np.eye(3), np.ones(3, dtype=np.int64))
    assert sizes(M) == [1, 2]
    assert M.data.tolist() == [1, 1, 1]


@pytest.mark.parametrize("ends", [[0, 1], [1, 0]])
def test_a_group_is_split_where_its_rows_differ_most(ends):
    side = np.array([0, 1, 1, 0, 1, 0, 0, 1])
    X = np.eye(2)[ends][side]
    M = bounded_by(Caps(99, 4), one_hot(0 * side), X, np.ones(8, dtype=np.int64))
    assert np.array_equal(strongest_parent(M), side)


def test_a_group_of_one_joins_the_nearest_group():
    X = np.repeat([[1, 0], [0, 1], [0.6, 0.8]], [2, 2, 1], axis=0)
    M = bounded_by(Caps(99, 4), one_hot(np.array([0, 0, 1, 1, 2])), X, np.ones(5, dtype=np.int64))
    assert strongest_parent(M).tolist() == [0, 0, 1, 1, 1]


def test_a_group_of_one_moves_the_centroid_of_the_group_that_it_joins():
    angle = np.radians([0, 40, 40, -125, -125, -45])
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    M = one_hot(np.array([0, 1, 1, 2, 2, 3]))
    M = bounded_by(Caps(99, 4), M, X, np.ones(6, dtype=np.int64))
    assert strongest_parent(M).tolist() == [0, 0, 0, 1, 1, 0]


@pytest.mark.parametrize(
    ("caps", "expected"),
    [
        pytest.param(Caps(99, 2), [0, 0, 1, 1, 2], id="fan-out"),
        pytest.param(Caps(2, 9), [0, 0, 1, 1, 2], id="tokens"),
        pytest.param(Caps(3, 3), [0, 0, 1, 1, 1], id="room"),
    ],
)
def test_a_group_of_one_joins_only_within_the_caps(caps, expected):
    X = np.eye(2)[[0, 0, 1, 1, 1]]
    M = bounded_by(caps, one_hot(np.array([0, 0, 1, 1, 2])), X, np.ones(5, dtype=np.int64))
    assert strongest_parent(M).tolist() == expected


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((0, 2), "max_tokens must be a whole number of at least 1, got 0."),
        ((1, 2.5), "max_children must be a whole number of at least 2, got 2.5."),
        ((1, 1), "max_children must be a whole number of at least 2, got 1."),
    ],
)
def test_errors(limits, message):
    with pytest.raises(InputError) as error:
        Caps(*limits)
    assert str(error.value) == message


def test_no_rows():
    M = bounded_by(Caps(9, 9), csr_array((0, 0)), np.empty((0, 3)), np.empty(0, dtype=np.int64))
    assert M.shape == (0, 0)
