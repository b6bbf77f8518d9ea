import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import headings

from hierindex.core.crossing import crossing_costs


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
