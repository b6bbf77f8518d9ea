import asyncio
import json
import warnings

import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from llama_index.llms.openai_like import OpenAILike
from strategies import modest
from summarize.groups import RewriterOf, budget_of, check_summary, children, group_of, source_text
from tiny_models import SENTENCES

from hierindex.errors import FallbackWarning, SummaryError
from hierindex.summarize.extractive import ExtractiveSummarizer, SalientSentences
from hierindex.summarize.llm import LLMRewriter
from hierindex.summarize.summary import Usage
from hierindex.summarize.two_stage import TwoStageSummarizer

GROUPS = [group_of(*SENTENCES), group_of(SENTENCES[1], "The lamp is new since the storm.")]
VERBOSE = "A verbose model says this and that and more. " * 20 + "x" * 2000


def fails_on_storms(text):
    return None if "lamp is new" in text else "The keeper wrote letters to the harbour."


@modest
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
        for quote in summary.quotes:
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
    sources = [q.source.document for q in summary.quotes]
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
    assert (summaries[1].text, summaries[1].quotes) == (extract.text, extract.quotes)
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
    with pytest.raises(SummaryError, match="function"):
        asyncio.run(summarizer.asummarize(GROUPS, budget_of(50)))
    assert summarizer.summarize(GROUPS[:1], budget_of(50))[0].kind == "abstractive"


@pytest.mark.parametrize("extractor", [None, SalientSentences(HashingEmbedding())])
def test_async_equals_sync(extractor):
    summarizer = TwoStageSummarizer(RewriterOf(fails_on_storms), extractor)
    with pytest.warns(FallbackWarning):
        summaries = summarizer.summarize(GROUPS, budget_of(20))
    with pytest.warns(FallbackWarning):
        assert asyncio.run(summarizer.asummarize(GROUPS, budget_of(20))) == summaries


def test_a_verbatim_rewrite_stands_on_what_it_repeats():
    (summary,) = TwoStageSummarizer(RewriterOf(str)).summarize(GROUPS[:1], budget_of(99))
    for sentence in group_of(*SENTENCES):
        (quote,) = (q for q in summary.quotes if summary.text[q.at : q.to] == sentence.text)
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
