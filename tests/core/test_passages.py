import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import read_only, seeds

from hierindex.core.passages import (
    AROUND,
    KNOWN,
    MOST_PASSAGES,
    WEAKER,
    WORDS,
    relevance,
    select_passages,
    word_weights,
    words_around,
)


@st.composite
def masks(draw, most_sentences=9, most_words=4):
    """Which sentences have which words; no sentence or no word, one of each, and more."""
    shape = draw(st.integers(0, most_sentences)), draw(st.integers(0, most_words))
    rng = np.random.default_rng(draw(seeds()))
    return read_only(rng.random(shape) < draw(st.sampled_from([0.0, 0.4, 1.0])))


@st.composite
def choices(draw):
    """The arguments of `select_passages`; some scores are alike, some sentences not to choose."""
    has = draw(masks())
    n, rng = len(has), np.random.default_rng(draw(seeds()))
    scores = rng.random(3)[rng.integers(3, size=n)]
    scores[rng.random(n) < draw(st.sampled_from([0.0, 0.3]))] = -np.inf
    needs = [
        tuple(sorted(rng.choice(i, size=min(i, 2), replace=False).tolist()))
        if i and rng.random() < 0.4
        else ()
        for i in range(n)
    ]
    joined = rng.random(n) < draw(st.sampled_from([0.0, 0.6, 1.0]))
    n_tokens = rng.integers(1, 9, size=n)
    weights = rng.random(has.shape[1])  # so sums are alike only if the words are
    arrays = (scores, has, weights / max(weights.sum(), 1), n_tokens, needs, joined)
    return arrays, draw(st.integers(0, 30))


def runs_of(chosen, joined):
    """The runs of a set of sentences, by looking at each pair of neighbours."""
    firsts = [i for i in chosen if i - 1 not in chosen or not joined[i]]
    lasts = [i for i in chosen if i + 1 not in chosen or not joined[i + 1]]
    return list(zip(sorted(firsts), sorted(lasts), strict=True))


def members(runs):
    return {i for first, last in runs for i in range(first, last + 1)}


def chosen_one_by_one(scores, has, weights, n_tokens, needs, joined, budget):
    """What `select_passages` promises, in sets: the best that still fits, as long as one does."""
    n, chosen = len(scores), set()
    floor = max(scores, default=0.0) - WEAKER
    while True:
        known = [w for w in range(len(weights)) if any(has[i][w] for i in chosen)]
        worth = {
            i: scores[i] - sum(KNOWN * WORDS * weights[w] for w in known if has[i][w])
            for i in range(n)
            if i not in chosen
        }
        open_ = [
            i
            for i, value in worth.items()
            if np.isfinite(value)
            and value >= floor
            and sum(n_tokens[j] for j in chosen | {i, *needs[i]}) <= budget
            and len(runs_of(chosen | {i, *needs[i]}, joined)) <= MOST_PASSAGES
        ]
        if not open_:
            return runs_of(chosen, joined)
        best = max(open_, key=lambda i: (worth[i], -i))
        chosen |= {best, *needs[best]}


@given(choices())
def test_the_best_sentences_that_fit_are_chosen_one_by_one(case):
    arrays, budget = case
    assert select_passages(*arrays, budget=budget) == chosen_one_by_one(*arrays, budget)


@given(choices())
def test_passages_keep_their_budget_and_are_at_most_three(case):
    (scores, has, weights, n_tokens, needs, joined), budget = case
    runs = select_passages(scores, has, weights, n_tokens, needs, joined, budget=budget)
    chosen = members(runs)
    assert len(runs) <= MOST_PASSAGES
    assert sum(n_tokens[i] for i in chosen) <= budget
    assert runs == runs_of(chosen, joined)  # no sentence is in two, none could be longer
    needed = {j for i in chosen if np.isfinite(scores[i]) for j in needs[i]}
    assert all(i in needed for i in chosen if np.isneginf(scores[i]))


@given(choices())
def test_a_sentence_is_chosen_with_what_it_needs(case):
    (*arrays, needs, joined), budget = case
    chosen = members(select_passages(*arrays, needs, joined, budget=budget))
    needed = {j for i in chosen for j in needs[i]}
    assert all(chosen.issuperset(needs[i]) or i in needed for i in chosen)


@given(choices())
def test_a_choice_repeats_and_leaves_its_arrays_as_they_are(case):
    arrays, budget = case
    before = [np.array(array).copy() for array in (*arrays[:4], arrays[5])]
    found = select_passages(*arrays, budget=budget)
    assert found == select_passages(*arrays, budget=budget)
    after = (*arrays[:4], arrays[5])
    assert all(map(np.array_equal, before, after))


def select(scores, *, has=None, n_tokens=None, needs=None, joined=None, budget=100):
    n = len(scores)
    has = np.zeros((n, 1), dtype=bool) if has is None else np.array(has, dtype=bool)
    return select_passages(
        np.array(scores, dtype=np.float64),
        has,
        word_weights(has),
        np.array(n_tokens or [1] * n),
        needs or [()] * n,
        np.array(joined or [False] * n, dtype=bool),
        budget=budget,
    )


@pytest.mark.parametrize(
    ("scores", "options", "expected"),
    [
        pytest.param([], {}, [], id="none"),
        pytest.param([-np.inf], {}, [], id="none that says something"),
        pytest.param([0.5], {}, [(0, 0)], id="one"),
        pytest.param([0.5], {"budget": 0}, [], id="too long"),
        pytest.param([0.5, 0.5, 0.5], {"joined": [0, 1, 1]}, [(0, 2)], id="all alike"),
        pytest.param([0.5] * 5, {}, [(0, 0), (1, 1), (2, 2)], id="ties go to the first"),
        pytest.param([0.9, 0.89 - WEAKER], {}, [(0, 0)], id="much weaker"),
        pytest.param([0.5, 0.6], {"n_tokens": [3, 9], "budget": 5}, [(0, 0)], id="the next fits"),
        pytest.param([0.9, -np.inf, 0.8], {"joined": [0, 1, 1]}, [(0, 0), (2, 2)], id="a gap"),
        pytest.param(
            [0.5, 0.6], {"needs": [(), (0,)], "n_tokens": [3, 3], "budget": 5}, [(0, 0)], id="needs"
        ),
    ],
)
def test_what_is_chosen(scores, options, expected):
    assert select(scores, **options) == expected


def test_what_has_known_words_counts_less():
    scores, apart = [0.9, 0.6, 0.5], {"n_tokens": [1, 1, 1], "budget": 2}
    same = select(scores, has=[[1, 0], [1, 0], [0, 1]], **apart)
    assert same == [(0, 0), (2, 2)]
    assert select(scores, **apart) == [(0, 0), (1, 1)]


@given(masks())
def test_weights_of_words_sum_to_1_and_rare_words_weigh_more(has):
    weights = word_weights(has)
    assert weights.shape == (has.shape[1],)
    assert (weights >= 0).all()
    if has.size:
        assert weights.sum() == pytest.approx(1)
        n_with = has.sum(axis=0)
        order = np.argsort(n_with, kind="stable")
        assert (np.diff(weights[order]) <= 1e-12).all()


@given(masks(), seeds())
@example(np.zeros((0, 2), dtype=bool), 0)
def test_words_are_those_of_near_sentences_of_the_same_node(has, seed):
    node = np.sort(np.random.default_rng(seed).integers(3, size=len(has)))
    expected = [
        [
            max(
                [float(own)]
                + [
                    weight * has[i - by][w]
                    for by, weight in AROUND.items()
                    if 0 <= i - by < len(has) and node[i - by] == node[i]
                ]
            )
            for w, own in enumerate(row)
        ]
        for i, row in enumerate(has)
    ]
    found = words_around(has, node)
    assert found.shape == has.shape
    assert found.tolist() == expected


def test_words_of_another_node_are_not_around():
    has = np.array([[True], [False]])
    assert words_around(has, np.array([0, 1])).ravel().tolist() == [1, 0]


def scored(n, **changed):
    """The relevance of n sentences of one node that are alike but for what is changed."""
    given = {
        "likeness": np.full(n, 0.5),
        "words": np.full(n, 0.5),
        "of_type": np.zeros(n, dtype=bool),
        "another": np.zeros(n, dtype=bool),
        "place": np.zeros(n, dtype=np.int64),
        "node": np.arange(n),
    }
    return relevance(**given | {name: np.array(value) for name, value in changed.items()})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("likeness", [0.9, 0.5, 0.1]),
        ("words", [1.0, 0.5, 0.0]),
        ("of_type", [True, False]),
        ("another", [False, True]),
        ("place", [0, 1, 2]),
    ],
)
def test_more_of_it_is_more_relevant(name, values):
    scores = scored(len(values), **{name: values})
    assert (np.diff(scores) < 0).all()


def test_a_sentence_is_more_relevant_beside_a_likely_one_of_its_node():
    likeness, node = [0.9, 0.5, 0.5], [0, 0, 1]
    _, beside, apart = scored(3, likeness=likeness, node=node)
    assert beside > apart
    assert scored(1, likeness=[0.9])[0] > beside


@pytest.mark.parametrize("n", [0, 1, 2])
def test_scores_are_one_for_each_sentence(n):
    assert scored(n).shape == (n,)
