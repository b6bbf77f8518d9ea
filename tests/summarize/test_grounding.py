import gc
from itertools import pairwise
from weakref import ref

import numpy as np
import pytest

from hierindex.summarize.grounding import SUPPORT, judged, known_scale

HALL = [
    "The committee counted the votes twice.",
    "Anna Berg won the seat of Northwick.",
    "The old member, Carl Dunn, had held it for twelve years.",
    "A new roof for the hall costs 40,000 euros.",
    "The storm took the old roof in 1998.",
    "Members may not sell their seats.",
    "Its garden was planted in 1850 by the first owner.",
]


class Table:
    """Vectors of texts by a table; `batches` has the texts of each call."""

    def __init__(self, table):
        self.table = table
        self.batches = []

    def __call__(self, texts):
        self.batches.append(list(texts))
        return np.array([self.table.get(text, [1.0, 0.0]) for text in texts])


@pytest.fixture(scope="module")
def embed(embed_model):
    return lambda texts: np.array(embed_model.get_text_embedding_batch([*texts]))


def fault(said, sources, embed, beside=""):
    (verdict,) = judged([([said], sources)], embed, [beside])[0]
    return verdict.fault


@pytest.mark.parametrize(
    "said",
    [
        "Berg won Northwick.",
        "The votes were counted two times by the committee.",
        "It costs \u20ac40,000 to put a new roof on the hall.",
        "Dunn was the member for 12 years.",
        "In 1998, a storm took the roof.",
        "Seats may not be sold by members.",
    ],
)
def test_a_true_sentence_is_supported(said, embed):
    assert fault(said, HALL, embed) == ""


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Berg won Southwick.", "names not in the sources: Southwick"),
        ("A new roof costs 50,000 euros.", "numbers not in the sources: 50,000"),
        ("A new roof costs 40,000 dollars.", "units not in the sources: $"),
        ("A new roof costs 1850 euros.", "numbers only elsewhere in the sources: 1850"),
        ("Members may sell their seats.", "negation differs from the sources"),
        ("The committee did not count the votes twice.", "negation differs from the sources"),
        ("The recipe needs two eggs and some flour.", "no source is similar"),
    ],
)
def test_a_sentence_that_is_not_supported_says_why(said, why, embed):
    assert fault(said, HALL, embed) == why


def test_months_and_prefixes_are_no_negation(embed):
    assert fault("Le pont a ferm\u00e9 en mai.", ["Le pont a ferm\u00e9 en mai 2020."], embed) == ""
    assert fault("A non-profit ran the mill.", ["The mill was run by a charity."], embed) == ""


def test_facts_beside_the_sources_are_known(embed):
    assert fault("Berg won Southwick.", HALL, embed, "Report of Southwick") == ""


def test_without_an_embedding_model_facts_alone_are_judged():
    assert fault("The recipe needs two eggs.", HALL, None) == ""
    assert fault("The recipe needs 2 eggs.", HALL, None) == "numbers not in the sources: 2"
    (verdict,) = judged([(["Berg won the seat."], HALL)], None)[0]
    assert verdict.sources[0] == 1


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
        ([-0.5, -0.52, -0.4], [2]),
    ],
)
def test_sources_are_the_best_first_and_those_that_are_nearly_as_good(cosines, sources):
    table = {f"source {i}": [c, float(np.sqrt(1 - c * c))] for i, c in enumerate(cosines)}
    (verdict,) = judged([(["said"], [*table])], Table(table))[0]
    assert verdict.sources == tuple(sources)


def test_each_text_is_embedded_once_and_all_in_one_call():
    embed = Table({})
    judged([(["a", "b"], ["b", "c"]), (["a"], ["c", "c"])], embed)
    assert sorted(embed.batches[0]) == ["a", "b", "c"]
    assert len(embed.batches) == 2, "the other is of the known pairs"


def test_a_scale_is_known_as_long_as_its_model_and_no_longer():
    model = Table({})
    assert known_scale(model.__call__) == known_scale(model.__call__)
    assert len(model.batches) == 1
    alive = ref(model)
    del model
    gc.collect()
    assert alive() is None


def test_known_sentences_are_each_on_another_matter(embed):
    sentences, sources = SUPPORT.sides
    assert len({*sentences, *sources}) == 2 * len(sentences) == 40
    similarity = embed(sentences) @ embed(sources).T
    assert similarity.argmax(axis=1).tolist() == [*range(len(sentences))]
    scale = known_scale(embed)
    assert (scale.chance, scale.pairs) == pytest.approx((0.223, 0.538), abs=0.001)


def test_one_by_one_or_together_gives_the_same_verdicts(embed):
    """Also of a single group, which has no other to be compared with."""
    pairs = [
        ([f"The {a} met the {b}.", "They counted votes in the hall."], [f"A {a} and a {b} met."])
        for a, b in pairwise("keeper boat storm mill sail oven bell gate dough tide".split())
    ]
    together = judged(pairs, embed)
    assert together == [judged([pair], embed)[0] for pair in pairs]
    assert all([bool(v.fault) for v in verdicts] == [False, True] for verdicts in together)
