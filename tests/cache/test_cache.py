"""The cache of an index: what it recalls, what breaks it, and what a sweep leaves."""

import signal
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hierindex.cache import Entry, Readings, Texts, Vectors, cache_file, open_cache, sweep
from hierindex.core.identity import hash_text

X = np.eye(3, dtype=np.float32)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=9,
)
unicode = st.text(st.characters())  # lone surrogates too
keys = st.text("0123456789abcdef")


def kept(folder, names):
    with open_cache(str(folder)) as cache:
        Texts(cache).keep_summaries({name: (name, f"details of {name}") for name in names})


def known(folder, names):
    with open_cache(str(folder)) as cache:
        return "".join(sorted(Texts(cache).recall_summaries(names)))


def swept(folder, *held):
    sweep(str(folder), {*map(hash_text, held)})


@given(st.dictionaries(keys, unicode), st.dictionaries(keys, st.tuples(unicode, unicode)))
@example({"0": "a\0b", "1": "\ud83d\ude00", "2": "\U0001f600"}, {})
def test_texts_are_recalled(tmp_path_factory, completions, summaries):
    folder = str(tmp_path_factory.mktemp("index"))
    of_summaries = {f"of summary {key}": summary for key, summary in summaries.items()}
    with open_cache(folder) as cache:
        for key, text in completions.items():
            Texts(cache).keep(key, text)
        Texts(cache).keep_summaries(of_summaries)
    with open_cache(folder) as cache:
        texts = Texts(cache)
        assert {key: texts.recall(key) for key in completions} == completions
        assert texts.recall_summaries([*of_summaries, "never kept"]) == of_summaries
        assert texts.recall("never kept") is None


@given(st.dictionaries(unicode, st.lists(st.floats(width=32), min_size=2, max_size=2)))
def test_vectors_are_recalled_bit_by_bit(tmp_path_factory, vectors):
    folder = str(tmp_path_factory.mktemp("index"))
    with open_cache(folder) as cache:
        Y = np.array([*vectors.values()], np.float32).reshape(-1, 2)
        Vectors(cache, "m").keep([*vectors], Y)
    with open_cache(folder) as cache:
        found = Vectors(cache, "m").recall([*vectors, "never kept"])
        assert Vectors(cache, "another").recall([*vectors]) == {}
    assert found.keys() == vectors.keys()
    for text, vector in vectors.items():
        np.testing.assert_array_equal(found[text], np.array(vector, np.float32))


@given(st.dictionaries(keys, VALUES))
def test_readings_are_recalled(tmp_path_factory, values):
    folder = str(tmp_path_factory.mktemp("index"))
    with open_cache(folder) as cache:
        for key, value in values.items():
            Readings(cache).keep(key, value)
    with open_cache(folder) as cache:
        assert {key: Readings(cache).recall(key) for key in values} == values
        assert Readings(cache).recall("never kept") is None


@pytest.mark.parametrize(
    "damaged", [b"", b"no zlib", zlib.compress(b"no JSON"), zlib.compress(b"[1]")[:-1]]
)
def test_a_damaged_reading_is_not_recalled(tmp_path, damaged):
    with open_cache(str(tmp_path)) as cache:
        cache.keep([Entry("a", damaged)])
        assert Readings(cache).recall("a") is None


def test_what_models_wrote_is_on_disk_at_once(tmp_path):
    with open_cache(str(tmp_path)) as cache:
        for keep, is_synced in (
            (lambda: Readings(cache).keep("reading", []), False),
            (lambda: Texts(cache).keep("completion", "a"), True),
            (lambda: Texts(cache).keep_summaries({"summary": ("a", "b")}), True),
        ):
            keep()
            ((synchronous,),) = cache._connection.execute("PRAGMA synchronous")
            assert synchronous == (2 if is_synced else 1)


class TestSweep:
    def test_what_is_of_nothing_held_is_gone(self, tmp_path):
        with open_cache(str(tmp_path)) as cache:
            texts, vectors = Texts(cache), Vectors(cache, "m", {"Title\n\na": "a"})
            readings = Readings(cache)
            texts.keep_summaries({name: (name, "details") for name in "ab"})
            texts.keep("completion", "a")
            vectors.keep(["Title\n\na", "b", "c"], X)
            for document in "ab":
                readings.keep(f"of {document}", [document])
                readings.note(document, f"of {document}")
            readings.keep("of none", ["lost"])
            swept(tmp_path, "a", "c")
            assert texts.recall_summaries("ab").keys() == {"a"}
            assert texts.recall("completion") is None
            assert vectors.recall(["Title\n\na", "b", "c"]).keys() == {"Title\n\na", "c"}
            found = ["of a", "of b", "of none"]
            assert [*map(readings.recall, found)] == [["a"], None, None]

    def test_a_reading_is_of_the_last_document_that_it_was_used_for(self, tmp_path):
        with open_cache(str(tmp_path)) as cache:
            readings = Readings(cache)
            readings.keep("a section", [1, 2])
            readings.note("as it was", "a section")
            readings.note("edited", "a section")
            swept(tmp_path, "edited")
            assert readings.recall("a section") == [1, 2]
            swept(tmp_path, "as it was")
            assert readings.recall("a section") is None

    def test_no_byte_remains(self, tmp_path, monkeypatch):
        monkeypatch.setattr("hierindex.cache.LEVEL", 0)  # so that its bytes can be found
        secret = "The keeper slept all day. " * 400
        with open_cache(str(tmp_path)) as cache:  # as another build, whose log has it
            Readings(cache).keep("a", [secret])
            Texts(cache).keep("b", secret)
            assert any(b"keeper" in file.read_bytes() for file in tmp_path.iterdir())
            swept(tmp_path)
            assert not any(b"keeper" in file.read_bytes() for file in tmp_path.iterdir())
            Texts(cache).keep("c", "goes on")
            assert Texts(cache).recall("c") == "goes on"


def test_a_sweep_tells_if_its_log_is_being_read(tmp_path, monkeypatch):
    monkeypatch.setattr("hierindex.cache.WAIT", 0.01)
    with open_cache(str(tmp_path)) as cache:
        Texts(cache).keep("a", "secret")
        with closing(sqlite3.connect(cache_file(str(tmp_path)))) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM cache").fetchone()
            with pytest.raises(sqlite3.OperationalError, match="another process reads it"):
                swept(tmp_path)


def test_a_damaged_cache_is_begun_anew(tmp_path):
    cache_file(str(tmp_path)).write_bytes(b"no database" * 1000)
    kept(tmp_path, "a")
    assert known(tmp_path, "a") == "a"


def test_a_build_goes_on_where_its_cache_breaks(tmp_path, caplog):
    with open_cache(str(tmp_path)) as cache:
        cache.recall(["a"])
        with closing(sqlite3.connect(cache_file(str(tmp_path)))) as other:
            other.execute("DROP TABLE cache")
        Texts(cache).keep("a", "text")
        assert Texts(cache).recall("a") is None
        cache.mark(["a"], 1)
    assert caplog.text.count("no such table") == 3


def test_a_build_goes_on_without_a_cache_that_is_locked(tmp_path, monkeypatch, caplog):
    kept(tmp_path, "a")
    monkeypatch.setattr("hierindex.cache.WAIT", 0.01)
    with closing(sqlite3.connect(cache_file(str(tmp_path)))) as holder:
        holder.execute("PRAGMA locking_mode = EXCLUSIVE")
        holder.execute("BEGIN EXCLUSIVE")
        kept(tmp_path, "b")
        assert known(tmp_path, "ab") == ""
    assert "not cached for later builds: database is locked" in caplog.text
    assert known(tmp_path, "ab") == "a"


def test_a_build_goes_on_without_a_write(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("hierindex.cache.WAIT", 0.01)
    with open_cache(str(tmp_path)) as cache:
        texts = Texts(cache)
        texts.keep("a", "text")
        with closing(sqlite3.connect(cache_file(str(tmp_path)))) as holder:
            holder.execute("BEGIN IMMEDIATE")
            texts.keep("b", "lost")
            assert texts.recall("a") == "text"
        texts.keep("c", "kept")
        assert [texts.recall(key) for key in "bc"] == [None, "kept"]
    assert caplog.text.count("database is locked") == 1


@pytest.mark.parametrize("in_the_way", ["a file", "a folder"])
def test_a_build_goes_on_where_there_can_be_no_cache(tmp_path, monkeypatch, caplog, in_the_way):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    uri = "s3://bucket/index"
    if in_the_way == "a file":
        (tmp_path / "cache").touch()
    else:
        cache_file(uri).mkdir(parents=True)
    kept(uri, "a")
    assert caplog.text.count("not cached for later builds") == 1
    assert known(uri, "a") == ""


def test_an_index_elsewhere_has_its_cache_here(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    one, other = cache_file("s3://bucket/one"), cache_file("s3://bucket/other")
    assert one != other
    assert one.is_relative_to(tmp_path)


KILLED = """
import os, signal, sys
from hierindex.cache import Texts, open_cache

with open_cache(sys.argv[1]) as cache:
    for i in range(3):
        Texts(cache).keep(str(i), "paid for")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_kept_outlives_a_kill(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    assert killed.returncode == -signal.SIGKILL
    with open_cache(str(tmp_path)) as cache:
        assert [Texts(cache).recall(str(i)) for i in range(3)] == ["paid for"] * 3


BUILD = """
import sys
from hierindex.cache import Texts, open_cache

_, folder, name = sys.argv
with open_cache(folder) as cache:
    print(flush=True)  # it has begun
    sys.stdin.read()
    for i in range(50):
        Texts(cache).recall("of both")
        Texts(cache).keep("of both", name)
        Texts(cache).keep(f"{name} {i}", "paid for")
"""


def test_two_processes_at_once_do_no_harm(tmp_path):
    kept(tmp_path, "a")
    pipes = dict.fromkeys(["stdin", "stdout", "stderr"], subprocess.PIPE)
    command = [sys.executable, "-c", BUILD, str(tmp_path)]
    builds = [subprocess.Popen([*command, name], **pipes) for name in "ab"]
    for build in builds:
        build.stdout.readline()
    for build in builds:
        build.stdin.close()
    for build in builds:
        with build:
            assert build.stderr.read() == b""
    with open_cache(str(tmp_path)) as cache:
        for name in "ab":
            assert {Texts(cache).recall(f"{name} {i}") for i in range(50)} == {"paid for"}
        assert Texts(cache).recall("of both") in ("a", "b")
