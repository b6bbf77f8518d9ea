from itertools import pairwise

import numpy as np
import pytest
from strategies import grown, unit_vectors

from hierindex.core.membership import one_hot
from hierindex.core.rows import Rows
from hierindex.core.tree import grow_tree


def pairs(rows):
    return one_hot(np.arange(len(rows)) // 2)


def alone(rows):
    return one_hot(np.arange(len(rows)))


def nothing(rows):
    return None


def refused(rows):
    pytest.fail(f"{len(rows)} rows were grouped.")


def rows_of(n):
    zeros = np.zeros(n, dtype=np.int64)
    return Rows(unit_vectors("noise", n, 4), zeros, zeros)


@pytest.mark.parametrize(
    ("n", "groupers", "max_levels", "expected"),
    [
        pytest.param(8, [pairs], None, [8, 4, 2, 1], id="up to one root"),
        pytest.param(8, [pairs], 2, [8, 4, 2], id="two levels"),
        pytest.param(8, [refused], 0, [8], id="no levels"),
        pytest.param(8, [nothing], None, [8], id="nothing to do"),
        pytest.param(8, [nothing, pairs], None, [8, 4, 2, 1], id="the next one takes over"),
        pytest.param(4, [alone], None, [4, 4], id="leaves may have groups of their own"),
        pytest.param(4, [alone, pairs], None, [4, 4, 2, 1], id="but only leaves may"),
        pytest.param(4, [pairs, alone], None, [4, 2, 1], id="no level without shrinking"),
        pytest.param(4, [alone, pairs], 2, [4, 4, 2], id="levels of all groupers count"),
        pytest.param(0, [refused], None, [0], id="no leaves"),
        pytest.param(3, [], None, [3], id="no groupers"),
    ],
)
def test_growth(n, groupers, max_levels, expected):
    tree, levels = grown(rows_of(n), groupers, max_levels=max_levels)
    assert [len(rows) for rows in levels] == expected
    assert [layer.shape for layer in tree.layers] == [*pairwise(expected)]
    assert 1 + len(tree.layers) == len(expected)


def test_growth_waits_for_the_rows_of_each_level():
    growth = grow_tree(rows_of(4), [pairs])
    assert [next(growth).shape, growth.send(rows_of(2)).shape] == [(4, 2), (2, 1)]
    with pytest.raises(StopIteration) as end:
        growth.send(rows_of(1))
    assert len(end.value.value.layers) == 2
