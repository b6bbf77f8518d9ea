import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import documents, leaves, modest, rules, seeds, unit_vectors, vectors

from hierindex.core.membership import strongest_parent
from hierindex.core.segments import Percentile, TargetSize, document_starts, segment
from hierindex.errors import InputError

SAME = np.zeros(60, dtype=np.int64)


def cuts(X, document, rule):
    """Rows that a segment starts with."""
    return document_starts(strongest_parent(segment(X, document, rule=rule)))


@modest
@given(leaves(), rules())
def test_segments_are_contiguous_and_never_cross_a_document(rows, rule):
    column = strongest_parent(segment(rows.X, rows.document, rule=rule))
    assert set(np.diff(column)) <= {0, 1}
    assert set(document_starts(rows.document)) <= set(document_starts(column))


@modest
@given(leaves(least_rows=1), rules(), st.data())
def test_an_edit_in_one_document_moves_no_boundary_in_another(rows, rule, data):
    edited = rows.document == data.draw(st.sampled_from(rows.document.tolist()))
    X = rows.X.copy()
    X[edited] = unit_vectors("noise", edited.sum(), X.shape[1], data.draw(seeds()))
    elsewhere = np.flatnonzero(~edited)
    before, after = cuts(rows.X, rows.document, rule), cuts(X, rows.document, rule)
    assert np.array_equal(np.intersect1d(before, elsewhere), np.intersect1d(after, elsewhere))


@modest
@given(leaves(), rules(), st.data())
def test_a_removed_document_moves_no_boundary_in_another(rows, rule, data):
    if len(rows):
        removed = data.draw(st.sampled_from(rows.document.tolist()))
        stays = rows.document != removed
        column = strongest_parent(segment(rows.X, rows.document, rule=rule))[stays]
        assert np.array_equal(
            document_starts(column), cuts(rows.X[stays], rows.document[stays], rule)
        )


@modest
@given(leaves(), st.floats(0, 100), st.floats(0, 100))
def test_a_higher_percentile_refines(rows, p, q):
    coarse, fine = (cuts(rows.X, rows.document, Percentile(r)) for r in sorted([p, q]))
    assert set(coarse) <= set(fine)


@modest
@given(leaves(), st.integers(1, 70))
def test_a_target_size_gives_exactly_as_many_segments_in_each_document(rows, size):
    of = rows.document[cuts(rows.X, rows.document, TargetSize(size))]
    for document in np.unique(rows.document):
        assert (of == document).sum() == np.ceil((rows.document == document).sum() / size)


@modest
@given(vectors(least_rows=2, least_dims=2, shapes=["noise"]), rules())
def test_no_gap_that_is_cut_is_more_alike_than_one_that_is_not(X, rule):
    similarity = np.einsum("ij,ij->i", X[:-1], X[1:])
    cut = rule.breakpoints(similarity)
    kept = np.delete(similarity, cut)
    assert similarity[cut].max(initial=-1.0) <= kept.min(initial=1.0)


@modest
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


def test_an_outlier_is_cut_off_on_both_sides():
    assert cuts(unit_vectors("one_outlier", 13, 4), SAME[:13], Percentile(50)).tolist() == [0, 6, 7]


@pytest.mark.parametrize(
    ("rule", "value", "message"),
    [
        (TargetSize, 0, "target size must be at least 1 row, got 0."),
        (Percentile, -1, "percentile must be in [0, 100], got -1."),
        (Percentile, 100.5, "percentile must be in [0, 100], got 100.5."),
        (Percentile, float("nan"), "percentile must be in [0, 100], got nan."),
    ],
)
def test_errors(rule, value, message):
    with pytest.raises(InputError) as error:
        rule(value)
    assert str(error.value) == message
