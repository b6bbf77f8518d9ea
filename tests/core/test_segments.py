import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import UNBOUNDED, documents, leaves, rules, seeds, unit_vectors

from hierindex.core.membership import NO_HEADINGS, Rows, strongest_parent
from hierindex.core.segments import Percentile, TargetSize, document_starts, segment
from hierindex.errors import InputError

SAME = np.zeros(60, dtype=np.int64)


def cuts(X, document, rule, heading=NO_HEADINGS):
    """Rows that a segment starts with."""
    rows = Rows(X, np.ones(len(X), dtype=np.int64), document, heading=heading)
    return document_starts(strongest_parent(segment(rows, rule=rule, caps=UNBOUNDED)))


@given(leaves(), rules())
def test_segments_are_contiguous_and_never_cross_a_document(rows, rule):
    column = strongest_parent(segment(rows, rule=rule, caps=UNBOUNDED))
    assert set(np.diff(column)) <= {0, 1}
    assert set(document_starts(rows.document)) <= set(document_starts(column))


@given(leaves(least_rows=1), rules(), st.data())
def test_an_edit_in_one_document_moves_no_boundary_in_another(rows, rule, data):
    edited = rows.document == data.draw(st.sampled_from(rows.document.tolist()))
    X = rows.X.copy()
    X[edited] = unit_vectors("noise", edited.sum(), X.shape[1], data.draw(seeds()))
    elsewhere = np.flatnonzero(~edited)
    before = cuts(rows.X, rows.document, rule, rows.heading)
    after = cuts(X, rows.document, rule, rows.heading)
    assert np.array_equal(np.intersect1d(before, elsewhere), np.intersect1d(after, elsewhere))


@given(st.integers(0, 60).flatmap(documents))
def test_documents_start_where_the_number_changes(document):
    starts = document_starts(document)
    assert starts[:1].tolist() == [0][: len(document)]
    assert len(starts) == len(np.unique(document))
    assert np.array_equal(np.unique(document[starts]), np.unique(document))


@pytest.mark.parametrize(
    ("shape", "d"), [("noise", 1), ("noise", 8), ("identical", 8), ("one_outlier", 8)]
)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 13, 14])
@pytest.mark.parametrize(
    ("rule", "n_segments"),
    [
        (TargetSize(1), lambda n: n),
        (TargetSize(4), lambda n: -(-n // 4)),
        (TargetSize(100), lambda n: min(n, 1)),
        (Percentile(0), lambda n: min(n, 1)),
    ],
)
def test_named_cases(shape, n, d, rule, n_segments):
    assert len(cuts(unit_vectors(shape, n, d), SAME[:n], rule)) == n_segments(n)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(Percentile(100), [0], id="nothing is below the largest similarity"),
        pytest.param(TargetSize(5), [0, 1, 2], id="ties from the front"),
    ],
)
def test_identical_rows(rule, expected):
    assert cuts(unit_vectors("identical", 13, 4), SAME[:13], rule).tolist() == expected


class Fixed:
    def __init__(self, gaps):
        self.gaps = gaps

    def breakpoints(self, rows, caps):
        return self.gaps


@pytest.mark.parametrize("gaps", [[], [1], np.array([]), np.array([0, 2], dtype=np.uint8)])
def test_a_rule_may_return_any_list_of_gaps(gaps):
    assert cuts(np.eye(4), SAME[:4], Fixed(gaps)).tolist() == [0, *(int(g) + 1 for g in gaps)]


@pytest.mark.parametrize("gaps", [[-1], [3]])
def test_a_rule_may_not_return_a_gap_that_is_none(gaps):
    with pytest.raises(InputError, match=r"Fixed.breakpoints must return gaps from 0 to 2, got"):
        cuts(np.eye(4), SAME[:4], Fixed(gaps))
