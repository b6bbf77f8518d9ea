import json
import warnings

import numpy as np
import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.llms import MockLLM
from llama_index.llms.openai_like import OpenAILike
from summarize.groups import (
    RewriterOf,
    budget_of,
    check_summary,
    children,
    group_of,
    quotes_of,
    source_text,
)
from tiny_models import SENTENCES

from hierindex.errors import FallbackWarning, InputError, SummaryError
from hierindex.models.record import Usage
from hierindex.node import Quote, Span
from hierindex.summarize.claims import Claim, Excerpt
from hierindex.summarize.extractive import ExtractiveSummarizer, SalientSentences
from hierindex.summarize.grounding import EmbeddingGrounding, Support
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Resources
from hierindex.summarize.two_stage import Rewrite, TwoStageSummarizer
from hierindex.text.sentences import Sentence

GROUPS = [group_of(*SENTENCES), group_of(SENTENCES[1], "The lamp is new since the storm.")]
VERBOSE = "A verbose model says this and that and more. " * 20 + "x" * 2000


def fails_on_storms(text):
    return None if "lamp is new" in text else "The keeper wrote letters to the harbour."


@given(
    st.lists(children(), min_size=1, max_size=3),
    st.integers(1, 30),
    st.sampled_from([VERBOSE, "One. Two.", "雪が降った。" * 30, "no stop", "!", "word " * 99]),
    st.sampled_from([None, 5, 900]),
)
def test_the_budget_holds_and_every_sentence_is_supported(texts, n_words, reply, extract_tokens):
    rewriter, budget = RewriterOf(lambda text: reply), budget_of(n_words)
    summarizer = TwoStageSummarizer(rewriter, extract_tokens=extract_tokens)
    groups = [group_of(*of) for of in texts]
    summaries = summarizer.summarize(groups, budget)
    for group, summary, given_text in zip(groups, summaries, *rewriter.calls, strict=True):
        assert summary.kind == "abstractive"
        assert summary.usage == rewriter.usage
        check_summary(summary, budget)
        documents = {s.quote.source.document for s in group}
        for quote in quotes_of(summary, group):
            assert quote.source.document in documents
            assert quote.source.document[quote.source.start : quote.source.end] in given_text


@pytest.mark.parametrize(
    "reply",
    [
        "He left. The keeper wrote a letter to the harbour. So what?",
        "Sales rose 5%. Profit fell. Nobody knew the reason for it.",
        "The lamp went out. It rained. The lamp went out.",
        "1. The keeper wrote a letter. 2. A storm came from the north.",
    ],
)
def test_a_rewrite_within_the_budget_is_kept_whole(reply):
    summarizer = TwoStageSummarizer(RewriterOf(lambda text: reply))
    (summary,) = summarizer.summarize(GROUPS[:1], budget_of(100))
    assert summary.text == reply


def test_the_first_sentences_stay():
    reply = "The storm came first. The lamp went out then. The window broke at last."
    summarizer = TwoStageSummarizer(RewriterOf(lambda text: reply))
    (summary,) = summarizer.summarize(GROUPS[:1], budget_of(10))
    assert summary.text == "The storm came first. The lamp went out then."


def test_a_sentence_is_supported_by_the_one_that_it_is_most_like():
    reply = "Snow closes the mountain road. The storm broke a window. They counted votes."
    summarizer = TwoStageSummarizer(RewriterOf(lambda text: reply))
    (summary,) = summarizer.summarize(GROUPS[:1], budget_of(100))
    sources = [q.source.document for q in quotes_of(summary, GROUPS[0])]
    assert sources[:2] == [SENTENCES[3], SENTENCES[1]]


def test_the_model_gets_the_extracts_in_one_call():
    rewriter, extractor = RewriterOf(str.upper), SalientSentences()
    summarizer = TwoStageSummarizer(rewriter, extractor, extract_tokens=20)
    summarizer.summarize(GROUPS, budget_of(10))
    extracts = extractor.extract(GROUPS, budget_of(20))
    assert rewriter.calls == [[" ".join(s.text for s in extract) for extract in extracts]]


def test_without_an_extractive_stage_the_model_gets_everything():
    rewriter = RewriterOf(str.upper)
    group = group_of(f"Yes. {SENTENCES[0]}", SENTENCES[0], SENTENCES[2])
    TwoStageSummarizer(rewriter, extract_tokens=None).summarize([group], budget_of(3))
    assert rewriter.calls == [[f"Yes. {SENTENCES[0]} {SENTENCES[0]} {SENTENCES[2]}"]]


LIST = group_of(*SENTENCES[:3], names=["Keeper", "Storm", "Ships"])


@pytest.mark.parametrize("extract_tokens", [None, 24, 200])
@pytest.mark.filterwarnings("ignore::hierindex.FallbackWarning")
def test_children_with_names_are_rewritten_and_fall_back_on_a_list(extract_tokens):
    rewriter = RewriterOf(lambda text: None)
    summarizer = TwoStageSummarizer(rewriter, extract_tokens=extract_tokens)
    (summary,) = summarizer.summarize([LIST], budget_of(24))
    of_extract = [f"Keeper: {SENTENCES[0]}", f"Storm: {SENTENCES[1]}", f"Ships: {SENTENCES[2]}"]
    if extract_tokens == 24:
        of_extract[1:] = "Storm", "Ships"
    assert rewriter.calls == [["\n".join(of_extract)]]
    assert summary.text == ExtractiveSummarizer().summarize([LIST], budget_of(24))[0].text


def test_a_rewrite_of_a_list_is_a_text_without_names():
    (summary,) = TwoStageSummarizer(RewriterOf(lambda text: "Snow fell.")).summarize(
        [LIST], budget_of(20)
    )
    assert summary.text == "Snow fell."


def test_no_groups():
    assert TwoStageSummarizer(RewriterOf(str)).summarize([], budget_of(5)) == []


@pytest.mark.parametrize("extract_tokens", [None, 900])
@pytest.mark.parametrize("empty", [None, "", " \n"])
def test_a_failed_rewrite_falls_back_on_its_extract(extract_tokens, empty):
    rewriter = RewriterOf(lambda text: fails_on_storms(text) or empty, Usage(llm_calls=3))
    summarizer = TwoStageSummarizer(rewriter, extract_tokens=extract_tokens)
    with pytest.warns(FallbackWarning, match="1 of 2 groups"):
        summaries = summarizer.summarize(GROUPS, budget_of(13))
    assert [s.kind for s in summaries] == ["abstractive", "extractive_fallback"]
    assert [s.usage for s in summaries] == [Usage(llm_calls=3), Usage(llm_calls=3, fallbacks=1)]
    (extract,) = ExtractiveSummarizer().summarize(GROUPS[1:], budget_of(13))
    assert (summaries[1].text, summaries[1].claims) == (extract.text, extract.claims)
    for summary in summaries:
        check_summary(summary, budget_of(13))


def test_many_failures_are_one_warning():
    groups = [group_of(sentence) for sentence in SENTENCES]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        summaries = TwoStageSummarizer(RewriterOf(lambda text: None)).summarize(
            groups, budget_of(99)
        )
    assert [w.category for w in caught] == [FallbackWarning]
    assert "5 of 5" in str(caught[0].message)
    assert [s.text for s in summaries] == list(SENTENCES)
    assert sum((s.usage for s in summaries), Usage()) == Usage(llm_calls=5, fallbacks=5)


def test_strict_makes_a_failure_an_error():
    summarizer = TwoStageSummarizer(RewriterOf(fails_on_storms), strict=True)
    with pytest.raises(SummaryError, match="function"):
        summarizer.summarize(GROUPS, budget_of(50))
    assert summarizer.summarize(GROUPS[:1], budget_of(50))[0].kind == "abstractive"


def test_a_verbatim_rewrite_stands_on_what_it_repeats():
    (summary,) = TwoStageSummarizer(RewriterOf(str)).summarize(GROUPS[:1], budget_of(99))
    for sentence in group_of(*SENTENCES):
        (quote,) = (
            q for q in quotes_of(summary, GROUPS[0]) if summary.text[q.at : q.to] == sentence.text
        )
        assert quote.source == sentence.quote.source
        assert source_text(sentence) == sentence.text


def test_to_dict_names_all_that_shapes_the_text_and_no_secret():
    llm = OpenAILike(model="tiny", api_base="http://127.0.0.1:1/v1", api_key="sk-secret")
    summarizer = TwoStageSummarizer(LLMRewriter(llm), extract_tokens=70)
    data = summarizer.to_dict()
    text = json.dumps(data)
    assert json.loads(text) == data
    assert data["extract_tokens"] == 70
    assert data["rewriter"]["llm"] == summarizer.name == "tiny"
    assert data["extractor"] == SalientSentences().to_dict()
    assert "sk-secret" not in text
    assert "127.0.0.1" not in text


def embed(texts):
    return np.array(HashingEmbedding(dim=512)._get_text_embeddings(list(texts)))


def summarized(reply, *groups, resources=None, **settings):
    summarizer = TwoStageSummarizer(RewriterOf(lambda text: reply), **settings)
    return summarizer.summarize(groups, budget_of(100), resources or Resources(embed=embed))


class Verdicts:
    """A grounding that says of each sentence whether these words are in it."""

    def __init__(self, *words):
        self.words = words
        self.pairs = []

    def to_dict(self):
        return {"type": "verdicts", "words": self.words}

    def support(self, pairs, embed):
        self.pairs += pairs
        return [
            Support(
                [[0] for _ in told], np.array([any(w in text for w in self.words) for text in told])
            )
            for told, _ in pairs
        ]


def test_a_verbatim_part_of_a_longer_sentence_has_its_own_place():
    source = "In the end, The lamp went out. and nobody saw it"
    to = 4 + len(source)
    sentence = Sentence(source, 4, to, Quote(4, to, Span("d", 70, 66 + to, 3)), 2)
    (summary,) = summarized("The lamp went out. Snow fell.", [sentence])
    verbatim, other = summary.claims
    at = 4 + source.index("The")
    assert verbatim == Claim(0, 18, (Excerpt(2, at, at + 18),))
    assert other == Claim(19, 29, (Excerpt(2, 4, 4 + len(source)),), verbatim=False)


def test_an_abstractive_sentence_points_to_the_sources_that_support_it():
    sources = ("The storm broke a window.", "The storm broke a window!", "Votes were counted.")
    group = group_of(*sources)
    (summary,) = summarized("A window broke, the storm.", group, extract_tokens=None)
    (quote,) = quotes_of(summary, group)
    assert not quote.verbatim
    assert [span.document for span in quote.sources] == list(sources[:2])
    assert quote.source.document == sources[0]
    assert [span.document for span in quote.beside] == [sources[1]]


@pytest.mark.parametrize(
    ("words", "share"),
    [((), 0.0), (("Snow",), 1 / 3), (("Snow", "Rain"), 2 / 3), (("Snow", "Rain", "Hail"), 1.0)],
)
def test_grounding_is_the_share_of_supported_sentences(words, share):
    (summary,) = summarized(
        "Snow fell. Rain fell. Hail fell.", GROUPS[0], grounding=Verdicts(*words)
    )
    assert summary.source_similarity == pytest.approx(share, abs=0.001)
    assert summary.kind == "abstractive"


def test_a_verbatim_sentence_is_supported_whatever_the_grounding_says():
    reply = f"{SENTENCES[0]} Snow fell."
    (summary,) = summarized(reply, GROUPS[0], grounding=Verdicts())
    assert summary.source_similarity == 0.5


NUMBERS = [
    ("1,200 boats", "1200 boats", 1),
    ("1.200.000 boats", "1,200,000 boats", 1),
    ("1'200.50 or 3,14", "1200.5 and 3.140", 1),
    ("boats for $12.50", "12.5 dollars", 1),
    ("boats, 40 %", "40% of boats", 1),
    ("the 4th boat", "boat 4 of 04", 1),
    ("twelve boats", "12 boats", 1),
    ("12 boats", "twelve boats", 1),
    ("twenty-five boats, three hundred and one men", "25 boats, 301 men", 1),
    ("fourteen thousand seven hundred boats", "14,700 boats", 1),
    ("fifty million boats", "50 million boats", 1),
    ("١٢٣ boats", "１２３ boats", 1),  # noqa: RUF001
    ("on 10.12.2020", "on 10 December 2020, the 12th", 1),
    ("boats", "2. boats [3]", 1),
    ("boats", "boats [1, 3-5]", 1),
    ("boats", "eleven boats", 1),  # words are not compared
    ("1,200 boats", "1,300 boats", 0),
    ("12.5 boats", "125 boats", 0),
    ("12.5 boats", "1250 boats", 0),
    ("0.5 boats", "5 boats", 0),
    ("version 2.3.1", "version 2.3.4", 0),
    ("twelve boats", "13 boats", 0),
    ("twenty boats, five men", "25 boats", 0),
    ("boats", "7 boats", 0),
    ("7 boats", "7 boats of 8", 0),
    ("boats", "٧ boats", 0),  # noqa: RUF001
    ("9" * 40, "9" * 41, 0),
]


@pytest.mark.parametrize(("source", "told", "share"), NUMBERS)
def test_a_sentence_with_a_number_of_no_source_is_not_similar(source, told, share):
    group = group_of("Votes were counted.", f"There were {source}.")
    (summary,) = summarized(f"{told} there were.", group, grounding=Verdicts("there"))
    assert summary.source_similarity == share


@pytest.mark.parametrize(("year", "kind"), [(1998, "abstractive"), (1989, "extractive_fallback")])
@pytest.mark.filterwarnings("ignore::hierindex.FallbackWarning")
def test_a_changed_number_fails_min_grounding(year, kind):
    group = group_of("The mill burned down in 1998.", "It was built of oak.")
    reply = f"In {year}, the mill burned down."
    (summary,) = summarized(reply, group, grounding=EmbeddingGrounding(0.5), min_grounding=1)
    assert summary.kind == kind


def test_grounding_sees_what_the_budget_leaves_and_what_the_model_saw():
    grounding = Verdicts()
    summarizer = TwoStageSummarizer(
        RewriterOf(lambda text: "Snow fell today. Rain fell."), grounding=grounding
    )
    summarizer.summarize(GROUPS[:1], budget_of(3), Resources(embed=embed))
    ((told, sources),) = grounding.pairs
    assert told == ["Snow fell today."]
    assert sorted(sources) == sorted(SENTENCES)


def test_what_embeddings_do_not_find_in_the_sources_is_unsupported():
    reply = "In winter the road over the mountain is closed by snow. Bananas are yellow."
    (summary,) = summarized(reply, GROUPS[0], grounding=EmbeddingGrounding(0.6))
    assert summary.source_similarity == 0.5


@pytest.mark.parametrize("least", [0, 1 / 3, 0.3])
def test_min_grounding_is_inclusive(least):
    (summary,) = summarized(
        "Snow fell. Rain fell. Hail fell.",
        GROUPS[0],
        grounding=Verdicts("Snow"),
        min_grounding=least,
    )
    assert summary.kind == "abstractive"


@pytest.mark.parametrize("least", [0.34, 0.5, 1])
def test_too_little_grounding_falls_back_and_says_so(least):
    settings = {"grounding": Verdicts("Snow"), "min_grounding": least}
    with pytest.warns(
        FallbackWarning, match="1 too few of its sentences are similar to its sources"
    ) as caught:
        summaries = summarized("Snow fell. Rain fell. Hail fell.", GROUPS[0], **settings)
    assert "1 of 1 groups" in str(caught[0].message)
    assert [s.kind for s in summaries] == ["extractive_fallback"]
    assert summaries[0].usage == Usage(llm_calls=1, fallbacks=1)
    assert summaries[0].source_similarity == 1
    assert all(claim.verbatim for claim in summaries[0].claims)


def test_each_reason_is_told_with_its_number():
    replies = iter(["Snow fell.", None, "", "Rain fell."])
    rewriter = RewriterOf(lambda text: next(replies))
    summarizer = TwoStageSummarizer(rewriter, grounding=Verdicts("Snow"), min_grounding=1)
    with pytest.warns(FallbackWarning) as caught:
        summaries = summarizer.summarize(GROUPS * 2, budget_of(99), Resources(embed=embed))
    told = str(caught[0].message)
    assert "3 of 4 groups" in told
    assert "2 it was empty, 1 too few of its sentences are similar to its sources" in told
    assert [s.kind for s in summaries] == ["abstractive"] + ["extractive_fallback"] * 3


class Failing(RewriterOf):
    """Gives no rewrite, for a reason."""

    def rewrite(self, texts, *, max_tokens, resources=None):
        return [Rewrite(None, self.usage, "it was refused") for _ in texts]


@pytest.mark.parametrize(
    ("rewriter", "reason"),
    [
        (Failing(str), "it was refused"),
        (RewriterOf(lambda text: " "), "it was empty"),
        (
            RewriterOf(lambda text: "Snow fell."),
            "too few of its sentences are similar to its sources",
        ),
    ],
)
def test_strict_names_the_group_and_the_reason(rewriter, reason):
    settings = {"grounding": Verdicts(), "min_grounding": 0.5, "strict": True}
    summarizer, resources = TwoStageSummarizer(rewriter, **settings), Resources(embed=embed)
    group, quote = group_of("A lamp.", "A letter.")[1:], Quote(0, 5, None)
    nowhere = [Sentence("Snow.", 0, 5, quote)]
    with pytest.raises(SummaryError, match=rf"'A letter\.' at 0: {reason}; strict is set\."):
        summarizer.summarize([group], budget_of(9), resources)
    with pytest.raises(SummaryError, match="for a group: "):
        summarizer.summarize([nowhere], budget_of(9), resources)


@pytest.mark.parametrize(
    ("settings", "resources"),
    [({"grounding": None}, Resources(embed=embed)), ({"min_grounding": 1}, Resources())],
    ids=["no grounding", "no embeddings"],
)
def test_what_was_not_looked_at_is_left_open(settings, resources):
    reply = f"{SENTENCES[0]} Bananas are yellow."
    (summary,) = summarized(reply, GROUPS[0], resources=resources, **settings)
    assert summary.source_similarity is None
    assert summary.kind == "abstractive"
    assert [claim.verbatim for claim in summary.claims] == [True, False]
    assert all(claim.excerpts for claim in summary.claims)


@pytest.mark.parametrize("given", [MockLLM(), None, "facebook/bart-large-cnn"])
def test_a_rewriter_is_none_of_what_it_is_made_of(given):
    with pytest.raises(InputError, match=f"LLMRewriter, got {type(given).__name__}"):
        TwoStageSummarizer(given)


def test_min_grounding_needs_a_grounding():
    with pytest.raises(InputError, match="needs a grounding"):
        TwoStageSummarizer(RewriterOf(str), grounding=None, min_grounding=0.0)


@pytest.mark.parametrize("least", [-0.01, 1.01, float("nan"), "0.5", True])
def test_min_grounding_is_a_share(least):
    with pytest.raises(InputError, match=r"min_grounding must be a number in \[0, 1\], got"):
        TwoStageSummarizer(RewriterOf(str), min_grounding=least)


def test_to_dict_names_the_grounding():
    settings = {"grounding": Verdicts("Snow"), "min_grounding": 0.25}
    data = TwoStageSummarizer(RewriterOf(str), **settings).to_dict()
    assert data["grounding"] == {"type": "verdicts", "words": ("Snow",)}
    assert data["min_grounding"] == 0.25
    assert TwoStageSummarizer(RewriterOf(str), grounding=None).to_dict()["grounding"] is None


@pytest.mark.parametrize("between", [" ", "\n", "\n\n", "\n- "])
def test_a_summary_keeps_its_lines_so_that_it_is_recalled_as_it_was(between):
    reply = f"The keeper{between}The storm broke the lamp.{between}It was dark."
    group, budget = group_of(*SENTENCES), budget_of(99)
    (summary,) = TwoStageSummarizer(RewriterOf(lambda _: reply)).summarize([group], budget)
    assert summary.text == reply
    (again,) = TwoStageSummarizer(RewriterOf(lambda _: summary.text)).summarize([group], budget)
    assert again == summary
