from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import read_only, seeds

from hierindex.core.answer import calibrated, reading_order, shared_words

KNOWN = read_only(np.array([[0.7, 0.2], [0.2, 0.9]]))


@st.composite
def similarities(draw):
    """Those of up to 20 sentences, and those of known questions to known answers."""
    rng = np.random.default_rng(draw(seeds()))
    n_known = draw(st.integers(2, 12))
    known = rng.uniform(-0.2, 0.3, size=(n_known, n_known)) + 0.6 * np.eye(n_known)
    return read_only(rng.uniform(-1, 1, size=draw(st.integers(0, 20)))), read_only(known)


def test_chance_is_0_and_an_answer_1():
    assert calibrated(np.array([0.2, 0.8, 0.5, -0.4]), KNOWN) == pytest.approx([0, 1, 0.5, -1])


@given(similarities(), st.sampled_from([0.3, 1.0, 30.0]), st.sampled_from([-2.0, 0.0, 0.7]))
def test_the_models_unit_and_zero_do_not_matter(given, unit, zero):
    similarity, known = given
    expected = calibrated(similarity, known)

    assert calibrated(unit * similarity + zero, unit * known + zero) == pytest.approx(expected)


@given(similarities())
def test_what_is_nearer_stays_nearer(given):
    similarity, known = given
    scores = calibrated(similarity, known)
    assert np.array_equal(np.argsort(scores, kind="stable"), np.argsort(similarity, kind="stable"))


@pytest.mark.parametrize(
    "known",
    [np.ones((2, 2)), np.zeros((3, 3)), 1 - np.eye(4)],
    ids=["all alike", "nothing alike", "answers further than chance"],
)
def test_a_model_that_cannot_tell_takes_all_for_answers(known):
    assert calibrated(np.array([-0.5, 0.0, 0.9]), known).tolist() == [1, 1, 1]


def test_a_rare_word_weighs_more():
    has = np.array([[True, False], [True, False], [True, True]])
    common, _, both = shared_words(has)
    assert common == pytest.approx(np.log(2))
    assert both == pytest.approx(np.log(2) + np.log(4))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (1, 0), (4, 0), (4, 2)])
def test_without_shared_words_there_is_no_weight(shape):
    assert shared_words(np.zeros(shape, dtype=bool)).tolist() == [0] * shape[0]


@pytest.mark.parametrize(
    ("relevance", "document", "start", "expected"),
    [
        pytest.param([], [], [], [], id="none"),
        pytest.param([1], [7], [3], [0], id="one"),
        pytest.param([1, 2, 3], [0, 0, 0], [9, 5, 7], [1, 2, 0], id="by place within one"),
        pytest.param([1, 5, 4], [0, 1, 0], [0, 0, 1], [1, 0, 2], id="the best document first"),
        pytest.param([2, 2], [1, 0], [0, 0], [1, 0], id="the lower number of two as good"),
        pytest.param([1, 2], [0, 0], [4, 4], [0, 1], id="one place"),
    ],
)
def test_reading_order(relevance, document, start, expected):
    order = reading_order(
        np.array(relevance, dtype=float), np.array(document, dtype=int), np.array(start, dtype=int)
    )
    assert order.tolist() == expected


@given(seeds(), st.integers(0, 30), st.integers(1, 5))
def test_a_document_is_read_in_one_go_and_forwards(seed, n, n_documents):
    rng = np.random.default_rng(seed)
    relevance, start = rng.normal(size=n).round(1), rng.integers(0, 9, size=n)
    document = rng.integers(n_documents, size=n)
    order = reading_order(relevance, document, start)
    assert sorted(order) == list(range(n))
    runs = [
        document[i]
        for at, i in enumerate(order)
        if not at or document[order[at - 1]] != document[i]
    ]
    assert len(runs) == len(set(document.tolist()))
    best = [relevance[document == d].max() for d in runs]
    assert best == sorted(best, reverse=True)
    assert all(start[a] <= start[b] for a, b in pairwise(order) if document[a] == document[b])
