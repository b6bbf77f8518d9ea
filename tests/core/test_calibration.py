import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import read_only, seeds

from hierindex.core.ranking import Scale

KNOWN = read_only(np.array([[0.7, 0.2], [0.2, 0.9]]))


@st.composite
def similarities(draw):
    """Those of up to 20 sentences, and those of known questions to known answers."""
    rng = np.random.default_rng(draw(seeds()))
    n_known = draw(st.integers(2, 12))
    known = rng.uniform(-0.2, 0.3, size=(n_known, n_known)) + 0.6 * np.eye(n_known)
    return read_only(rng.uniform(-1, 1, size=draw(st.integers(0, 20)))), read_only(known)


def test_chance_is_0_and_an_answer_1():
    assert Scale.of(KNOWN).shares(np.array([0.2, 0.8, 0.5, -0.4])) == pytest.approx([0, 1, 0.5, -1])


@given(similarities(), st.sampled_from([0.3, 1.0, 30.0]), st.sampled_from([-2.0, 0.0, 0.7]))
def test_the_models_unit_and_zero_do_not_matter(given, unit, zero):
    similarity, known = given
    expected = Scale.of(known).shares(similarity)
    found = Scale.of(unit * known + zero).shares(unit * similarity + zero)
    assert found == pytest.approx(expected)


@given(similarities())
def test_what_is_nearer_stays_nearer(given):
    similarity, known = given
    scores = Scale.of(known).shares(similarity)
    assert np.array_equal(np.argsort(scores, kind="stable"), np.argsort(similarity, kind="stable"))


@pytest.mark.parametrize(
    "known",
    [np.ones((2, 2)), np.zeros((3, 3)), 1 - np.eye(4)],
    ids=["all alike", "nothing alike", "answers further than chance"],
)
def test_a_model_that_cannot_tell_takes_all_for_answers(known):
    assert Scale.of(known).shares(np.array([-0.5, 0.0, 0.9])).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("own", "foreign", "threshold"),
    [(0.8, 0.2, 0.62), (1.0, 0.0, 0.7), (0.5, 0.5, 0.5), (0.2, -0.4, 0.02), (1, 1, 1)],
)
@pytest.mark.parametrize("n", [2, 20])
def test_a_threshold_lies_between_chance_and_known_support(n, own, foreign, threshold):
    known = np.where(np.eye(n, dtype=bool), own, foreign)
    assert Scale.of(known, nearest=True).similarity(0.7) == pytest.approx(threshold)


def test_chance_is_the_nearest_source_on_another_matter():
    known = np.array([[0.9, 0.1, 0.3], [0.1, 0.9, 0.5], [0.1, 0.1, 0.9]])
    chance = (0.3 + 0.5 + 0.1) / 3
    assert Scale.of(known, nearest=True) == pytest.approx((chance, 0.9))
