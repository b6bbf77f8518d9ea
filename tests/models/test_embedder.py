import warnings

import numpy as np
import pytest
from fakes import HashingEmbedding, Remembered
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.utils import get_tokenizer
from tiny_models import SENTENCES

from hierindex.errors import InputError, WindowWarning
from hierindex.models.embedder import (
    TEXTS_PER_CALL,
    Embedder,
    check_same_model,
    fingerprint,
    identity,
    model_name,
    unit_vectors,
)

WINDOW = 40


def test_the_bundled_model(embed_model):
    embedder = Embedder(embed_model)
    assert (embedder.window, embedder.n_special_tokens) == (256, 2)
    assert embedder.name == model_name(embed_model) == "sentence-transformers/all-MiniLM-L6-v2"
    X = embedder.embed(["A cat sat on the mat.", "Stocks fell.", "The cat lay on a rug."])
    assert X.shape == (3, 384)
    assert X.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5)
    assert X[0] @ X[2] > X[0] @ X[1] + 0.2


def test_what_is_beyond_the_window_does_not_count(embed_model):
    at_most = "salt " * 254
    X = Embedder(embed_model).embed([at_most, at_most + "ice", "salt " * 253 + "ice"])
    np.testing.assert_allclose(X[0], X[1], atol=1e-6)
    assert np.abs(X[0] - X[2]).max() > 1e-4


def test_tokens_are_those_of_the_model(embed_model):
    embedder = Embedder(embed_model)
    assert embedder.count_tokens(["", "salt", "salt " * 1000]).tolist() == [2, 3, 1002]
    assert len(embedder.tokens_of("salt ice")) == 2
    assert embedder.count_tokens([]).shape == (0,)


class Unnamed(HashingEmbedding):
    model_name: str = "unknown"

    @classmethod
    def class_name(cls):
        return "Unnamed"


@pytest.mark.parametrize(
    ("model", "name"), [(HashingEmbedding(), "hashing"), (Unnamed(), "Unnamed")]
)
def test_any_model_has_a_name_and_countable_tokens(model, name):
    embedder = Embedder(model)
    assert embedder.name == name
    assert embedder.window is None
    assert embedder.count_tokens(SENTENCES).tolist() == [
        len(get_tokenizer()(text)) for text in SENTENCES
    ]
    assert embedder.n_special_tokens == 0


@given(st.lists(st.text(max_size=50), max_size=150))
def test_order_is_kept_though_batches_are_sorted_by_length(texts):
    model, told, given = HashingEmbedding(), [], [*texts]
    X = Embedder(model).embed(texts, progress=lambda *at: told.append(at))
    assert texts == given
    expected = [HashingEmbedding().get_text_embedding(text) for text in texts]
    np.testing.assert_allclose(X, np.reshape(expected, X.shape), atol=1e-6)
    sent = [text for batch in model.batches for text in batch]
    assert sorted(sent) == sorted({*texts})
    lengths = [len(text) for text in sent]
    assert lengths == sorted(lengths, reverse=True)
    assert len(model.batches) == -(-len({*texts}) // TEXTS_PER_CALL)
    assert [done for _, done, _ in told] == np.cumsum([0, *map(len, model.batches)]).tolist()


@pytest.mark.parametrize("row", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [-np.inf, 0.0]], ids=str)
@pytest.mark.parametrize("before", [0, 2])
def test_vectors_without_a_direction_are_refused(row, before):
    with pytest.raises(InputError, match=f"text {before} "):
        unit_vectors([[1.0, 0.0]] * before + [row])


@pytest.mark.parametrize(("longest", "warned"), [(0, False), (40, False), (41, True), (99, True)])
def test_a_warning_names_the_window(tiny, longest, warned):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Embedder(tiny).warn_of_cut(np.array([3, longest]))
    assert [w.category for w in caught] == [WindowWarning] * warned
    for warning in caught:
        for part in "1 of 2 chunks", "the 40 tokens", f"longest: {longest}", "at most 38 ":
            assert part in str(warning.message)


@given(st.lists(st.sampled_from(SENTENCES), max_size=9), st.sets(st.sampled_from(SENTENCES)))
def test_what_is_remembered_is_not_embedded_again(texts, before):
    model, memory = HashingEmbedding(), Remembered()
    Embedder(HashingEmbedding()).embed(sorted(before), memory=memory)
    X = Embedder(model).embed(texts, memory=memory)
    sent = [text for batch in model.batches for text in batch]
    assert sorted(sent) == sorted({*texts} - before)
    np.testing.assert_array_equal(X, Embedder(HashingEmbedding()).embed(texts).reshape(X.shape))
    assert memory.vectors.keys() == {*texts} | before


def test_models_with_other_vectors_have_other_fingerprints():
    plain = fingerprint(HashingEmbedding())
    assert plain == fingerprint(HashingEmbedding(embed_batch_size=3, num_workers=2))
    assert plain != fingerprint(HashingEmbedding(dim=32))
    assert plain != fingerprint(HashingEmbedding(model_name="other"))
    for unknown in ("unknown", "."):  # "." is a folder
        assert fingerprint(HashingEmbedding(model_name=unknown)) is None


class Service(HashingEmbedding):
    model_name: str = "service"
    base_url: str = "http://one:1"
    timeout: float = 1.0
    query_instruction: str | None = None


class Runtime(HashingEmbedding):
    """The same settings under another class, and one that others have not."""

    model_name: str = "service"
    pooling: str = "mean"


class Exact(HashingEmbedding):
    model_name: str = "service"
    precision: str = "float32"


UNKNOWN = MockEmbedding(embed_dim=3)


@pytest.mark.parametrize(
    ("built", "asks"),
    [
        (Service(), Service(base_url="http://other:2", timeout=9.0, embed_batch_size=3)),
        (Service(), Service(query_instruction="")),
        (Service(), Runtime()),
        (Exact(), Exact(precision="bfloat16")),
        (Service(), Exact(precision="bfloat16")),
        (Service(model_name="/models/a"), Service(model_name="/mnt/a/")),
        (Service(model_name="/models/a"), Service(model_name="org/a")),
        (Service(model_name="org/a"), Service(model_name="a")),
        (Service(model_name="C:\\models\\a"), Service(model_name="./a")),
        (UNKNOWN, MockEmbedding(embed_dim=3)),
    ],
)
def test_a_model_may_be_asked_elsewhere(built, asks):
    check_same_model(asks, model_name(built), identity(built))


@pytest.mark.parametrize(
    ("built", "asks", "named"),
    [
        (Service(), Service(dim=32), ["'service', dim=64,", "'service', dim=32."]),
        (Service(), Runtime(dim=32), ["dim=64", "dim=32"]),
        (Service(), Service(query_instruction="q: "), ["query_instruction=None", "='q: '"]),
        (Service(), Service(model_name="other"), ["'service',", "'other'."]),
        (Service(model_name="/models/a"), Service(model_name="/models/b"), ["models/a'", "b'."]),
        (Service(model_name="one/a"), Service(model_name="two/a"), ["'one/a'", "'two/a'"]),
        (Service(), UNKNOWN, ["'service'", "'MockEmbedding'"]),
        (UNKNOWN, Service(), ["'MockEmbedding'", "'service'"]),
        (Service(model_name="unknown"), Service(), ["'base_component'", "'service'"]),
    ],
)
def test_models_whose_vectors_differ_are_refused_by_name(built, asks, named):
    with pytest.raises(InputError) as raised:
        check_same_model(asks, model_name(built), identity(built))
    assert all(part in str(raised.value) for part in named), raised.value
