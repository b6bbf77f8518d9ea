import json

import numpy as np
import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
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

from hierindex import Grounding, Quote, Span, Usage
from hierindex.errors import FallbackWarning, InputError, SummaryError
from hierindex.summarize import (
    Claim,
    ExtractiveSummarizer,
    LLMRewriter,
    Resources,
    Rewrite,
    SalientSentences,
    TwoStageSummarizer,
)
from hierindex.text import Excerpt, Sentence

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
@pytest.mark.filterwarnings("ignore::hierindex.errors.FallbackWarning")
def test_children_with_names_are_rewritten_and_fall_back_on_a_list(extract_tokens):
    rewriter = RewriterOf(lambda text: None)
    summarizer = TwoStageSummarizer(rewriter, extract_tokens=extract_tokens)
    (summary,) = summarizer.summarize([LIST], budget_of(24))
    of_extract = [f"Keeper: {SENTENCES[0]}", f"Storm: {SENTENCES[1]}", f"Ships: {SENTENCES[2]}"]
    if extract_tokens == 24:
        of_extract[1:] = "Storm", "Ships"
    assert rewriter.calls == [["\n".join(of_extract)]]
    assert summary.text == ExtractiveSummarizer().summarize([LIST], budget_of(24))[0].text


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


def test_equal_groups_are_rewritten_once():
    rewriter = RewriterOf(str.upper)
    one, other = TwoStageSummarizer(rewriter).summarize([GROUPS[0]] * 2, budget_of(50))
    assert [len(texts) for texts in rewriter.calls] == [1]
    assert one.text == other.text
    assert [one.usage, other.usage] == [Usage(llm_calls=1), Usage(cached_summaries=1)]


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


def test_a_verbatim_part_of_a_longer_sentence_has_its_own_place():
    source = "In the end, The lamp went out. and nobody saw it"
    to = 4 + len(source)
    sentence = Sentence(source, 4, to, Quote(4, to, Span("d", 70, 66 + to, 3)), 2)
    (summary,) = summarized("The lamp went out. Nobody saw the lamp.", [sentence])
    verbatim, other = summary.claims
    at = 4 + source.index("The")
    assert verbatim == Claim(0, 18, (Excerpt(2, at, at + 18),))
    assert other == Claim(19, 39, (Excerpt(2, 4, 4 + len(source)),), verbatim=False)


def test_an_abstractive_sentence_points_to_the_sources_that_support_it():
    sources = ("The storm broke a window.", "The storm broke a window!", "Votes were counted.")
    group = group_of(*sources)
    (summary,) = summarized("A window broke, the storm.", group, extract_tokens=None)
    (quote,) = quotes_of(summary, group)
    assert not quote.verbatim
    assert [span.document for span in quote.sources] == list(sources[:2])
    assert quote.source.document == sources[0]
    assert [span.document for span in quote.also] == [sources[1]]


UNSUPPORTED = "In June, the lamp of Cape Town went out."
REASON = "names not in the sources: June, Cape"  # a town is there


@pytest.mark.parametrize(
    ("unsupported", "text", "counts"),
    [
        ("drop", SENTENCES[0], {"dropped": 1}),
        ("keep", f"{SENTENCES[0]} {UNSUPPORTED}", {"unsupported": 1}),
        ("extract", f"{SENTENCES[0]} {SENTENCES[1]}", {"replaced": 1}),
    ],
)
def test_what_becomes_of_an_unsupported_sentence(unsupported, text, counts):
    reply = f"{SENTENCES[0]} {UNSUPPORTED}"
    (summary,) = summarized(reply, GROUPS[0], unsupported=unsupported)
    assert summary.text == text
    assert summary.grounding == Grounding(supported=1, faults=(REASON,), **counts)
    assert summary.kind == "abstractive"
    check_summary(summary, budget_of(100))
    quotes = quotes_of(summary, GROUPS[0])
    assert [(q.verbatim, bool(q.sources)) for q in quotes] == [(True, True)] + {
        "drop": [],
        "keep": [(False, False)],
        "extract": [(True, True)],
    }[unsupported]


def test_an_unsupported_sentence_can_fail_the_build():
    with pytest.raises(SummaryError) as caught:
        summarized(UNSUPPORTED, GROUPS[0], unsupported="fail")
    assert f"that is not supported ({REASON}): {UNSUPPORTED!r}." in str(caught.value)


def test_a_source_replaces_no_second_sentence():
    reply = f"{UNSUPPORTED} {UNSUPPORTED.replace('June', 'July')} {SENTENCES[0]}"
    (summary,) = summarized(reply, GROUPS[0])
    assert summary.text == f"{SENTENCES[1]} {SENTENCES[0]}"
    assert (summary.grounding.replaced, summary.grounding.dropped) == (1, 1)


@pytest.mark.parametrize(
    ("n_words", "text", "counts"),
    [
        (16, f"{SENTENCES[1]} It was dark.", {"replaced": 1, "supported": 1}),
        (14, SENTENCES[1], {"replaced": 1}),
        (13, SENTENCES[1], {"replaced": 1}),
        (12, "It was dark.", {"dropped": 1, "supported": 1}),
    ],
)
def test_a_replaced_sentence_stays_within_the_budget(n_words, text, counts):
    """What is cut for its length is not counted."""
    reply = f"{UNSUPPORTED} It was dark."
    (summary,) = TwoStageSummarizer(RewriterOf(lambda _: reply)).summarize(
        GROUPS[:1], budget_of(n_words)
    )
    assert summary.text == text
    assert summary.grounding == Grounding(faults=(REASON,), **counts)


@pytest.mark.parametrize("n_words", [20, 40])
def test_a_correction_that_is_long_or_said_already_is_not_taken(n_words):
    rewriter = Correcting(lambda _: f"{SENTENCES[0]} {UNSUPPORTED}")
    rewriter.corrected = SENTENCES[0] if n_words == 40 else "The lamp went out. " * 20
    rewriter.corrected = rewriter.corrected.replace(". ", " and ").strip()
    (summary,) = TwoStageSummarizer(rewriter).summarize(GROUPS[:1], budget_of(n_words))
    assert summary.grounding.corrected == 0
    check_summary(summary, budget_of(n_words))


@pytest.mark.filterwarnings("ignore::hierindex.errors.FallbackWarning")
def test_a_summary_of_which_nothing_is_left_falls_back():
    (summary,) = summarized(UNSUPPORTED, GROUPS[0], unsupported="drop")
    assert (summary.kind, summary.grounding) == ("extractive_fallback", None)
    assert summary.usage == Usage(llm_calls=1, fallbacks=1)


class Correcting(RewriterOf):
    """Corrects each sentence in the same way; `asked` has the claims."""

    def correct(self, claims, resources):
        self.asked = claims
        return [Rewrite(self.corrected, self.usage, key=f"key {i}") for i in range(len(claims))]


@pytest.mark.parametrize(
    ("corrected", "outcome", "text"),
    [
        (SENTENCES[1], "corrected", SENTENCES[1]),
        ("In May, the lamp went out.", "replaced", SENTENCES[1]),
        (None, "replaced", SENTENCES[1]),
    ],
)
def test_a_model_is_asked_once_to_correct_a_sentence(corrected, outcome, text):
    rewriter = Correcting(lambda _: f"{SENTENCES[0]} {UNSUPPORTED}")
    rewriter.corrected = corrected
    (summary,) = TwoStageSummarizer(rewriter).summarize(GROUPS[:1], budget_of(99))
    assert summary.text == f"{SENTENCES[0]} {text}"
    assert summary.grounding == Grounding(supported=1, faults=(REASON,), **{outcome: 1})
    assert summary.usage == Usage(llm_calls=2)
    assert summary.completions == ("key 0",)
    ((sentence, fault, sources),) = rewriter.asked
    assert (sentence, fault) == (UNSUPPORTED, REASON)
    assert SENTENCES[1] in sources


def test_names_of_documents_that_the_model_read_are_known():
    group = group_of(*SENTENCES[:3], names=["Keeper of Cape Town", "Storm", "June"])
    (summary,) = summarized(UNSUPPORTED, group, unsupported="keep")
    assert not summary.grounding.faults


@pytest.mark.parametrize(("title", "kept"), [("1,200 boats", True), ("1,300 boats", False)])
def test_a_title_with_another_number_is_left_out(title, kept):
    rewrite = Rewrite("1200 boats came.", title=title)
    rewriter = RewriterOf(str)
    rewriter.rewrite = lambda texts, **_: [rewrite]
    (summary,) = TwoStageSummarizer(rewriter).summarize(
        [group_of("In all, 1,200 boats came.")], budget_of(9)
    )
    assert summary.title == title * kept


NUMBERS = [
    ("1.200.000 boats", "1,200,000 boats", 1),
    ("1'200.50 or 3,14", "1200.5 and 3.140", 1),
    ("boats, 40 %", "40% of boats", 1),
    ("the 4th boat", "boat 4 of 04", 1),
    ("12 boats", "twelve boats", 1),
    ("twenty-five boats, three hundred and one men", "25 boats, 301 men", 1),
    ("fourteen thousand seven hundred boats", "14,700 boats", 1),
    ("١٢٣ boats", "１２３ boats", 1),  # noqa: RUF001
    ("on 10.12.2020", "on 10 December 2020, the 12th", 1),
    ("boats", "2. boats [3]", 1),
    ("boats", "eleven boats", 1),  # words are not compared
    ("1,200 boats", "1,300 boats", 0),
    ("12.5 boats", "125 boats", 0),
    ("0.5 boats", "5 boats", 0),
    ("version 2.3.1", "version 2.3.4", 0),
    ("twenty boats, five men", "25 boats", 0),
    ("7 boats", "7 boats of 8", 0),
    ("boats", "٧ boats", 0),  # noqa: RUF001
]


@pytest.mark.parametrize(("source", "told", "known"), NUMBERS)
def test_a_number_that_the_sources_lack_is_a_fault(source, told, known):
    group = group_of("Votes were counted.", f"There were {source}.")
    (summary,) = summarized(f"{told} there were.", group, unsupported="keep", resources=Resources())
    assert any("numbers" in fault for fault in summary.grounding.faults) != known


def test_what_embeddings_do_not_find_in_the_sources_is_unsupported(embed_model):
    reply = "In winter the road over the mountain is closed by snow. Bananas are yellow."
    real = Resources(embed=lambda texts: np.array(embed_model.get_text_embedding_batch([*texts])))
    (summary,) = summarized(reply, GROUPS[0], unsupported="keep", resources=real)
    assert summary.grounding == Grounding(
        supported=1, unsupported=1, faults=("no source is similar",)
    )
    (summary,) = summarized(reply, GROUPS[0], resources=Resources())
    assert summary.grounding == Grounding(supported=2), "similarity is not judged without a model"


class Failing(RewriterOf):
    """Gives no rewrite, for a reason."""

    def rewrite(self, texts, *, max_tokens, resources=None):
        return [Rewrite(None, self.usage, "it was refused") for _ in texts]


@pytest.mark.parametrize(
    ("rewriter", "reason"),
    [
        (Failing(str), "it was refused"),
        (RewriterOf(lambda text: " "), "it was empty"),
        (RewriterOf(lambda text: UNSUPPORTED), "none of its sentences is supported"),
    ],
)
def test_strict_names_the_group_and_the_reason(rewriter, reason):
    summarizer = TwoStageSummarizer(rewriter, strict=True, unsupported="drop")
    group, quote = group_of("A lamp.", "A letter.")[1:], Quote(0, 5, None)
    nowhere = [Sentence("Snow.", 0, 5, quote)]
    with pytest.raises(SummaryError, match=rf"'A letter\.' at 0: {reason}; strict is set\."):
        summarizer.summarize([group], budget_of(9))
    with pytest.raises(SummaryError, match="for a group: "):
        summarizer.summarize([nowhere], budget_of(9))


@pytest.mark.parametrize("unsupported", ["", "none", None, 1])
def test_what_to_do_with_the_unsupported_is_one_of_four(unsupported):
    with pytest.raises(InputError, match="unsupported must be one of extract, drop, keep, fail"):
        TwoStageSummarizer(RewriterOf(str), unsupported=unsupported)


@pytest.mark.parametrize("between", [" ", "\n", "\n\n", "\n- "])
def test_a_summary_keeps_its_lines_so_that_it_is_recalled_as_it_was(between):
    reply = f"The keeper{between}The storm broke the lamp.{between}It was dark."
    group, budget = group_of(*SENTENCES), budget_of(99)
    (summary,) = TwoStageSummarizer(RewriterOf(lambda _: reply)).summarize([group], budget)
    assert summary.text == reply
    (again,) = TwoStageSummarizer(RewriterOf(lambda _: summary.text)).summarize([group], budget)
    assert again == summary
