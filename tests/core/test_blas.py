import subprocess
import sys
from threading import Thread
from time import sleep

import numpy as np
from threadpoolctl import threadpool_info

from hierindex.core.blas import one_thread
from hierindex.core.bounds import Caps, bounded
from hierindex.core.membership import one_hot

PARTITION = """
import numpy as np
from hierindex.core.partition import partition
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
    X = np.eye(12)
    bounded(one_hot(np.zeros(12, int)), X, np.ones(12, int), Caps(max_tokens=100, max_children=5))
    assert seen
    assert all(threads == {1} for threads in seen)
