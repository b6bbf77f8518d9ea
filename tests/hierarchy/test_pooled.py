"""Sentence vectors pooled from the pass that embeds the chunks, with the bundled model."""

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import TextNode

from hierindex import (
    ExtractiveSummarizer,
    InputError,
    NodeRecord,
    PooledEmbedding,
    SalientSentences,
    SemanticHierarchy,
)
from hierindex.summarize.vectors import SentenceVectors

CAT, DOG, STOCKS = "The cat sat on a mat.", "A dog lay on the rug.", "Shares fell by a tenth today."


@pytest.fixture
def model(embed_model):
    return PooledEmbedding.of_model(embed_model)


@pytest.fixture
def passes(monkeypatch):
    """The texts of each pass."""
    texts = []
    run = PooledEmbedding.embed_with_parts

    def counted(self, given, parts):
        texts.extend(given)
        return run(self, given, parts)

    monkeypatch.setattr(PooledEmbedding, "embed_with_parts", counted)
    return texts


def test_its_vectors_are_those_of_the_model(model, embed_model):
    texts = [f"{CAT} {DOG}", STOCKS]
    assert model.get_text_embedding_batch(texts) == embed_model.get_text_embedding_batch(texts)
    assert model.get_query_embedding(CAT) == embed_model.get_query_embedding(CAT)
    assert model.fingerprint is None  # so that no build finds a vector without its sentences


def test_sentences_of_embedded_texts_need_no_pass(model, passes):
    model.get_text_embedding_batch([f"{CAT} {DOG}", STOCKS])
    passes.clear()
    (S, none) = model.of([[CAT, DOG, STOCKS], []])
    assert passes == []
    assert none.shape[0] == 0
    assert np.linalg.norm(S, axis=1) == pytest.approx(np.ones(3))
    assert S[0] @ S[1] > S[0] @ S[2] + 0.1


def test_others_are_embedded_and_what_was_not_chosen_is_forgotten(model, passes):
    model.of([[CAT, DOG], [CAT]])
    assert sorted(passes) == [DOG, CAT]
    model.keep([CAT])
    passes.clear()
    model.of([[CAT, DOG]])
    assert passes == [DOG]


def test_a_tree_is_built_with_a_pass_for_each_text(model, passes):
    assert isinstance(model, SentenceVectors)
    chunks = [TextNode(text=f"{CAT} {DOG} In case {i}, {STOCKS.lower()}") for i in range(5)]
    for i, chunk in enumerate(chunks):
        chunk.id_ = f"chunk {i}"
    summarizer = ExtractiveSummarizer(SalientSentences(model))
    hierarchy = SemanticHierarchy(model, summarizer, summary_tokens=16, max_children=3)
    nodes = hierarchy(chunks)
    assert {*passes} == {node.text for node in nodes}  # and no sentence alone
    assert {NodeRecord.from_metadata(node.metadata).kind for node in nodes} == {
        "chunk",
        "extractive",
    }


def test_only_a_model_on_onnx_runtime_will_do():
    with pytest.raises(InputError, match="got HashingEmbedding"):
        PooledEmbedding.of_model(HashingEmbedding())
