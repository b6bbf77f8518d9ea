import sqlite3
import zlib
from contextlib import closing, contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hierindex.cache.file import cache_file, forget, open_cache

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=9,
)


@contextmanager
def kept_readings(folder):
    with open_cache(str(folder), None) as cache:
        yield cache.readings


@given(st.dictionaries(st.text(), VALUES))
def test_what_is_kept_is_recalled(tmp_path_factory, values):
    folder = tmp_path_factory.mktemp("index")
    with kept_readings(folder) as cache:
        for key, value in values.items():
            cache.keep(key, value)
    with kept_readings(folder) as cache:
        assert {key: cache.recall(key) for key in values} == values
        assert cache.recall("never kept" * 99) is None


def test_what_a_build_did_not_use_is_forgotten(tmp_path):
    with kept_readings(tmp_path) as cache:
        for key in "abc":
            cache.keep(key, f"old {key}")
    with kept_readings(tmp_path) as cache:
        cache.recall("b")
        cache.keep("c", "new c")
        cache.forget_the_rest()
    with kept_readings(tmp_path) as cache:
        assert [cache.recall(key) for key in "abc"] == [None, "old b", "new c"]


def test_a_build_forgets_its_readings_though_nothing_is_gone(tmp_path):
    with open_cache(str(tmp_path), "m") as cache:
        cache.readings.keep("a", "text")
    with open_cache(str(tmp_path), "m") as cache:
        cache.forget_the_rest(something_is_gone=False)
        assert cache.readings.recall("a") is None


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"no zlib",
        zlib.compress(b"no JSON"),
        zlib.compress(b"\xff"),
        zlib.compress(b"[1]")[:-1],
        3,
    ],
)
def test_a_damaged_value_is_not_recalled(tmp_path, damaged):
    with kept_readings(tmp_path) as cache:
        cache.keep("a", ["text"])
        with closing(sqlite3.connect(cache_file(str(tmp_path)))) as other, other:
            other.execute("UPDATE readings SET value = ?", (damaged,))
        assert cache.recall("a") is None
        cache.keep("a", ["text"])
        assert cache.recall("a") == ["text"]


@pytest.mark.parametrize("by", ["deletion", "build"])
def test_no_byte_of_a_forgotten_text_remains(tmp_path, monkeypatch, by):
    monkeypatch.setattr("hierindex.cache.readings.LEVEL", 0)  # so that its bytes can be found
    secret = "The keeper slept all day. " * 400
    with kept_readings(tmp_path) as cache:
        cache.keep("a", secret)
        cache.keep("b", "staying")
    assert b"keeper" in cache_file(str(tmp_path)).read_bytes()
    if by == "deletion":
        forget(str(tmp_path), [], [])
    else:
        with kept_readings(tmp_path) as cache:
            cache.recall("b")
            cache.forget_the_rest()
    assert [file for file in tmp_path.iterdir() if b"keeper" in file.read_bytes()] == []


def test_texts_are_compressed(tmp_path):
    with kept_readings(tmp_path) as cache:
        cache.keep("a", "The keeper slept all day. " * 40_000)
    assert cache_file(str(tmp_path)).stat().st_size < 100_000
