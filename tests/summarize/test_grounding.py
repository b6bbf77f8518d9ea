import gc
from itertools import pairwise
from weakref import ref

import numpy as np
import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds, unit_vectors

from hierindex.errors import InputError
from hierindex.models.embedder import Embedder
from hierindex.summarize.grounding import (
    SUPPORT,
    EmbeddingGrounding,
    known_threshold,
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
    supports = EmbeddingGrounding(0.5).support(pairs, embed)
    assert [sorted(batch) for batch in embed.batches] == [["a", "b", "c"]]
    assert [len(s.sources) for s in supports] == [len(told) for told, _ in pairs]


def test_a_threshold_is_known_as_long_as_its_model_and_no_longer():
    model = HashingEmbedding()
    embedder = Embedder(model)
    assert known_threshold(embedder.embed) == known_threshold(embedder.embed)
    assert len(model.batches) == 1
    alive = ref(embedder)
    del embedder
    gc.collect()
    assert alive() is None


def test_no_pairs():
    embed = Table({})
    assert EmbeddingGrounding().support([], embed) == []
    assert embed.batches == []


def test_sources_that_are_found_by_words_are_not_judged():
    pairs = [(["The lamp went out.", "It rained."], ["A letter.", "The lamp went out at night."])]
    (support,) = support_by_words(pairs)
    assert support.sources[0] == [1]
    assert support.carried is None


def test_known_sentences_are_each_on_another_matter(embed_model):
    sentences, sources = SUPPORT.sides
    assert len({*sentences, *sources}) == 2 * len(sentences) == 40
    S, T = (np.array(embed_model.get_text_embedding_batch(list(side))) for side in SUPPORT.sides)
    likeness = S @ T.T
    assert likeness.argmax(axis=1).tolist() == [*range(len(sentences))]
    threshold = known_threshold(
        lambda texts: np.array(embed_model.get_text_embedding_batch(list(texts)))
    )
    assert threshold == pytest.approx(0.444, abs=0.001)
    foreign = likeness[~np.eye(len(likeness), dtype=bool)]
    assert foreign.max() < threshold


def test_one_by_one_or_together_gives_the_same_support(embed_model):
    """Also of a single group, which has no other to be compared with."""
    pairs = [
        ([f"The {a} met the {b}.", "They counted votes in the hall."], [f"A {a} and a {b} met."])
        for a, b in pairwise("keeper boat storm mill sail oven bell gate dough tide".split())
    ]
    calls = []

    def embed(texts):
        calls.append(texts)
        return np.array(embed_model.get_text_embedding_batch(list(texts)))

    together = EmbeddingGrounding().support(pairs, embed)
    known, _ = map(len, calls)
    assert known == 40
    for pair, support in zip(pairs, together, strict=True):
        (alone,) = EmbeddingGrounding().support([pair], embed)
        assert alone.sources == support.sources
        assert alone.carried.tolist() == support.carried.tolist() == [True, False]
    assert len(calls) == 2 + len(pairs)  # what is known of the model is not asked again


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
