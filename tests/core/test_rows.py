import numpy as np
import pytest
from hypothesis import given
from strategies import leaves, seeds, unit_vectors, vectors

from hierindex.core.bounds import Caps
from hierindex.core.groupers import ByMixture
from hierindex.core.mixture import mixture
from hierindex.core.partition import partition
from hierindex.core.rows import Rows, canonical_order, unit_rows
from hierindex.errors import InputError

ENTRIES = {
    "rows": lambda X: Rows(X, np.ones(len(X), int), np.zeros(len(X), int)),
    "mixture": mixture,
    "partition": partition,
}


@pytest.mark.parametrize("enters", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        pytest.param([np.nan, 1, 0, 0], "Rows must be finite; row 3 has nan.", id="nan"),
        pytest.param([0, np.inf, 0, 0], "Rows must be finite; row 3 has inf.", id="infinite"),
        pytest.param([0, 0, -np.inf, 0], "Rows must be finite; row 3 has -inf.", id="-infinite"),
        pytest.param([3, 0, 4, 0], "Rows must be unit vectors; row 3 has length 5.", id="long"),
        pytest.param([0, 0, 0, 0], "Rows must be unit vectors; row 3 has length 0.", id="zero"),
        pytest.param(
            [1e200, 0, 0, 0], "Rows must be unit vectors; row 3 has length inf.", id="huge"
        ),
    ],
)
def test_wherever_rows_enter_a_wrong_one_is_named(enters, row, message):
    X = np.eye(4)[[0, 1, 2, 3, 0, 1]]
    X[3] = row
    X[5] = np.nan  # the first one is named
    with pytest.raises(InputError) as error:
        enters(X)
    assert str(error.value) == message


def test_rows_are_a_matrix():
    with pytest.raises(InputError, match="a matrix with one vector each, got 1 axes"):
        unit_rows(np.ones(3))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_and_double_precision_stay_as_they_are(dtype):
    X = unit_vectors("noise", 50, 64).astype(dtype)
    assert unit_rows(X) is X


@pytest.mark.parametrize(
    "X", [unit_vectors("noise", 260, 64).astype(np.float16), np.eye(260, dtype=np.int64)]
)
def test_half_precision_and_integers_can_be_grouped(X):
    rows = Rows(X, np.ones(260, int), np.zeros(260, int))
    assert rows.X.dtype == np.float64
    M = ByMixture(0, Caps(99, 9))(rows)
    assert M is not None
    assert M.shape[0] == 260


def test_token_counts_are_not_negative():
    with pytest.raises(InputError, match="must not be negative; row 1 has -3"):
        Rows(np.eye(2), np.array([0, -3]), np.zeros(2, int))


def test_minus_zero_is_zero():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]])
    assert canonical_order(X).tolist() in ([0, 2, 1], [1, 0, 2])


@pytest.mark.parametrize(
    ("X", "n_tokens", "document", "message"),
    [
        (np.eye(2), [1], [0, 0], "the same length, got 2 vectors, 1 token counts, 2 doc"),
        (np.eye(2), [1, 1], [0], "the same length, got 2 vectors, 2 token counts, 1 doc"),
        (np.eye(2)[:1], [1, 1], [0, 0], "the same length, got 1 vectors"),
    ],
)
def test_rows_are_as_many_in_all_arrays(X, n_tokens, document, message):
    with pytest.raises(InputError, match=message):
        Rows(X, np.array(n_tokens), np.array(document))
    with pytest.raises(InputError, match="2 documents, 3 headings"):
        Rows(np.eye(2), np.ones(2), np.zeros(2), heading=np.zeros(3))


@given(leaves(least_rows=1))
def test_some_of_the_rows_are_rows(rows):
    some = rows[np.arange(0, len(rows), 2)]
    assert len(rows) == len(rows.X)
    assert np.array_equal(some.X, rows.X[::2])
    assert np.array_equal(some.n_tokens, rows.n_tokens[::2])
    assert np.array_equal(some.document, rows.document[::2])
    assert np.array_equal(some.heading, rows.heading[::2])


@given(vectors(), seeds())
def test_the_canonical_order_does_not_depend_on_the_order_of_the_rows(X, seed):
    shuffled = X[np.random.default_rng(seed).permutation(len(X))]
    order = canonical_order(X)
    assert np.array_equal(np.sort(order), np.arange(len(X)))
    assert np.array_equal(X[order], shuffled[canonical_order(shuffled)])


@given(vectors(shapes=["duplicates", "identical"]))
def test_equal_rows_stay_in_their_order_and_stand_together(X):
    order = canonical_order(X)
    is_equal = (X[order][1:] == X[order][:-1]).all(axis=1)
    assert (np.diff(order)[is_equal] > 0).all()
    assert (~is_equal).sum() + min(len(X), 1) == len(np.unique(X, axis=0))
