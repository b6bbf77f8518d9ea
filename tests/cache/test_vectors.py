from contextlib import contextmanager

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hierindex.cache.file import cache_file, forget, open_cache
from hierindex.cache.vectors import text_digest

X = np.eye(3, dtype=np.float32)


@contextmanager
def kept_vectors(folder, model="m"):
    with open_cache(str(folder), model) as cache:
        yield cache.vectors


@given(
    st.dictionaries(
        st.text() | st.just("\ud800"), st.lists(st.floats(width=32), min_size=2, max_size=2)
    )
)
def test_what_is_kept_is_recalled(tmp_path_factory, vectors):
    folder = tmp_path_factory.mktemp("index")
    with kept_vectors(folder) as cache:
        cache.keep(list(vectors), np.array(list(vectors.values()), np.float32).reshape(-1, 2))
    with kept_vectors(folder) as cache:
        found = cache.recall([*vectors, "never kept"])
    assert found.keys() == vectors.keys()
    for text, vector in vectors.items():
        np.testing.assert_array_equal(found[text], np.array(vector, np.float32))


def test_another_model_has_other_vectors(tmp_path):
    with kept_vectors(tmp_path) as cache:
        cache.keep(["a"], X[:1])
    with kept_vectors(tmp_path, "n") as cache:
        assert cache.recall(["a"]) == {}


def test_what_a_build_did_not_use_is_forgotten(tmp_path):
    with kept_vectors(tmp_path) as cache:
        cache.keep(["a", "b"], X[:2])
    with kept_vectors(tmp_path) as cache:
        cache.recall(["b"])
        cache.keep(["c"], X[2:])
        cache.forget_the_rest()
    with kept_vectors(tmp_path) as cache:
        assert cache.recall(["a", "b", "c"]).keys() == {"b", "c"}


def test_only_what_unfinished_builds_stored_is_forgotten(tmp_path):
    with kept_vectors(tmp_path) as cache:
        cache.keep(["finished", "gone"], X[:2])
        cache.forget([])
    with kept_vectors(tmp_path) as cache:
        cache.keep(["unfinished", "resumed"], X[:2])
    with kept_vectors(tmp_path) as cache:
        cache.recall(["resumed"])
        cache.forget(["gone"])
        assert cache.recall(["finished", "gone", "unfinished", "resumed"]).keys() == {
            "finished",
            "resumed",
        }


def test_what_an_unfinished_build_stores_after_a_deletion_is_forgotten(tmp_path):
    with kept_vectors(tmp_path) as cache:
        cache.keep(["a", "b"], X[:2])
        cache.forget([])
    forget(str(tmp_path), ["a", "b"], [])
    with kept_vectors(tmp_path) as cache:
        cache.keep(["unfinished"], X[:1])
    with kept_vectors(tmp_path) as cache:
        cache.forget([])
        assert cache.recall(["unfinished"]) == {}


def test_what_a_finished_build_used_stays(tmp_path):
    with kept_vectors(tmp_path) as cache:
        cache.keep(["a"], X[:1])
        cache.forget_the_rest()
    with kept_vectors(tmp_path) as cache:
        cache.forget([])
        assert cache.recall(["a"]).keys() == {"a"}


def test_what_another_process_stores_again_is_still_used(tmp_path):
    with kept_vectors(tmp_path) as one, kept_vectors(tmp_path) as other:
        for cache in one, other:
            assert cache.recall(["a"]) == {}
        for cache in one, other:
            cache.keep(["a"], X[:1])
        one.forget_the_rest()
        assert one.recall(["a"]).keys() == {"a"}


def test_known_vectors_that_are_used_stay(tmp_path):
    for model in "n", "m":
        with kept_vectors(tmp_path, model) as cache:
            cache.keep(["a", "b"], X[:2])
    with kept_vectors(tmp_path) as cache:
        cache.use([text_digest("a"), text_digest("never kept")])
        cache.forget_the_rest()
        assert cache.recall(["a", "b"]).keys() == {"a"}
    with kept_vectors(tmp_path, "n") as cache:
        assert cache.recall(["a", "b"]) == {}


def test_texts_are_forgotten_of_every_model_and_their_bytes_are_gone(tmp_path):
    vector = np.array([[np.pi, np.e]], np.float32)
    for model in "m", "n":
        with kept_vectors(tmp_path, model) as cache:
            cache.keep(["a"], vector)
    assert vector.tobytes() in cache_file(str(tmp_path)).read_bytes()
    forget(str(tmp_path), ["a"], [])
    assert vector.tobytes() not in cache_file(str(tmp_path)).read_bytes()


def test_what_another_build_wrote_since_the_last_question_is_no_obstacle(tmp_path, caplog):
    with kept_vectors(tmp_path) as one, kept_vectors(tmp_path) as other:
        one.recall(["a"])
        other.keep(["b"], X[:1])
        one.keep(["a"], X[1:2])
        assert one.recall(["a", "b"]).keys() == {"a", "b"}
    assert not caplog.text
