import numpy as np
import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from sklearn.feature_extraction.text import TfidfVectorizer
from summarize.groups import WORDS
from tiny_models import SENTENCES, save_tiny_sentence_transformer

from hierindex.errors import InputError
from hierindex.summarize.sentences import TOKEN
from hierindex.summarize.vectors import (
    Embeddings,
    InputEmbeddings,
    Lsa,
    SentenceVectors,
    TfIdf,
    as_vectors,
    tf_idf,
)

TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=12)


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory):
    folder = tmp_path_factory.mktemp("embedder")
    save_tiny_sentence_transformer(folder)
    return HuggingFaceEmbedding(str(folder), device="cpu")


@pytest.fixture(params=["tf-idf", "lsa", "input embeddings", "embeddings"])
def kind(request, hugging_face):
    made = {
        "tf-idf": TfIdf,
        "lsa": Lsa,
        "input embeddings": lambda: InputEmbeddings(hugging_face),
        "embeddings": lambda: Embeddings(HashingEmbedding()),
    }
    return made[request.param]()


def dense(S):
    return S if isinstance(S, np.ndarray) else S.toarray()


def test_rows_are_unit_vectors_and_depend_on_nothing_but_their_pool(kind):
    pools = [list(SENTENCES), [SENTENCES[2]], [], [SENTENCES[0], SENTENCES[0]], ["? !", "x"]]
    assert isinstance(kind, SentenceVectors)
    for pool, S in zip(pools, kind.of(pools), strict=True):
        S, (alone,) = dense(S), kind.of([pool])
        assert len(S) == len(pool)
        assert np.linalg.norm(S, axis=1) == pytest.approx(np.ones(len(pool)))
        assert pytest.approx(dense(alone @ alone.T)) == S @ S.T
    kind.keep({SENTENCES[0]})
    (S,) = kind.of([[SENTENCES[0]] * 2])
    assert dense(S @ S.T) == pytest.approx(np.ones((2, 2)))


@given(TEXTS)
def test_tf_idf_is_scikit_learn_s(texts):
    S = tf_idf(texts)
    assert S.shape[0] == len(texts)
    vectorizer = TfidfVectorizer(token_pattern=TOKEN, sublinear_tf=True)
    words = [bool(vectorizer.build_analyzer()(text)) for text in texts]
    if any(words):
        expected = vectorizer.fit_transform(texts)
        found = dense(S @ S.T)[np.ix_(words, words)]
        assert found == pytest.approx(dense(expected @ expected.T)[np.ix_(words, words)])


@pytest.mark.parametrize("rank", [1, 2, 100])
def test_lsa_has_no_more_directions_than_sentences(rank):
    (S,) = Lsa(rank).of([SENTENCES])
    assert S.shape == (5, min(rank, 5))
    assert np.linalg.norm(S, axis=1).max() == pytest.approx(1)


def test_lsa_of_few_sentences_is_tf_idf():
    (S,), X = Lsa().of([SENTENCES]), tf_idf(SENTENCES)
    assert pytest.approx(dense(X @ X.T)) == S @ S.T


def test_what_shares_no_direction_is_like_nothing():
    (S,) = Lsa(1).of([["storm lamp", "storm lamp harbour", "snow ice"]])
    assert np.linalg.norm(S, axis=1) == pytest.approx([1, 1, 0])


def test_lsa_repeats():
    assert np.array_equal(Lsa().of([SENTENCES])[0], Lsa().of([SENTENCES])[0])


def test_input_embeddings_know_no_order(hugging_face):
    (S,) = InputEmbeddings(hugging_face).of([["the storm broke", "broke the storm", "salt"]])
    assert S[0] == pytest.approx(S[1], abs=1e-5)
    assert not np.allclose(S[0], S[2])


def test_only_what_was_chosen_is_kept():
    model = HashingEmbedding()
    vectors = Embeddings(model)
    vectors.of([SENTENCES])
    vectors.keep(set(SENTENCES[:2]))
    vectors.of([SENTENCES[:3]])
    assert model.batches[1:] == [[SENTENCES[2]]]


def test_names_tell_settings_apart(hugging_face):
    kinds = [TfIdf(), Lsa(), Lsa(7), Lsa(seed=1), InputEmbeddings(hugging_face)]
    assert len({kind.name for kind in [*kinds, Embeddings(hugging_face)]}) == 6


def test_what_a_user_names():
    own = TfIdf()
    assert as_vectors(own) is own
    assert isinstance(as_vectors("tf-idf"), TfIdf)
    assert isinstance(as_vectors("lsa"), Lsa)
    assert as_vectors(HashingEmbedding()).name == "hashing"


@pytest.mark.parametrize("given", ["bm25", None, TfIdf, 3])
def test_anything_else_is_refused(given):
    with pytest.raises(InputError, match="vectors must be one of 'tf-idf', 'lsa'"):
        as_vectors(given)


def test_settings_are_checked():
    with pytest.raises(InputError, match="rank must be an integer of at least 1, got 0"):
        Lsa(0)
    with pytest.raises(InputError, match="HuggingFaceEmbedding, got HashingEmbedding"):
        InputEmbeddings(HashingEmbedding())
