from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import UNBOUNDED, caps, headings, seeds, token_counts, unit_vectors, vectors

from hierindex.core import segments as module
from hierindex.core.bounds import Caps
from hierindex.core.membership import NO_HEADINGS, Rows, groups_of, one_hot
from hierindex.core.segments import (
    WORTH_A_SEGMENT,
    Optimal,
    crossing_costs,
    segment,
    squared_lengths,
)
from hierindex.errors import InputError


def mean_cohesion(M, X):
    """Mean cosine similarity of rows to their groups' centroids."""
    return np.linalg.norm(M.T @ X, axis=1).sum() / len(X)


@given(vectors(most_rows=30), st.integers(1, 35))
def test_every_run_has_the_squared_length_of_its_sum(X, longest):
    Q = squared_lengths(X, longest)
    assert Q.shape == (longest + 1, len(X))
    for length in range(longest + 1):
        for start in range(len(X)):
            rows = X[start : start + length].astype(np.float64)
            expected = (rows.sum(axis=0) ** 2).sum() if start + length <= len(X) else 0
            assert Q[length, start] == pytest.approx(expected, abs=1e-4)


CLOSE = 1e-5


def all_headings():
    return st.integers(0, 60).flatmap(headings)


@given(all_headings())
def test_only_headings_cost_and_all_together_less_than_2_a_row(heading):
    costs = crossing_costs(heading)
    assert costs.shape == heading.shape
    assert np.array_equal(costs[1:] > 0, heading[1:] > 0)
    assert costs.sum() < max(1, 2 * len(heading))


@given(all_headings(), st.integers(1, 5))
def test_levels_count_from_the_highest_that_divides_the_document(heading, deeper):
    below = np.where(heading > 0, heading + deeper, 0)
    assert np.array_equal(crossing_costs(below), crossing_costs(heading))


@given(all_headings())
def test_backwards_sections_cost_the_same(heading):
    backwards = np.concatenate([heading[:1], heading[:0:-1]])
    np.testing.assert_allclose(crossing_costs(heading)[1:], crossing_costs(backwards)[:0:-1])


def test_a_cost_follows_length_and_level():
    heading = np.zeros(40, dtype=np.int64)
    heading[[0, 10, 15, 20, 22]] = [1, 2, 3, 2, 2]
    costs = crossing_costs(heading)
    assert np.flatnonzero(costs).tolist() == [10, 15, 20, 22]
    np.testing.assert_allclose(costs[[10, 15, 20, 22]], [4.472, 1.581, 2.582, 2.683], atol=1e-3)


def segments(X, rule, caps=UNBOUNDED, n_tokens=None, heading=NO_HEADINGS):
    zeros = np.zeros(len(X), dtype=np.int64)
    rows = Rows(X, zeros + 1 if n_tokens is None else n_tokens, zeros, heading=heading)
    return segment(rows, rule=rule, caps=caps)


def of_cuts(n, cuts):
    """Segments of n rows that begin at 0 and at each cut."""
    return one_hot(np.searchsorted(np.array([*cuts]), np.arange(n), side="right"))


def is_feasible(M, n_tokens, caps):
    return all(caps.hold(n_tokens[group].sum(), len(group)) for group in groups_of(M))


def measure(M, X, heading):
    """Cohesion, less three documents a row alone and the costs of headings that are crossed."""
    n_alone = sum(len(group) == 1 for group in groups_of(M))
    total = mean_cohesion(M, X.astype(np.float64)) * len(X)
    inside = [row for group in groups_of(M) for row in group[1:]]
    return total - 3 * len(X) * n_alone - crossing_costs(heading)[inside].sum()


@st.composite
def problems(draw, most_rows=60):
    X = draw(vectors(least_rows=2, most_rows=most_rows))
    n = len(X)
    return X, draw(token_counts(n)), draw(caps() | st.just(UNBOUNDED)), draw(headings(n))


def all_feasible(X, n_tokens, caps):
    for number in range(len(X)):
        for cuts in combinations(range(1, len(X)), number):
            if is_feasible(M := of_cuts(len(X), cuts), n_tokens, caps):
                yield M


@given(problems(most_rows=10), st.integers(1, 10))
def test_of_a_number_it_equals_brute_force(problem, rows):
    X, n_tokens, caps, heading = problem
    M = segments(X, Optimal(rows=rows), caps, n_tokens, heading)
    assert is_feasible(M, n_tokens, caps)
    feasible = list(all_feasible(X, n_tokens, caps))
    n_long = np.count_nonzero(crossing_costs(heading) > WORTH_A_SEGMENT)
    fewest = min(rival.shape[1] for rival in feasible)
    assert M.shape[1] == max(-(-len(X) // rows), fewest, 1 + n_long)
    best = max(measure(rival, X, heading) for rival in feasible if rival.shape[1] == M.shape[1])
    assert measure(M, X, heading) == pytest.approx(best, abs=CLOSE * len(X))


@given(problems(), st.integers(1, 9), seeds())
def test_of_a_number_it_is_never_worse_than_a_feasible_rival(problem, rows, seed):
    X, n_tokens, caps, heading = problem
    M = segments(X, Optimal(rows=rows), caps, n_tokens, heading)
    assert is_feasible(M, n_tokens, caps)
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(np.arange(1, len(X)), size=M.shape[1] - 1, replace=False))
    rival = of_cuts(len(X), cuts)
    assume(is_feasible(rival, n_tokens, caps))
    assert measure(M, X, heading) >= measure(rival, X, heading) - CLOSE * len(X)


@given(problems(), st.integers(1, 9), st.integers(2, 20))
def test_stretches_of_a_long_document_are_solved_by_themselves(problem, rows, stretch):
    X, n_tokens, caps, heading = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STRETCH", stretch)
        M = segments(X, Optimal(rows=rows), caps, n_tokens, heading)
    parts = np.array_split(np.arange(len(X)), -(-len(X) // stretch))
    expected = [
        part[group].tolist()
        for part in parts
        for group in groups_of(
            segments(X[part], Optimal(rows=rows), caps, n_tokens[part], heading[part])
        )
    ]
    assert [group.tolist() for group in groups_of(M)] == expected


def test_blocks_are_found():
    block = np.repeat(np.arange(5), [4, 3, 5, 2, 6])
    M = segments(np.eye(5)[block], Optimal(rows=4))
    assert [group[0] for group in groups_of(M)] == [0, *np.flatnonzero(np.diff(block)) + 1]


def test_no_row_is_alone_that_need_not_be():
    X = np.eye(2)[[0, 0, 0, 0, 1, 0, 0, 0, 0]]
    M = segments(X, Optimal(rows=6), Caps(99, 4))
    assert sorted(len(group) for group in groups_of(M)) == [2, 3, 4]


def test_rows_over_the_cap_are_alone_and_the_rest_is_cut_as_wanted():
    n_tokens = np.array([1, 1, 99, 1, 1, 1])
    M = segments(unit_vectors("identical", 6, 3), Optimal(rows=6), Caps(9, 9), n_tokens)
    assert [group.tolist() for group in groups_of(M)] == [[0, 1], [2], [3, 4, 5]]


def test_the_longest_segment_is_the_cap_on_children():
    M = segments(unit_vectors("noise", 50, 8), Optimal(rows=50), Caps(99, 7))
    starts = [group[0] for group in groups_of(M)]
    assert M.shape[1] == 8
    assert max(b - a for a, b in pairwise([*starts, 50])) <= 7


@pytest.mark.parametrize("levels", [{2: 1, 3: 2}, {2: 2, 3: 3}])
def test_segments_end_where_sections_end(levels):
    X = unit_vectors("identical", 12, 3)
    heading = np.array([1, 0, 0, 0, levels[2], 0, 0, levels[3], 0, 0, 0, 0])
    M = segments(X, Optimal(rows=6), heading=heading)
    assert [group[0] for group in groups_of(M)] == [0, 4]
    M = segments(X, Optimal(rows=4), heading=heading)
    assert [group[0] for group in groups_of(M)] == [0, 4, 7]


def test_short_sections_share_a_segment():
    heading = np.array([1, 2, 2, 0, 2, 2, 2, 0, 2, 2, 0, 2])
    M = segments(unit_vectors("identical", 12, 3), Optimal(rows=6), heading=heading)
    assert M.shape[1] == 2
    assert heading[groups_of(M)[1][0]] == 2


def test_sections_of_some_length_have_segments_of_their_own():
    heading = np.array([1, 0, 0, 2, 0, 0, 2, 0, 0, 2, 0, 0])
    M = segments(unit_vectors("identical", 12, 3), Optimal(rows=6), heading=heading)
    assert [group.tolist() for group in groups_of(M)] == [*np.arange(12).reshape(4, 3).tolist()]


def test_a_long_section_is_cut_by_meaning():
    X = np.eye(3)[np.repeat([0, 1, 2], [4, 5, 3])]
    heading = np.array([1, *[0] * 8, 2, 0, 0])
    M = segments(X, Optimal(rows=4), heading=heading)
    assert [group[0] for group in groups_of(M)] == [0, 4, 9]


@given(problems(), st.integers(1, 9))
def test_the_title_divides_nothing(problem, rows):
    X, n_tokens, caps, heading = problem
    rule, titled = Optimal(rows=rows), np.array([1, *heading[1:]])
    M, titled_M = (segments(X, rule, caps, n_tokens, each) for each in (heading, titled))
    assert np.array_equal(M.toarray(), titled_M.toarray())


@pytest.mark.parametrize("rows", [0, 2.5, None])
def test_errors(rows):
    with pytest.raises(InputError, match=f"rows must be a whole number of at least 1, got {rows}"):
        Optimal(rows)
