import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from strategies import few

from hierindex.store.vectors import cache_file, forget, open_cache

X = np.eye(3, dtype=np.float32)


@few
@given(st.dictionaries(st.text(), st.lists(st.floats(width=32), min_size=2, max_size=2)))
def test_what_is_kept_is_recalled(tmp_path_factory, vectors):
    uri = str(tmp_path_factory.mktemp("index"))
    with open_cache(uri, "m") as cache:
        cache.keep(list(vectors), np.array(list(vectors.values()), np.float32).reshape(-1, 2))
    with open_cache(uri, "m") as cache:
        found = cache.recall([*vectors, "never kept"])
    assert found.keys() == vectors.keys()
    for text, vector in vectors.items():
        np.testing.assert_array_equal(found[text], np.array(vector, np.float32))


def test_another_model_has_other_vectors(tmp_path):
    with open_cache(str(tmp_path), "m") as cache:
        cache.keep(["a"], X[:1])
    with open_cache(str(tmp_path), "n") as cache:
        assert cache.recall(["a"]) == {}


def test_a_lone_surrogate_is_a_text_too(tmp_path):
    with open_cache(str(tmp_path), "m") as cache:
        cache.keep(["\ud800"], X[:1])
        assert cache.recall(["\ud800"]).keys() == {"\ud800"}


def test_what_a_build_did_not_use_is_forgotten(tmp_path):
    with open_cache(str(tmp_path), "m") as cache:
        cache.keep(["a", "b"], X[:2])
    with open_cache(str(tmp_path), "m") as cache:
        cache.recall(["b"])
        cache.keep(["c"], X[2:])
        cache.forget_the_rest()
    with open_cache(str(tmp_path), "m") as cache:
        assert cache.recall(["a", "b", "c"]).keys() == {"b", "c"}


def test_texts_are_forgotten_of_every_model_and_their_bytes_are_gone(tmp_path):
    vector = np.array([[np.pi, np.e]], np.float32)
    for model in "m", "n":
        with open_cache(str(tmp_path), model) as cache:
            cache.keep(["a"], vector)
    assert vector.tobytes() in cache_file(str(tmp_path)).read_bytes()
    forget(str(tmp_path), ["a"])
    assert vector.tobytes() not in cache_file(str(tmp_path)).read_bytes()


def test_there_need_be_no_cache_to_forget(tmp_path):
    forget(str(tmp_path / "none"), ["a"])
    assert not (tmp_path / "none").exists()


def test_a_damaged_cache_is_begun_anew(tmp_path):
    cache_file(str(tmp_path)).write_bytes(b"no database" * 1000)
    with open_cache(str(tmp_path), "m") as cache:
        cache.keep(["a"], X[:1])
        assert cache.recall(["a"]).keys() == {"a"}


def test_a_build_goes_on_without_a_cache_that_is_locked(tmp_path, monkeypatch, caplog):
    with open_cache(str(tmp_path), "m") as cache:
        cache.keep(["a"], X[:1])
    monkeypatch.setattr("hierindex.store.vectors.WAIT", 0.01)
    with closing(sqlite3.connect(cache_file(str(tmp_path)))) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        with open_cache(str(tmp_path), "m") as cache:
            assert cache is None
    assert "not kept between builds: database is locked" in caplog.text
    with open_cache(str(tmp_path), "m") as cache:
        assert cache.recall(["a"]).keys() == {"a"}


def test_a_build_goes_on_where_its_cache_breaks(tmp_path, caplog):
    with open_cache(str(tmp_path), "m") as cache:
        with closing(sqlite3.connect(cache_file(str(tmp_path)))) as other:
            other.execute("DROP TABLE vectors")
        cache.keep(["a"], X[:1])
        assert cache.recall(["a"]) == {}
        cache.forget_the_rest()
    assert caplog.text.count("no such table") == 3


def test_a_model_that_does_not_tell_what_it_is_has_no_cache(tmp_path):
    with open_cache(str(tmp_path), None) as cache:
        assert cache is None
    assert list(tmp_path.iterdir()) == []


def test_vectors_of_another_model_are_forgotten(tmp_path):
    for model in "m", "n":
        with open_cache(str(tmp_path), model) as cache:
            cache.keep(["a"], X[:1])
            cache.forget_the_rest()
    with open_cache(str(tmp_path), "m") as cache:
        assert cache.recall(["a"]) == {}


def test_two_builds_at_once_do_no_harm(tmp_path):
    def build(name):
        with open_cache(str(tmp_path), "m") as cache:
            for i in range(20):
                cache.keep([f"{name} {i}"], X[:1])
            return len(cache.recall([f"{name} {i}" for i in range(20)]))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(build, "ab")) == [20, 20]


def test_an_index_elsewhere_has_its_cache_here(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, other = cache_file("s3://bucket/one"), cache_file("s3://bucket/other")
    assert one != other
    assert one.is_relative_to(tmp_path)
