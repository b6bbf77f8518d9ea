from dataclasses import replace

import numpy as np
import pytest
from fakes import HashingEmbedding
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

from hierindex.summarize import (
    BertExtractor,
    Budget,
    ExtractiveSummarizer,
    SalientSentences,
)
from hierindex.summarize.extractive import beginning, informative, tf_idf
from hierindex.summarize.summary import names_of
from hierindex.text.sentences import TOKEN

TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=12)
METHODS = st.sampled_from(["topics", "lexrank"])
NAMES = st.sampled_from(["", "Mill", "The sea", "The sea 2", "Storm: of May"])
LONG = " ".join(f"word{i}" for i in range(60)) + "."


def check_list(summary, group, budget):
    """Within the budget; a line for each name, with claims of the children that are called so."""
    told = {name: [] for name in [*names_of(group), ""]}
    child_of = {s.child: s for s in group}
    for at, to, ((child, *place),), is_verbatim in summary.claims:
        assert is_verbatim
        assert summary.text[at:to] == child_of[child].quote.source.document[slice(*place)]
        told[child_of[child].name].append(summary.text[at:to])
    lines = {name: ": ".join(filter(None, [name, " ".join(said)])) for name, said in told.items()}
    assert summary.text == "\n".join(filter(None, lines.values()))
    assert [*summary.claims] == sorted(summary.claims)
    assert budget.count([summary.text])[0] <= budget.max_tokens


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


@given(st.lists(children(), max_size=4), st.integers(1, 30), METHODS)
def test_extracts_are_verbatim_in_order_and_within_the_budget(texts, n_words, by):
    groups, budget = [group_of(*of) for of in texts], budget_of(n_words)
    extracts = SalientSentences(by).extract(groups, budget)
    for group, extract in zip(groups, extracts, strict=True):
        check_extract(extract, group, budget)


@given(children(), st.integers(1, 30), METHODS)
def test_a_summary_is_its_sentences_joined(texts, n_words, by):
    group, budget = group_of(*texts), budget_of(n_words)
    extractor = SalientSentences(by)
    extract = extractor.extract([group], budget)[0]
    (summary,) = ExtractiveSummarizer(extractor).summarize([group], budget)
    assert summary.text == " ".join(s.text for s in extract)
    assert [q.source for q in quotes_of(summary, group)] == [s.quote.source for s in extract]
    assert summary.kind == "extractive"
    check_summary(summary, budget)


@given(children(), st.lists(NAMES, min_size=4, max_size=4), st.integers(1, 30), METHODS)
def test_a_summary_of_children_with_names_is_a_list_of_all(texts, names, n_words, by):
    group = group_of(*texts, names=names[: len(texts)])
    names = names_of(group)
    budget = budget_of(2 * len(" ".join(names).split()) + n_words)
    (summary,) = ExtractiveSummarizer(SalientSentences(by)).summarize([group], budget)
    check_list(summary, group, budget)


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


def test_a_sentence_of_several_children_appears_once():
    group = group_of(f"{SENTENCES[0]} {SENTENCES[1]}", SENTENCES[0], SENTENCES[0])
    (extract,) = SalientSentences().extract([group], budget_of(1000))
    assert extract == group[:2]


@pytest.mark.parametrize("by", ["topics", "lexrank"])
def test_the_common_matter_is_chosen(by):
    odd = "Nobody here expected such purple elephants."
    group = group_of(f"{odd} The storm broke the lamp. A storm broke the harbour lamp at night.")
    (extract,) = SalientSentences(by).extract([group], budget_of(8))
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
def test_a_sentence_over_the_budget_is_cut_and_no_other(texts, n_words):
    budget = budget_of(n_words)
    for sentence in group_of(*texts, LONG):
        cut = beginning(sentence, budget)
        assert budget.count([cut.text])[0] <= n_words
        assert source_text(cut) == cut.text != ""
        assert cut.quote.at == sentence.quote.at
        assert cut == sentence or budget.count([sentence.text])[0] > n_words


def test_a_rewritten_sentence_that_is_cut_keeps_its_support():
    (sentence,) = group_of(LONG)
    support = sentence.quote.source._replace(end=7)
    rewritten = replace(sentence, within=sentence.quote._replace(source=support, verbatim=False))
    cut = beginning(rewritten, budget_of(10))
    assert cut.quote.source == support
    assert LONG[cut.quote.at : cut.quote.to] == cut.text != LONG


def test_near_duplicates_are_not_chosen_twice():
    group = group_of(SENTENCES[0], SENTENCES[1], SENTENCES[0].upper(), f"{SENTENCES[1][:-1]}!")
    (extract,) = SalientSentences().extract([group], budget_of(1000))
    assert extract == group[:2]


def test_no_child_is_crowded_out():
    report = " ".join(f"The storm broke lamp {i} of the harbour at night." for i in range(40))
    group = group_of(report, "Ships wait in the bay.", "Snow has closed the mountain road.")
    (extract,) = SalientSentences().extract([group], budget_of(33))
    assert {s.child for s in extract} == {0, 1, 2}


def test_the_opening_counts_more():
    lines = [f"Word{i} of the {i}th line is like no other{i} word." for i in range(6)]
    group = group_of(" ".join(lines))
    (extract,) = SalientSentences().extract([group], budget_of(11))
    assert extract == group[:1]


@pytest.mark.parametrize(("size", "n_told"), [((1, 1), [2, 2]), ((5, 1), [3, 1])])
def test_larger_children_have_more_sentences(size, n_told):
    lines = [f"Word{i} of the {i}th line is like no other{i} word." for i in range(8)]
    group = group_of(" ".join(lines[:4]), " ".join(lines[4:]))
    group = [replace(sentence, size=size[sentence.child]) for sentence in group]
    (extract,) = SalientSentences().extract([group], budget_of(40))
    assert np.bincount([s.child for s in extract]).tolist() == n_told


def test_topics_tell_what_lexrank_does_not():
    """Of children that say something of their own and then all the same."""
    own = [
        "The mill grinds wheat for bakers. Wheat from farms waits at the mill.",
        "A ferry carries goats to market. Goats graze near the ferry on Monday.",
        "The lamp burns whale oil at night. Whale oil smokes and dims the lamp.",
    ]
    months = "May", "June", "July"
    shared = [
        f"Village farmers repaired stone walls and wooden roofs in {month}." for month in months
    ]
    group = group_of(*map(" ".join, zip(own, shared, strict=True)))
    assert not {s[0].text for s in SalientSentences().ranked(group).values()} & {*shared}
    assert {s[0].text for s in SalientSentences("lexrank").ranked(group).values()} == {*shared}


def test_sentences_of_one_form_say_little():
    """The same is said of each option, and something else of each."""
    own = (
        "The mill behind the harbour grinds wheat for bakers of the town.",
        "A ferry carries goats and their owners to the market every Monday.",
        "Whale oil burns at night in the lamp and smokes up its glass.",
        "Two men work the pump until the hold has no more water.",
        "Oak planks were sawn for hulls by masters of the old yard.",
    )
    lines = [
        f"If --{option} is given several times, only the last value of it counts. {sentence}"
        for option, sentence in zip("cert key limit retry proxy".split(), own, strict=True)
    ]
    for extract in SalientSentences().extract([group_of(" ".join(lines))], budget_of(50)):
        assert {s.text for s in extract} <= {*own}


def test_the_best_sentence_of_a_child_stands_alone():
    group = group_of(
        "And so it was the mill that we had there.  The mill grinds wheat for bakers.",
        "For instance, the ferry carries goats.  The ferry carries goats to the market.",
    )
    ranked = SalientSentences().ranked(group)
    assert [ranked[i][0].text for i in range(2)] == [
        "The mill grinds wheat for bakers.",
        "The ferry carries goats to the market.",
    ]


@given(children(), METHODS)
def test_the_best_sentence_of_each_child_is_its_own(texts, by):
    group = group_of(*texts)
    ranked = SalientSentences(by).ranked(group)
    assert all(s.child == child and s in group for child, each in ranked.items() for s in each)
    assert ranked
    assert SalientSentences(by).ranked([]) == {}


MILL, SEA, LAMP = (
    "The mill of the village grinds wheat and rye.",
    "Ships with grain and salt wait in the bay.",
    "A lamp of whale oil burns in the tower.",
)


@pytest.mark.parametrize(
    ("names", "n_words", "expected"),
    [
        (["Mill", "Sea", "Lamp"], 99, f"Mill: {MILL}\nSea: {SEA}\nLamp: {LAMP}"),
        (["Mill", "Sea", "Lamp"], 29, f"Mill: {MILL}\nSea: {SEA}\nLamp"),
        (["Mill", "Sea", "Mill"], 99, f"Mill: {MILL} {LAMP}\nSea: {SEA}"),
        (["Mill", "", "Lamp"], 99, f"Mill: {MILL}\nLamp: {LAMP}\n{SEA}"),
        (["", "", ""], 99, f"{MILL} {SEA} {LAMP}"),
    ],
)
def test_a_list_of_named_children(names, n_words, expected):
    group = group_of(MILL, SEA, LAMP, names=names)
    (summary,) = ExtractiveSummarizer().summarize([group], budget_of(n_words))
    assert summary.text == expected
    check_list(summary, group, budget_of(n_words))


@pytest.mark.parametrize(
    "extractor",
    [SalientSentences(), BertExtractor(HashingEmbedding())],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("n_words", [6, 10, 20, 99])
def test_names_count_in_the_budget_of_every_extractor(extractor, n_words):
    group = group_of(MILL, SEA, LAMP, names=["Mill", "Sea", "Lamp"])
    (summary,) = ExtractiveSummarizer(extractor).summarize([group], budget_of(n_words))
    if "\n" in summary.text:
        check_list(summary, group, budget_of(n_words))
    else:  # there is no room for names
        assert n_words < 20
        assert any(summary.text in text for text in (MILL, SEA, LAMP))
        assert len(summary.text.split()) <= n_words


def test_names_that_leave_no_room_for_sentences_are_left_out():
    group = group_of(
        *[MILL.replace("village", f"village {i}") for i in range(40)], names=[*map(str, range(40))]
    )
    (summary,) = ExtractiveSummarizer().summarize([group], budget_of(45))
    assert "\n" not in summary.text
    assert summary.text in {sentence.text for sentence in group}  # the others are near duplicates
    check_summary(summary, budget_of(45))


@pytest.mark.parametrize(
    ("first", "best"),
    [
        ("You need a passport, two photographs and a letter from the employer.", 0),
        ("The harbour's sails are as well kept as the mill's sails and its stones.", 0),
        ("Ada: You need a passport, two photographs and a letter from the employer.", 1),
        ("Ada: We don't we wanna we ha we want the mill and the harbour to be kept.", 1),
    ],
)
def test_only_speech_falters_and_is_about_the_listener(first, best):
    second = "The mill and the harbour are kept by the employer of the town."
    text = first if best == 0 else f"{first}\nBo: {second}"
    group = group_of(text if best else f"{text} {second}")
    weights = informative(group)[1]
    assert (weights[0] < weights[1]) == (best == 1)
