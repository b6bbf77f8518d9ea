import json

import pytest
from fakes import HashingEmbedding
from llama_index.llms.openai_like import OpenAILike
from summarize.groups import RewriterOf
from tiny_models import save_tiny_bart

from hierindex.errors import InputError, ModelError
from hierindex.summarize import (
    ExtractiveSummarizer,
    LLMRewriter,
    Seq2SeqRewriter,
    TwoStageSummarizer,
)
from hierindex.summarize.summarizers import as_summarizer, summarizer_from_dict

LLM = OpenAILike(model="tiny", api_base="http://127.0.0.1:1/v1", api_key="sk-secret")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bart")
    save_tiny_bart(folder)
    return str(folder)


@pytest.mark.parametrize("given", [None, "extractive"])
def test_the_default_is_extractive(given):
    summarizer = as_summarizer(given)
    assert isinstance(summarizer, ExtractiveSummarizer)
    assert summarizer.to_dict() == ExtractiveSummarizer().to_dict()


def test_a_model_rewrites(folder):
    for given, name, rewriter in ((LLM, "tiny", LLMRewriter), (folder, folder, Seq2SeqRewriter)):
        summarizer = as_summarizer(given)
        assert isinstance(summarizer, TwoStageSummarizer)
        assert isinstance(summarizer.rewriter, rewriter)
        assert summarizer.name == name


class Shout:
    name = "shout"

    def to_dict(self):
        return {"type": self.name}

    def summarize(self, groups, budget, resources=None):
        return []


@pytest.mark.parametrize(
    "given", [ExtractiveSummarizer(), TwoStageSummarizer(RewriterOf(str)), Shout()]
)
def test_a_summarizer_is_itself(given):
    assert as_summarizer(given) is given


@pytest.mark.parametrize(
    "given",
    [3, object(), ["extractive"], HashingEmbedding(), RewriterOf(str), ExtractiveSummarizer],
)
def test_anything_else_is_refused(given):
    with pytest.raises(InputError, match=type(given).__name__):
        as_summarizer(given)


@pytest.mark.parametrize("name", ["nowhere", "no-one/no-such-model", ""])
def test_an_unknown_name_is_refused(no_hub, name):
    with pytest.raises(ModelError, match=repr(name)):
        as_summarizer(name)


def described(summarizer):
    return json.loads(json.dumps(summarizer.to_dict()))


def test_all_can_be_made_again(folder):
    mine = TwoStageSummarizer(
        LLMRewriter(LLM, prompt="{text}"), extract_tokens=70, unsupported="drop"
    )
    marked = TwoStageSummarizer(LLMRewriter(LLM), unsupported="keep")
    of_all = [(None, None), (None, LLM), (folder, None), (folder, LLM), (LLM, LLM)]
    for given, llm in [*of_all, (mine, LLM), (marked, LLM)]:
        data = described(as_summarizer(given))
        assert summarizer_from_dict(data, llm).to_dict() == data


@pytest.mark.parametrize(
    ("summarizer", "llm", "told"),
    [
        (as_summarizer(LLM), None, "'tiny'.*llm="),
        (as_summarizer(LLM), OpenAILike(model="other"), "summarizer="),
        (TwoStageSummarizer(RewriterOf(str)), None, "summarizer="),
        (Shout(), None, "summarizer="),
    ],
)
def test_what_its_description_cannot_make_is_refused(summarizer, llm, told):
    with pytest.raises(InputError, match=told):
        summarizer_from_dict(described(summarizer), llm)


def test_limits_are_set_beside_what_is_described():
    data = described(TwoStageSummarizer(LLMRewriter(LLM, prompt="{text}")))
    made = summarizer_from_dict(data, LLM, strict=True, concurrency=2, token_limit=9)
    assert (made.strict, made.rewriter.concurrency, made.rewriter.token_limit) == (True, 2, 9)
