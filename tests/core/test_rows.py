import subprocess
import sys
from threading import Thread
from time import sleep

import numpy as np
import pytest
from hypothesis import given
from strategies import leaves, seeds, unit_vectors, vectors
from threadpoolctl import threadpool_info

from hierindex.core.bounds import Caps, bounded
from hierindex.core.membership import Rows, canonical_order, one_hot, one_thread, unit_rows
from hierindex.core.tree import ByMixture
from hierindex.errors import InputError

PARTITION = """
import numpy as np
from hierindex.core.mixture import partition
X = np.random.default_rng(0).normal(size=(20_000, 8)).astype(np.float32)
X /= np.linalg.norm(X, axis=1, keepdims=True)
parts = [partition(X, max_rows=500) for _ in range(2)]
assert np.array_equal(*parts)
"""


def limits():
    return {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}


def test_two_at_once_leave_no_limit_behind():
    before = limits()

    def limited(seconds):
        with one_thread():
            assert set(limits().values()) == {1}
            sleep(seconds)

    threads = [Thread(target=limited, args=(seconds,)) for seconds in (0.1, 0.2)]
    for thread in threads:
        thread.start()
        sleep(0.05)
    for thread in threads:
        thread.join()
    assert limits() == before


def test_it_can_be_asked_for_inside_itself():
    before = limits()
    with one_thread(), one_thread():
        assert set(limits().values()) == {1}
    assert limits() == before


def test_a_partition_is_the_same_on_any_number_of_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    subprocess.run([sys.executable, "-c", PARTITION], check=True)


def test_groups_are_split_on_one_thread(monkeypatch):
    seen, usual = [], np.linalg.eigh

    def eigh(*arguments, **options):
        seen.append({*limits().values()})
        return usual(*arguments, **options)

    monkeypatch.setattr(np.linalg, "eigh", eigh)
    rows = Rows(np.eye(12), np.ones(12, int), np.zeros(12, int))
    bounded(one_hot(np.zeros(12, int)), rows, Caps(max_tokens=100, max_children=5))
    assert seen
    assert all(threads == {1} for threads in seen)


@pytest.mark.parametrize(
    ("row", "length"), [([np.nan, 1, 0, 0], "nan"), ([3, 0, 4, 0], "5"), ([0, 0, 0, 0], "0")]
)
def test_a_wrong_row_is_named(row, length):
    X = np.eye(4)[[0, 1, 2, 3, 0, 1]]
    X[3] = row
    X[5] = np.nan  # the first one is named
    with pytest.raises(InputError, match=f"must be unit vectors; row 3 has length {length}."):
        Rows(X, np.ones(6, int), np.zeros(6, int))


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


def test_minus_zero_is_zero():
    X = np.array([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]])
    assert canonical_order(X).tolist() in ([0, 2, 1], [1, 0, 2])


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
