"""Quotes of a summary follow from its claims and the quotes of its children."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex import Grounding, Quote, Span, Usage
from hierindex.summarize import Claim, Summary
from hierindex.summarize.summary import resolve_claims
from hierindex.text import Excerpt

ONE, OTHER = Span("d", 100, 110, 1), Span("d", 111, 121, 2)
CHILD = [Quote(0, 10, ONE), Quote(11, 21, OTHER)]
REWRITTEN = [Quote(0, 10, ONE, verbatim=False, also=(OTHER,))]


@pytest.mark.parametrize(
    ("claim", "children", "quotes"),
    [
        (Claim(3, 7, (Excerpt(0, 2, 6),)), [CHILD], [Quote(3, 7, Span("d", 102, 106, 1))]),
        (
            Claim(5, 18, (Excerpt(1, 4, 17),)),
            [[], CHILD],
            [Quote(5, 11, Span("d", 104, 110, 1)), Quote(12, 18, Span("d", 111, 117, 2))],
        ),
        (Claim(0, 4, (Excerpt(0, 3, 7),)), [[Quote(0, 9, None)]], [Quote(0, 4, None)]),
        (
            Claim(0, 4, (Excerpt(0, 3, 7),)),
            [REWRITTEN],
            [Quote(0, 4, ONE, verbatim=False, also=(OTHER,))],
        ),
        (
            Claim(0, 9, (Excerpt(1, 11, 21), Excerpt(0, 0, 10), Excerpt(2, 0, 10)), False),
            [CHILD, CHILD, REWRITTEN],
            [Quote(0, 9, OTHER, verbatim=False, also=(ONE,))],
        ),
        (
            Claim(0, 9, (Excerpt(0, 0, 9),), False),
            [[Quote(0, 9, None)]],
            [Quote(0, 9, None, verbatim=False)],
        ),
    ],
    ids=["within", "across", "place not known", "of a rewrite", "rewritten", "rewritten, nowhere"],
)
def test_claims_are_resolved(claim, children, quotes):
    assert resolve_claims([claim], children) == tuple(quotes)


@given(st.text("ab ", min_size=1, max_size=40), st.data())
def test_a_verbatim_claim_stays_verbatim_across_any_quotes(document, data):
    """Of a child whose text is parts of a document, joined by blanks."""
    cuts = data.draw(st.lists(st.integers(0, len(document)), max_size=6))
    bounds = sorted({0, *cuts, len(document)})
    quotes, text = [], ""
    for start, end in pairwise(bounds):
        text += " " if text else ""
        quotes.append(Quote(len(text), len(text) + end - start, Span("d", start, end)))
        text += document[start:end]
    at = data.draw(st.integers(0, len(text) - 1))
    to = data.draw(st.integers(at + 1, len(text)))
    summary = f"It is so. {text[at:to]}"
    claim = Claim(10, 10 + to - at, (Excerpt(0, at, to),))
    for quote in resolve_claims([claim], [quotes]):
        stretch = document[quote.source.start : quote.source.end]
        assert stretch == summary[quote.at : quote.to] != ""


@pytest.mark.parametrize(
    "grounding",
    [None, Grounding(), Grounding(1, 2, 3, 4, 5, ("numbers not in the sources: 7", ""))],
)
@pytest.mark.parametrize("text", ["The lamp.", "\ud800", ""])
def test_a_summary_is_recalled_as_it_was(text, grounding):
    claims = Claim(0, 4, (Excerpt(1, 2, 6),)), Claim(5, 9, (Excerpt(0, 0, 3),) * 2, False)
    summary = Summary(text, claims, "abstractive", Usage(llm_calls=3), grounding, "The lamp")
    recalled = Summary.recalled(summary.text, summary.details)
    assert recalled == replace(summary, usage=Usage(cached_summaries=1))
