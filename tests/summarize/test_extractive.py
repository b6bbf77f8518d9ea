import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.utils import get_tokenizer
from sklearn.feature_extraction.text import TfidfVectorizer
from summarize.groups import (
    WORDS,
    budget_of,
    check_extract,
    check_summary,
    children,
    count_words,
    group_of,
    quotes_of,
    source_text,
)
from tiny_models import SENTENCES

from hierindex.summarize.extractive import (
    ExtractiveSummarizer,
    SalientSentences,
    fitting_sentences,
    tf_idf,
)
from hierindex.summarize.summary import Budget, Resources
from hierindex.text.sentences import MAX_CHARS, MIN_WORDS, TOKEN, is_telling, tokens

TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=12)
LONG = " ".join(f"word{i}" for i in range(60)) + "."


@given(TEXTS)
def test_tf_idf_is_scikit_learn_s(texts):
    S = tf_idf(texts)
    assert S.shape[0] == len(texts)
    vectorizer = TfidfVectorizer(token_pattern=TOKEN, sublinear_tf=True)
    words = [bool(vectorizer.build_analyzer()(text)) for text in texts]
    if any(words):
        expected = vectorizer.fit_transform(texts)
        found = (S @ S.T).toarray()[np.ix_(words, words)]
        assert found == pytest.approx((expected @ expected.T).toarray()[np.ix_(words, words)])


@given(st.text() | st.text(alphabet="aB1_ .'-\n\x1c\u201c\u2014\u00e9\u96ea\u30fb"))
def test_tokens_are_those_of_the_pattern(text):
    assert tokens(text) == re.findall(TOKEN, text)
    assert is_telling(text) == (len(tokens(text)) >= MIN_WORDS)


def test_the_order_of_words_does_not_matter():
    S = tf_idf(["rain fell and rain rose", "x", "rose and rain rain fell"]).toarray()
    assert np.array_equal(S[0], S[2])


@given(st.lists(children(), max_size=4), st.integers(1, 30))
def test_extracts_are_verbatim_in_order_and_within_the_budget(texts, n_words):
    groups, budget = [group_of(*of) for of in texts], budget_of(n_words)
    extracts = SalientSentences().extract(groups, budget)
    for group, extract in zip(groups, extracts, strict=True):
        check_extract(extract, group, budget)


@given(children(), st.integers(1, 30))
def test_a_summary_is_its_sentences_joined(texts, n_words):
    group, budget = group_of(*texts), budget_of(n_words)
    extract = SalientSentences().extract([group], budget)[0]
    (summary,) = ExtractiveSummarizer().summarize([group], budget)
    assert summary.text == " ".join(s.text for s in extract)
    assert [q.source for q in quotes_of(summary, group)] == [s.quote.source for s in extract]
    assert summary.kind == "extractive"
    check_summary(summary, budget)


@given(children(), st.integers(12, 40))
@example(["道路 keeper one letter. 道路 storm two harbour. 道路 storm three letters."], 18)
@example(["harbour keeper keeper keeper keeper lighthouse 道路."], 12)  # more without a blank
def test_the_budget_holds_for_tokens_of_a_language_model(texts, n_tokens):
    tokenizer = get_tokenizer()

    def count(texts):
        return count_words(texts) * 0 + [len(tokenizer(text)) for text in texts]

    budget = Budget(n_tokens, count)
    (summary,) = ExtractiveSummarizer().summarize([group_of(*texts)], budget)
    check_summary(summary, budget)


@given(st.lists(children(), min_size=2, max_size=4), st.integers(1, 30), st.randoms())
def test_a_summary_depends_on_nothing_but_its_group(texts, n_words, random):
    groups, summarizer = [group_of(*of) for of in texts], ExtractiveSummarizer()
    alone = [summarizer.summarize([group], budget_of(n_words))[0] for group in groups]
    order = random.sample(range(len(groups)), len(groups))
    together = summarizer.summarize([groups[i] for i in order], budget_of(n_words))
    assert together == [alone[i] for i in order]


def test_what_fits_is_kept_whole():
    group = group_of(" ".join(SENTENCES))
    assert SalientSentences().extract([group], budget_of(1000)) == [group]


def test_no_groups_and_no_calls():
    assert SalientSentences().extract([], budget_of(5)) == []


def test_a_sentence_of_several_children_appears_once():
    group = group_of(f"{SENTENCES[0]} {SENTENCES[1]}", SENTENCES[0], SENTENCES[0])
    (extract,) = SalientSentences().extract([group], budget_of(1000))
    assert extract == group[:2]


def test_the_common_matter_is_chosen():
    odd = "Nobody here expected such purple elephants."
    group = group_of(odd, "The storm broke the lamp.", "A storm broke the harbour lamp at night.")
    (extract,) = SalientSentences().extract([group], budget_of(8))
    assert len(extract) == 1
    assert "storm" in extract[0].text


@pytest.mark.parametrize(
    "text",
    [
        "! ? ! ... ;",
        "\u200b\u200b",
        "1 2 3 4 5 6 7 8 9",
        LONG,
        "la " * 60,
        "a" * 590,
        f"{LONG} {SENTENCES[0]}",
        "many    blanks" + " " * 300 + "between them",
        "a\n\n\nb\n\n\n\n\n\n\n\n\nc\t\t\td\n\n\ne",
    ],
)
@pytest.mark.parametrize("n", [1, 5])
def test_every_group_has_an_extract(text, n):
    group = group_of(text)
    for budget in (
        budget_of(n),
        Budget(n, lambda texts: count_words(texts) * 0 + [*map(len, texts)]),
    ):
        (extract,) = SalientSentences().extract([group], budget)
        check_extract(extract, group, budget)


@given(children(), st.integers(1, 8))
def test_sentences_over_the_budget_are_cut_and_nothing_else_is(texts, n_words):
    budget = budget_of(n_words)
    group = group_of(*texts, LONG)
    fitting = fitting_sentences(group, budget)
    for sentence in fitting:
        assert budget.count([sentence.text])[0] <= budget.max_tokens
        assert source_text(sentence) == sentence.text
    whole = {s.text for s in group if len(s.text.split()) <= n_words}
    assert {s.text for s in fitting if source_text(s) in whole} <= whole
    cut = [s for s in fitting if s.quote.source.document == LONG]
    assert " ".join(s.text for s in cut).split() == LONG.split()


def test_a_rewritten_sentence_that_is_cut_keeps_its_support():
    (sentence,) = group_of(LONG)
    support = sentence.quote.source._replace(end=7)
    quote = sentence.quote._replace(source=support, verbatim=False)
    rewritten = replace(sentence, within=quote)
    for piece in fitting_sentences([rewritten], budget_of(10)):
        assert piece.quote.source == support
        assert LONG[piece.quote.at : piece.quote.to] == piece.text


def test_progress_is_told():
    groups, told = [group_of(*SENTENCES), group_of(SENTENCES[2])], []
    summarizer = ExtractiveSummarizer()
    summarizer.summarize(groups, budget_of(20), Resources(lambda *at: told.append(at)))
    assert told[-1] == ("summarize", 2, 2)


def test_groups_are_left_as_they_are():
    group = group_of(*SENTENCES, LONG)
    before = list(group)
    ExtractiveSummarizer().summarize([group], budget_of(9))
    assert group == before


def test_to_dict_names_what_shapes_the_text():
    data = ExtractiveSummarizer().to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["type"] == "extractive"
    assert data["extractor"] == SalientSentences().to_dict()


def test_near_duplicates_are_not_chosen_twice():
    group = group_of(SENTENCES[0], SENTENCES[1], SENTENCES[0].upper(), f"{SENTENCES[1][:-1]}!")
    (extract,) = SalientSentences().extract([group], budget_of(1000))
    assert extract == group[:2]


def test_no_document_is_crowded_out():
    report = " ".join(f"The storm broke lamp {i} of the harbour at night." for i in range(40))
    group = group_of(report, "Ships wait in the bay.", "Snow has closed the mountain road.")
    (extract,) = SalientSentences().extract([group], budget_of(33))
    assert {s.child for s in extract} == {0, 1, 2}


def test_a_cut_sentence_knows_its_child():
    group = group_of(SENTENCES[0], LONG)
    assert {s.child for s in fitting_sentences(group, budget_of(9)) if s.text in LONG} == {1}


def test_the_opening_counts_more():
    lines = [f"Word{i} of the {i}th line is like no other{i} word." for i in range(6)]
    group = group_of(" ".join(lines))
    (extract,) = SalientSentences().extract([group], budget_of(11))
    assert extract == group[:1]


def test_pieces_of_an_endless_text_fit():
    group = group_of("".join(letter * MAX_CHARS for letter in "vwxyz"))
    (extract,) = SalientSentences().extract([group], budget_of(2))
    assert [len(s.text) for s in extract] == [MAX_CHARS] * 2
