import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import numpy as np
import pytest

from hierindex.cache.file import Cache, cache_file, forget, open_cache
from hierindex.cache.vectors import text_digest

X = np.eye(1, dtype=np.float32)


def keep_all(cache, name):
    cache.vectors.keep([name], X)
    cache.texts.keep(name, f"what a model wrote of {name}")


def known(cache, name):
    return name in cache.vectors.recall([name]), cache.texts.recall(name) is not None


def test_both_are_kept_in_one_file(tmp_path):
    with open_cache(str(tmp_path), "m") as cache:
        keep_all(cache, "a")
    with open_cache(str(tmp_path), "m") as cache:
        assert known(cache, "a") == (True, True)
    assert list(tmp_path.iterdir()) == [cache_file(str(tmp_path))]


def test_an_embedding_model_that_does_not_tell_what_it_is_has_no_vectors(tmp_path):
    with open_cache(str(tmp_path), None) as cache:
        assert cache.vectors is None
        cache.texts.keep("a", "text")
        cache.forget_the_rest(something_is_gone=True)
        assert cache.texts.recall("a") == "text"


def test_completions_do_not_know_their_documents_and_go_with_any(tmp_path):
    with open_cache(str(tmp_path), "m") as cache:
        for name in "a", "b":
            keep_all(cache, name)
    assert b"wrote of b" in cache_file(str(tmp_path)).read_bytes()
    forget(str(tmp_path), ["a"], {text_digest("what a model wrote of b")})
    assert b"wrote of" not in cache_file(str(tmp_path)).read_bytes()
    with open_cache(str(tmp_path), "m") as cache:
        assert known(cache, "a") == (False, False)
        assert known(cache, "b") == (True, False)


@pytest.mark.parametrize("staying", [[], ["one"], ["one", "\ud800"], ["none of them"]])
def test_summaries_stay_that_an_index_still_has(tmp_path, staying):
    summaries = {name: (name, f"details of {name}") for name in ("one", "two", "\ud800")}
    with open_cache(str(tmp_path), "m") as cache:
        cache.texts.keep_summaries(summaries)
        forget(str(tmp_path), [], {*map(text_digest, staying)})
        assert cache.texts.recall_summaries(summaries).keys() == {*staying} & summaries.keys()
    assert b"details of two" not in cache_file(str(tmp_path)).read_bytes()


def test_what_is_forgotten_is_in_no_log_of_another_build(tmp_path):
    with open_cache(str(tmp_path), "m") as cache:
        keep_all(cache, "a")
        assert any(b"wrote of a" in file.read_bytes() for file in tmp_path.iterdir())
        forget(str(tmp_path), ["a"], set())
        assert not any(b"wrote of a" in file.read_bytes() for file in tmp_path.iterdir())
        keep_all(cache, "b")
        assert known(cache, "b") == (True, True)


def test_there_need_be_no_cache_to_forget(tmp_path):
    forget(str(tmp_path / "none"), ["a"], set())
    assert not (tmp_path / "none").exists()


def test_a_cache_from_before_texts_were_kept_is_used(tmp_path):
    with open_cache(str(tmp_path), "m") as cache:
        keep_all(cache, "a")
    with closing(sqlite3.connect(cache_file(str(tmp_path)))) as old:
        old.execute("DROP TABLE texts")
    with open_cache(str(tmp_path), "m") as cache:
        assert known(cache, "a") == (True, False)


def test_a_damaged_cache_is_begun_anew(tmp_path):
    cache_file(str(tmp_path)).write_bytes(b"no database" * 1000)
    with open_cache(str(tmp_path), "m") as cache:
        keep_all(cache, "a")
        assert known(cache, "a") == (True, True)


@pytest.mark.parametrize("table", ["readings", "text_vectors", "texts"])
def test_a_build_goes_on_where_its_cache_breaks(tmp_path, caplog, table):
    with open_cache(str(tmp_path), "m") as cache:
        with closing(sqlite3.connect(cache_file(str(tmp_path)))) as other:
            other.execute(f"DROP TABLE {table}")
        keep_all(cache, "a")
        cache.readings.keep("a", "text")
        assert known(cache, "a") == (table != "text_vectors", table != "texts")
        assert cache.readings.recall("a") == (None if table == "readings" else "text")
        cache.forget_the_rest(something_is_gone=True)
    assert caplog.text.count("no such table") == 3


def test_a_build_goes_on_without_a_cache_that_is_locked(tmp_path, monkeypatch, caplog):
    with open_cache(str(tmp_path), "m") as cache:
        keep_all(cache, "a")
    monkeypatch.setattr("hierindex.cache.file.WAIT", 0.01)
    with closing(sqlite3.connect(cache_file(str(tmp_path)))) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        with open_cache(str(tmp_path), "m") as cache:
            assert cache == Cache(None, None)
            cache.forget_the_rest(something_is_gone=True)
    assert "not cached for later builds: database is locked" in caplog.text
    with open_cache(str(tmp_path), "m") as cache:
        assert known(cache, "a") == (True, True)


def test_a_build_goes_on_where_its_cache_is_only_to_be_read(tmp_path, monkeypatch, caplog):
    with open_cache(str(tmp_path), "m") as cache:
        keep_all(cache, "a")
    connect = sqlite3.connect

    def read_only(file, **kwargs):
        return connect(f"{file.as_uri()}?mode=ro", uri=True, **kwargs)

    monkeypatch.setattr("hierindex.cache.file.sqlite3.connect", read_only)
    with open_cache(str(tmp_path), "m") as cache:
        keep_all(cache, "b")
        assert known(cache, "a") == (True, True)
        assert known(cache, "b") == (False, False)
        cache.forget_the_rest(something_is_gone=True)
    assert caplog.text.count("attempt to write a readonly database") == 5


@pytest.mark.parametrize("in_the_way", ["a file", "a folder"])
def test_a_build_goes_on_where_there_can_be_no_cache(tmp_path, monkeypatch, caplog, in_the_way):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    uri = "s3://bucket/index"
    if in_the_way == "a file":
        (tmp_path / "cache").touch()
    else:
        cache_file(uri).mkdir(parents=True)
    with open_cache(uri, "m") as cache:
        assert cache == Cache(None, None)
    assert caplog.text.count("not cached for later builds") == 1


def test_builds_that_begin_at_once_all_have_the_cache(tmp_path, caplog):
    n_builds = 4
    barrier = Barrier(n_builds)

    def build(folder):
        barrier.wait()
        with open_cache(str(folder), "m") as cache:
            keep_all(cache, "a")
            return known(cache, "a")

    with ThreadPoolExecutor(n_builds) as pool:
        for i in range(10):
            folder = tmp_path / str(i)
            assert set(pool.map(build, [folder] * n_builds)) == {(True, True)}
    assert not caplog.text


def test_an_index_elsewhere_has_its_cache_here(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, other = cache_file("s3://bucket/one"), cache_file("s3://bucket/other")
    assert one != other
    assert one.is_relative_to(tmp_path)


STORED = re.compile(r"INSERT (?:OR REPLACE )?INTO (\w+)")


def test_only_completions_wait_for_the_disk(tmp_path):
    statements = list[str]()
    with open_cache(str(tmp_path), "model") as cache:
        with cache.database.transaction() as connection:
            connection.set_trace_callback(statements.append)
        cache.readings.keep("a", [1])
        cache.vectors.keep(["a"], np.ones((1, 2)))
        cache.texts.keep("a", "A costly completion.")
    waits, found = None, dict[str, bool]()
    for statement in statements:
        if statement.startswith("PRAGMA synchronous"):
            waits = statement.endswith("FULL")
        elif table := STORED.match(statement):
            found[table[1]] = waits
    assert found == {"readings": False, "text_vectors": False, "texts": True}
