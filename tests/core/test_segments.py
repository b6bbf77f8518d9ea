"""Segments of documents, and rules that choose where they begin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import UNBOUNDED, leaves, rules, seeds, unit_vectors, vectors

from hierindex.core.membership import NO_HEADINGS, Rows, strongest_parent
from hierindex.core.segments import (
    Cosine,
    Gradient,
    Interquartile,
    Percentile,
    StandardDeviation,
    TargetSize,
    document_starts,
    gap_similarity,
    segment,
)
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


# Each rule with its parameter, from few cuts to many.
REFINED_BY = {
    "target size": (st.integers(-210, -1), lambda minus_rows: TargetSize(-minus_rows)),
    "percentile": (st.floats(0, 100), Percentile),
    "standard deviation": (st.floats(-4, 4), lambda minus: StandardDeviation(-minus)),
    "interquartile": (st.floats(-4, 4), lambda minus: Interquartile(-minus)),
    "gradient": (st.floats(0, 100), Gradient),
    "cosine": (st.floats(-1, 1, exclude_min=True), Cosine),
}


@pytest.mark.parametrize("name", REFINED_BY)
@given(rows=leaves(), data=st.data())
def test_a_higher_threshold_refines(name, rows, data):
    parameters, rule = REFINED_BY[name]
    low, high = sorted([data.draw(parameters), data.draw(parameters)])
    coarse, fine = (cuts(rows.X, rows.document, rule(p)) for p in (low, high))
    assert set(coarse) <= set(fine)


@pytest.mark.parametrize("name", [name for name in REFINED_BY if name != "gradient"])
@given(X=vectors(least_rows=2), data=st.data())
def test_no_gap_that_is_cut_is_more_alike_than_one_that_is_not(name, X, data):
    parameters, rule = REFINED_BY[name]
    similarity = gap_similarity(X)
    cut = rule(data.draw(parameters)).weak_gaps(similarity)
    kept = np.delete(similarity, cut)
    assert similarity[cut].max(initial=-2.0) <= kept.min(initial=2.0)


@given(leaves(), st.integers(1, 210))
def test_a_target_size_gives_exactly_as_many_segments_in_each_document(rows, size):
    of = rows.document[cuts(rows.X, rows.document, TargetSize(size))]
    for document in np.unique(rows.document):
        assert (of == document).sum() == np.ceil((rows.document == document).sum() / size)


FALLING = np.array([0.9, 0.8, 0.9, 0.2, 0.9, 0.8])  # mean 0.75, deviation 0.25


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(TargetSize(3), [1, 3], id="two weakest gaps of seven rows"),
        pytest.param(Percentile(20), [3], id="below 0.8, the 20th percentile"),
        pytest.param(Percentile(45), [1, 3, 5], id="0.8 is below the 45th"),
        pytest.param(Percentile(0), [], id="nothing is below the smallest"),
        pytest.param(StandardDeviation(2), [3], id="below 0.75 - 2 * 0.25"),
        pytest.param(StandardDeviation(2.3), [], id="above 0.75 - 2.3 * 0.25"),
        pytest.param(Interquartile(5.4), [3], id="below 0.75 - 5.4 * 0.1"),
        pytest.param(Interquartile(5.6), [], id="above 0.75 - 5.6 * 0.1"),
        pytest.param(Cosine(0.8), [3], id="a threshold is inclusive"),
        pytest.param(Cosine(0.81), [1, 3, 5], id="0.8 is below"),
        pytest.param(Gradient(20), [2], id="falls by 0.3 a gap"),
    ],
)
def test_by_hand(rule, expected):
    assert rule.weak_gaps(FALLING).tolist() == expected


@pytest.mark.parametrize("n_gaps", [1, 2, 3, 50])
@pytest.mark.parametrize("similarity", [0.1, 1 / 3, 1.0])
@pytest.mark.parametrize(
    "rule", [Percentile(100), StandardDeviation(0), Interquartile(0), Gradient(100)]
)
def test_gaps_that_are_all_alike_are_not_cut(rule, similarity, n_gaps):
    assert rule.weak_gaps(np.full(n_gaps, similarity)).tolist() == []


@given(
    vectors(least_rows=2, shapes=["identical"]),
    st.sampled_from([Cosine, Percentile, Gradient, StandardDeviation, Interquartile]),
)
def test_nothing_is_cut_between_equal_rows(X, rule):
    extreme = {Cosine: 1.0, Percentile: 100, Gradient: 100}.get(rule, 0)
    document = np.zeros(len(X), dtype=np.int64)
    assert cuts(X, document, rule(extreme)).tolist() == [0]


def test_an_outlier_is_cut_off_on_both_sides():
    X, document = unit_vectors("one_outlier", 13, 4), np.zeros(13, dtype=np.int64)
    assert cuts(X, document, Percentile(50)).tolist() == [0, 6, 7]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TargetSize(0), "rows must be a whole number of at least 1, got 0."),
        (lambda: Percentile(-1), "percentile must be in [0, 100], got -1."),
        (lambda: Percentile(100.5), "percentile must be in [0, 100], got 100.5."),
        (lambda: Gradient(float("nan")), "percentile must be in [0, 100], got nan."),
        (lambda: StandardDeviation(float("inf")), "amount must be a finite number, got inf."),
        (lambda: Cosine(1.4), "threshold must be in (-1, 1], got 1.4."),
        (lambda: TargetSize(2.5), "rows must be a whole number of at least 1, got 2.5."),
        (lambda: Percentile("20"), "percentile must be in [0, 100], got '20'."),
        (lambda: Cosine(-1), "threshold must be in (-1, 1], got -1."),
    ],
)
def test_errors(make, message):
    with pytest.raises(InputError) as error:
        make()
    assert str(error.value) == message
