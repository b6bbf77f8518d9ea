import sys

import numpy as np
import pytest
import transformers
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from summarize.groups import budget_of, check_extract, check_summary, children, group_of
from tiny_models import SENTENCES, save_tiny_bert

from hierindex.errors import ModelError
from hierindex.summarize import BertExtractor, ExtractiveSummarizer

WINDOW = 64
TEN = [*SENTENCES, *(sentence.replace(" the ", " one ") for sentence in SENTENCES)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    save_tiny_bert(folder, WINDOW)
    return str(folder)


@pytest.fixture(params=["second last layer", "embedding model"])
def model(request, folder):
    return folder if request.param == "second last layer" else HashingEmbedding(dim=256)


def picked_by_the_library(model, sentences, n_sentences):
    import summarizer

    if isinstance(model, str):
        summary = summarizer.Summarizer(
            custom_model=transformers.AutoModel.from_pretrained(model, output_hidden_states=True),
            custom_tokenizer=transformers.AutoTokenizer.from_pretrained(model),
        )
    else:
        summary = summarizer.summary_processor.SummaryProcessor(
            lambda texts: np.array(model.get_text_embedding_batch(texts)), None
        )
    return summary.cluster_runner(sentences, num_sentences=n_sentences)[0]


@pytest.mark.spread
@pytest.mark.parametrize("n_sentences", [2, 3, 5])
def test_it_picks_what_the_library_picks(model, n_sentences):
    extractor = BertExtractor(model)  # first: it makes the library importable
    group = group_of(" ".join(TEN))
    n_words = -(-n_sentences * len(" ".join(TEN).split()) // len(TEN))
    (extract,) = extractor.extract([group], budget_of(n_words + 9))
    (fewer,) = extractor.extract([group], budget_of(n_words))
    expected = picked_by_the_library(model, TEN, n_sentences)
    assert [s.text for s in extract] == expected
    assert {s.text for s in fewer} <= set(expected)
    check_extract(fewer, group, budget_of(n_words))


@given(children(), st.integers(1, 30))
@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
def test_extracts_are_verbatim_in_order_and_within_the_budget(texts, n_words):
    group, budget = group_of(*texts), budget_of(n_words)
    (extract,) = BertExtractor(HashingEmbedding()).extract([group], budget)
    check_extract(extract, group, budget)


def test_a_summary_of_what_fits_is_all_of_it(model):
    group = group_of(*SENTENCES)
    (summary,) = ExtractiveSummarizer(BertExtractor(model)).summarize([group], budget_of(1000))
    assert summary.text == " ".join(SENTENCES)
    check_summary(summary, budget_of(1000))


@pytest.mark.spread
@pytest.mark.parametrize("n_words", [1, 5, 14, 40])
def test_one_sentence_at_least(model, n_words):
    groups = [group_of(*SENTENCES), group_of(SENTENCES[0]), group_of("! ? !", "... ;")]
    extracts = BertExtractor(model).extract(groups, budget_of(n_words))
    for group, extract in zip(groups, extracts, strict=True):
        check_extract(extract, group, budget_of(n_words))


def test_a_sentence_longer_than_the_model_s_window(model):
    group = group_of(" ".join(["salt"] * 2 * WINDOW) + ".", *SENTENCES)
    (extract,) = BertExtractor(model).extract([group], budget_of(2 * WINDOW + 9))
    check_extract(extract, group, budget_of(2 * WINDOW + 9))


def test_transformers_is_left_without_the_placeholders():
    for name in [name for name in sys.modules if name.partition(".")[0] == "summarizer"]:
        del sys.modules[name]
    BertExtractor(HashingEmbedding())
    assert "summarizer" in sys.modules
    for module in transformers, sys.modules["transformers"]:
        assert not hasattr(module, "TransfoXLModel")
        assert not hasattr(module, "TransfoXLTokenizer")


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "summarizer", None)
    with pytest.raises(ModelError, match=r"pip install 'hierindex\[bert\]'"):
        BertExtractor(HashingEmbedding())
    assert not hasattr(sys.modules["transformers"], "TransfoXLModel")


def test_an_unknown_model(no_hub, tmp_path):
    with pytest.raises(ModelError, match="nowhere"):
        BertExtractor(str(tmp_path / "nowhere"))
