import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.core.packing import pack
from hierindex.errors import InputError

MAX_TOKENS = 10


@st.composite
def rows(draw, max_size=9):
    n_tokens = draw(st.lists(st.integers(0, MAX_TOKENS), max_size=max_size))
    n = max(0, len(n_tokens) - 1)
    together = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return np.array(n_tokens, dtype=np.int64), np.array(together, dtype=np.int64)


def groups(starts, n):
    return [range(a, b) for a, b in itertools.pairwise([*starts, n])]


def fits(group, n_tokens):
    return sum(n_tokens[i] for i in group) <= MAX_TOKENS


@given(rows())
def test_no_other_way_is_better(given_rows):
    n_tokens, together = given_rows
    n = len(n_tokens)
    starts = pack(n_tokens, together, max_tokens=MAX_TOKENS).tolist()
    others = [[0, *cuts] for k in range(n) for cuts in itertools.combinations(range(1, n), k)]
    others = others or [[]]  # of no rows
    possible = [s for s in others if all(fits(g, n_tokens) for g in groups(s, n))]
    assert starts in possible

    def worth(s):
        uneven = sum(sum(n_tokens[i] for i in g) ** 2 for g in groups(s, n))
        return len(s), sum(together[i - 1] for i in s[1:]), uneven

    assert worth(starts) == min(map(worth, possible))


def test_families_are_kept_together():
    n_tokens, together = np.full(6, 3), np.array([2, 2, 0, 2, 2])
    assert pack(n_tokens, together, max_tokens=10).tolist() == [0, 3]


def test_as_few_as_fit_though_a_family_is_cut():
    n_tokens, together = np.array([4, 3, 3, 5, 5]), np.array([0, 5, 5, 5])
    assert pack(n_tokens, together, max_tokens=10).tolist() == [0, 3]


def test_a_row_that_is_too_long_is_named():
    with pytest.raises(InputError, match=r"Row 1 has 11 tokens, more than max_tokens=10"):
        pack(np.array([1, 11]), np.array([0]), max_tokens=10)


def test_many_rows_take_no_time():
    starts = pack(np.full(20_000, 7), np.zeros(19_999, dtype=np.int64), max_tokens=700)
    assert len(starts) == 200


@pytest.mark.parametrize(
    ("n_tokens", "together", "starts"),
    [
        ([], [], []),
        ([10], [], [0]),
        ([0, 0, 0], [0, 0], [0]),
        ([10, 10], [9], [0, 1]),
        ([5, 0, 5, 0], [0, 0, 0], [0]),
    ],
    ids=["no rows", "one full row", "rows of nothing", "no two fit", "exactly full"],
)
def test_edges(n_tokens, together, starts):
    n_tokens, together = np.array(n_tokens, dtype=int), np.array(together, dtype=int)
    found = pack(n_tokens, together, max_tokens=MAX_TOKENS)
    assert found.tolist() == starts
    assert found.dtype == np.int64


def test_input_is_not_modified():
    n_tokens, together = np.array([4, 3, 3]), np.array([1, 0])
    pack(n_tokens, together, max_tokens=7)
    assert (n_tokens.tolist(), together.tolist()) == ([4, 3, 3], [1, 0])
