"""Measures against figures computed by hand, and what holds for all of them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from records import metadata_of

from hierindex import Answer, Citation, Quote, Span, Usage
from hierindex.evaluate import Question
from hierindex.evaluate.measures import (
    Passage,
    count_tokens,
    fill,
    interval,
    n_covered,
    ranked,
    said,
)
from hierindex.evaluate.measures import held as measured

WORDS = "one two three four five six seven eight nine ten"  # a token each
TEXTS = {"d": WORDS, "e": "other words"}
DOCUMENT = Span("d", 0, len(WORDS))


def passage(start, end, name="d"):
    return Passage(f"{name}{start}", TEXTS[name][start:end], (Span(name, start, end),))


def held(kept, budget=100, **gold):
    asked = Question("q", "?", group="d", **gold)
    return {name: value for (name, _), value in measured(asked, TEXTS, kept, budget).items()}


def test_coverage_counts_source_characters_once() -> None:
    gold = (Span("d", 0, 10),)
    assert held([passage(0, 5), passage(3, 7)], spans=gold) == {"coverage": 0.7}
    assert held([passage(0, 10, "e")], spans=gold) == {"coverage": 0.0}
    assert held([], spans=gold) == {"coverage": 0.0}


def test_coverage_is_of_what_fits_the_budget() -> None:
    assert count_tokens(WORDS) == 10
    half = passage(0, len(WORDS) // 2)
    assert held([half], 5, spans=(DOCUMENT,)) == {"coverage": 1.0}
    assert held([half], 10, spans=(DOCUMENT,)) == {"coverage": 0.5}


def test_documents() -> None:
    kept = [passage(0, 3), passage(0, 5, "e")]
    assert held(kept, documents=("e", "x")) == {"documents": 0.5}


def test_an_answer_is_found_word_for_word() -> None:
    kept = [passage(4, 18)]
    assert held(kept, answers=("nine", "Three, four!")) == {"answer": 1.0}
    assert held(kept, answers=("hree",)) == {"answer": 0.0}
    assert held([], answers=("one",)) == {"answer": 0.0}


def test_what_an_answer_says_and_cites() -> None:
    cited = [Citation("d", 0, 3, also=(Citation("e", 0, 11),)), Citation("d", 4, 7)]
    answer = Answer("one, [1]\n\ntwo [2]", "extractive", cited, [], Usage(), {})
    asked = partial(Question, "q", "?", group="d")
    length = {("words", None): 2.0, ("refused", None): 0.0}
    for gold, figures in (
        ({}, {}),
        ({"spans": (Span("d", 0, 5),)}, {("coverage", None): 0.8}),
        ({"documents": ("d", "e", "x", "y")}, {("documents", None): 0.5}),
        ({"answers": ("One two",)}, {("answer", None): 1.0}),
        ({"answers": ("1", "2")}, {("answer", None): 0.0}),  # numbers of citations
    ):
        assert said(asked(**gold), TEXTS, answer) == length | figures
    nothing = replace(answer, answer="Nothing!", citations=[], refused=True)
    refused = {("words", None): 1.0, ("refused", None): 1.0, ("documents", None): 0.0}
    assert said(asked(documents=("d",)), TEXTS, nothing) == refused


def test_fill_takes_in_order_and_skips_what_does_not_fit() -> None:
    one, eight, two = passage(0, 3), passage(0, 39), passage(0, 7)
    assert [count_tokens(p.text) for p in (one, eight, two)] == [1, 8, 2]
    assert fill([one, eight, two], 3) == [one, two]
    assert fill([one, eight, two], 9) == [one, eight]
    assert fill([eight], 7) == []


def test_a_ranking_of_passages() -> None:
    gold = Question("q", "?", group="d", spans=(Span("d", 0, 100),))

    def at(start, end, name="d"):
        return Passage(f"{name}{start}", "", (Span(name, start, end),))

    hit, near, off = at(0, 41), at(60, 100), at(0, 100, "e")
    third = {"hit@1": 0.0, "hit@5": 1.0, "MRR@10": pytest.approx(1 / 3)}
    assert ranked(gold, [off, near, hit]) == {(name, None): x for name, x in third.items()}
    for missed in ([off, near], []):
        assert {*ranked(gold, missed).values()} == {0.0}


@pytest.mark.parametrize("others", [(), (Span("e", 0, 500),)])
def test_half_of_a_short_gold_span_is_a_hit(others) -> None:
    gold = Question("q", "?", group="d", spans=(Span("d", 10, 17), *others))
    for end, hit in ((13, 0.0), (14, 1.0), (1_000, 1.0)):
        assert ranked(gold, [Passage("p", "", (Span("d", 0, end),))])["hit@1", None] == hit


def test_a_passage_of_a_gold_document_is_a_hit() -> None:
    gold = Question("q", "?", group="q", documents=("a", "b"))
    passages = [Passage(f"{i}", "", (Span(name, i, i + 1),)) for i, name in enumerate("ccb")]
    assert ranked(gold, passages)["MRR@10", None] == pytest.approx(1 / 3)


def test_passages_of_our_nodes_and_of_llama_indexs() -> None:
    record = metadata_of(quotes=(Quote(0, 3, Span("d", 4, 7)), Quote(4, 7, Span("d", 14, 17))))
    ours = TextNode(id_="n", text="two foo", metadata=record)
    assert Passage.of(ours) == Passage("n", "two foo", (Span("d", 4, 7), Span("d", 14, 17)))
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    theirs = TextNode(id_="n", text="two", start_char_idx=4, end_char_idx=7, relationships=source)
    assert Passage.of(theirs).spans == (Span("d", 4, 7),)
    assert Passage.of(TextNode(id_="n", text="two")).spans == ()


SPANS = st.lists(
    st.builds(
        lambda name, start, length: Span(name, start, start + length),
        st.sampled_from("de"),
        st.integers(0, 30),
        st.integers(1, 10),
    ),
    max_size=5,
)


@given(SPANS, SPANS)
def test_covered_characters_are_those_of_sets(gold, spans) -> None:
    def characters(of):
        return {(span.document, i) for span in of for i in range(span.start, span.end)}

    assert n_covered(gold, spans) == len(characters(gold) & characters(spans))


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.sampled_from("abc")), min_size=1, max_size=20),
    st.floats(-1, 1),
)
def test_intervals_move_with_their_values(pairs, by) -> None:
    values, groups = np.array([v for v, _ in pairs]), [g for _, g in pairs]
    low, high = interval(values, groups)
    assert values.min() - 1e-9 <= low <= high <= values.max() + 1e-9
    assert interval(values + by, groups) == pytest.approx((low + by, high + by))


def test_an_interval_is_over_groups() -> None:
    values = np.array([0.0] * 10 + [1.0] * 10)
    assert interval(values, ["a"] * 10 + ["b"] * 10) == (0.0, 1.0)
    low, high = interval(values, list(range(20)))
    assert 0.2 < low < 0.5 < high < 0.8
    assert interval(values, ["a"] * 20) == (0.5, 0.5)
