import numpy as np
import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from strategies import modest, seeds, unit_vectors

from hierindex.errors import InputError
from hierindex.summarize.grounding import (
    CALIBRATED_FROM,
    THRESHOLD,
    EmbeddingGrounding,
    calibrated_threshold,
    support_by_words,
)

EAST = [1.0, 0.0]
COSINES = {"0.6": [0.6, 0.8], "0": [0.0, 1.0], "-0.6": [-0.6, 0.8]}  # with EAST, exact


class Table:
    """Vectors of texts by a table; `batches` has the texts of each call."""

    def __init__(self, table):
        self.table = table
        self.batches = []

    def __call__(self, texts):
        self.batches.append(list(texts))
        return np.array([self.table[text] for text in texts])


def of_cosines(*cosines):
    """A sentence, and sources that are as near to it as asked."""
    table = {"said": EAST} | {
        f"source {i}": [c, float(np.sqrt(1 - c * c))] for i, c in enumerate(cosines)
    }
    return Table(table), [(["said"], [*table][1:])]


def test_the_threshold_is_inclusive():
    embed, pairs = Table({"said": EAST, "source": COSINES["0.6"]}), [(["said"], ["source"])]
    for threshold, carried in [
        (0.6, True),
        (np.nextafter(0.6, 1), False),
        (-0.5, True),
        (1, False),
    ]:
        (support,) = EmbeddingGrounding(float(threshold)).support(pairs, embed)
        assert support.carried.tolist() == [carried]
        assert support.sources == [[0]]


@pytest.mark.parametrize(("source", "carried"), [("0.6", True), ("0", True), ("-0.6", False)])
def test_a_threshold_of_zero_is_one(source, carried):
    grounding = EmbeddingGrounding(0.0)
    (support,) = grounding.support([([source], ["e"])], Table({**COSINES, "e": EAST}))
    assert support.carried.tolist() == [carried]
    assert grounding.to_dict() == {"type": "embedding", "threshold": 0.0}


@pytest.mark.parametrize("threshold", [-1, 1.01, float("nan"), "0.5", True])
def test_a_threshold_is_a_cosine(threshold):
    with pytest.raises(InputError, match=r"threshold must be a number in \(-1, 1\], got"):
        EmbeddingGrounding(threshold)


@pytest.mark.parametrize(
    ("cosines", "sources"),
    [
        ([0.9], [0]),
        ([0.5, 0.9], [1]),
        ([0.9, 0.95, 0.92], [1, 2, 0]),
        ([0.91, 0.92, 0.93, 0.94, 0.95], [4, 3, 2]),
        ([0.95, 0.2, 0.94], [0, 2]),
        ([0.8, 0.8], [0, 1]),
        ([0.5, 0.44], [0]),  # not nearly as good
        ([0.3, 0.29], [0]),  # nearly as good, and none is good enough
        ([0.41, 0.39], [0]),
        ([-0.5, -0.52, -0.4], [2]),
    ],
)
def test_sources_are_the_best_first_and_those_that_are_nearly_as_good(cosines, sources):
    embed, pairs = of_cosines(*cosines)
    (support,) = EmbeddingGrounding(0.4).support(pairs, embed)
    assert support.sources == [sources]
    assert support.carried.tolist() == [max(cosines) >= 0.4]


@modest
@given(seeds(), st.integers(1, 12), st.integers(1, 12), st.floats(-0.9, 1))
def test_each_sentence_has_its_nearest_source_and_at_most_three(seed, n, n_sources, threshold):
    X = unit_vectors("noise", n + n_sources, 5, seed)
    names = [f"{i}" for i in range(len(X))]
    pair = names[:n], names[n:]
    embed = Table(dict(zip(names, X, strict=True)))
    (support,) = EmbeddingGrounding(threshold).support([pair], embed)
    likeness = X[:n] @ X[n:].T
    assert support.carried.tolist() == (likeness.max(axis=1) >= threshold).tolist()
    for row, sources in zip(likeness, support.sources, strict=True):
        assert 1 <= len(sources) == len(set(sources)) <= 3
        assert row[sources[0]] == row.max()
        assert row[sources].tolist() == sorted(row[sources], reverse=True)
        assert all(row[j] >= threshold for j in sources[1:])


def test_each_text_is_embedded_once_and_all_in_one_call():
    embed = Table({"a": EAST, "b": COSINES["0"], "c": COSINES["0.6"]})
    pairs = [(["a", "b"], ["b", "c"]), (["a"], ["c", "c"])]
    supports = EmbeddingGrounding().support(pairs, embed)
    assert [len(batch) for batch in embed.batches] == [3]
    assert [len(s.sources) for s in supports] == [len(told) for told, _ in pairs]


def test_no_pairs():
    embed = Table({})
    assert EmbeddingGrounding().support([], embed) == []
    assert EmbeddingGrounding().support([], None) == []
    assert embed.batches == []


def test_without_embeddings_sources_are_found_by_words_and_the_rest_is_open():
    pairs = [(["The lamp went out.", "It rained."], ["A letter.", "The lamp went out at night."])]
    (support,) = EmbeddingGrounding(0.9).support(pairs, None)
    (by_words,) = support_by_words(pairs)
    assert support.sources[0] == by_words.sources[0] == [1]
    assert support.carried is by_words.carried is None


def level(*cosines_of_each):
    """Summaries with a source each, and sentences of these cosines with their foreign one."""
    n = len(cosines_of_each)
    axes = np.eye(n + 1)
    return [
        (
            np.array([c * axes[(i + n // 2) % n] + np.sqrt(1 - c * c) * axes[n] for c in cosines]),
            axes[i : i + 1],
        )
        for i, cosines in enumerate(cosines_of_each)
    ]


@pytest.mark.parametrize("n", [CALIBRATED_FROM, 100])
def test_a_calibrated_threshold_is_reached_by_five_percent_of_what_is_foreign(n):
    cosines = np.linspace(-0.9, 0.8, n)
    threshold = calibrated_threshold(level(cosines[::2], cosines[1::2]))
    assert (cosines >= threshold).sum() == n // 20
    assert threshold == pytest.approx(np.percentile(cosines, 95))


@pytest.mark.parametrize(
    "vectors",
    [
        [],
        level([0.1] * 100),
        level([0.1] * (CALIBRATED_FROM - 2), [0.1]),
        [(S, np.zeros((0, 3))) for S, _ in level([0.1] * 50, [0.1] * 50)],
    ],
    ids=["none", "one summary", "19 sentences", "no sources"],
)
def test_too_few_pairs_are_no_calibration(vectors):
    assert calibrated_threshold(vectors) == THRESHOLD


def test_a_sentence_is_compared_with_the_sources_of_another_summary():
    own, foreign = np.array([EAST]), np.array([COSINES["0"]])
    alike = [(np.repeat(own, 20, axis=0), own), (np.repeat(foreign, 20, axis=0), foreign)]
    assert calibrated_threshold(alike) == pytest.approx(0)


@modest
@given(seeds(), st.sampled_from([8, 64]), st.sampled_from([np.float32, np.float64]))
def test_shuffled_sources_support_about_five_percent(seed, n_dims, dtype):
    n, n_sentences, n_sources = 80, 8, 6
    X = unit_vectors("noise", n * (n_sentences + n_sources), n_dims, seed).astype(dtype)
    S, T = np.split(X, [n * n_sentences])
    S, T = S.reshape(n, n_sentences, n_dims), T.reshape(n, n_sources, n_dims)
    names = {"S": np.arange(n * n_sentences).reshape(n, -1), "T": np.arange(n * n_sources)}
    table = {f"S{i}": x for i, x in enumerate(S.reshape(-1, n_dims))}
    table |= {f"T{i}": x for i, x in enumerate(T.reshape(-1, n_dims))}
    order = np.random.default_rng(seed).permutation(n)
    pairs = [
        ([f"S{j}" for j in names["S"][i]], [f"T{j}" for j in names["T"].reshape(n, -1)[order[i]]])
        for i in range(n)
    ]
    supports = EmbeddingGrounding().support(pairs, Table(table))
    share = np.mean(np.concatenate([support.carried for support in supports]))
    assert 0 < share <= 0.11


def test_true_sources_support_what_was_written_from_them():
    topics = [[f"topic{i} word{i}{j} thing{i}{j} of note" for j in range(8)] for i in range(6)]
    pairs = [([f"{text} indeed" for text in sources], sources) for sources in topics]
    embed = HashingEmbedding(dim=256)
    supports = EmbeddingGrounding().support(
        pairs, lambda texts: np.array(embed._get_text_embeddings(list(texts)))
    )
    for support in supports:
        assert support.carried.all()
        assert [sources[0] for sources in support.sources] == list(range(8))


def test_a_source_that_both_have_is_no_foreign_one():
    """Of texts that are there twice, all would find support."""
    S, T = level([0.1] * 50, [0.1] * 50)[0]
    assert calibrated_threshold([(S, T), (S, T)]) == THRESHOLD
