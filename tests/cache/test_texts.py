import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hierindex.cache.file import cache_file, forget, open_cache

unicode = st.text(st.characters())  # lone surrogates too


@contextmanager
def kept_texts(folder):
    with open_cache(str(folder), None) as cache:
        yield cache.texts


@given(st.dictionaries(unicode, unicode))
@example({text: text for text in ("", "\0", "a\0b", "\ud800", "\ud83d\ude00", "\U0001f600")})
def test_what_is_kept_is_recalled(tmp_path_factory, written):
    folder = tmp_path_factory.mktemp("index")
    with kept_texts(folder) as cache:
        for key, text in written.items():
            cache.keep(key, text)
    with kept_texts(folder) as cache:
        assert {key: cache.recall(key) for key in written} == written


@given(st.dictionaries(unicode, st.tuples(unicode, unicode)))
def test_summaries_are_recalled_together(tmp_path_factory, written):
    folder = tmp_path_factory.mktemp("index")
    with kept_texts(folder) as cache:
        cache.keep_summaries(written)
    with kept_texts(folder) as cache:
        assert cache.recall_summaries([*written, "never kept"]) == written


def test_a_completion_is_no_summary(tmp_path):
    with kept_texts(tmp_path) as cache:
        cache.keep("a", "text")
        assert cache.recall_summaries("a") == {}


def test_a_summary_that_was_not_used_is_forgotten(tmp_path):
    with kept_texts(tmp_path) as cache:
        cache.keep_summaries({key: (key, "details") for key in "abc"})
    with kept_texts(tmp_path) as cache:
        cache.recall_summaries("ab")
        cache.keep_summaries({"d": ("d", "details")})
        cache.forget_the_rest()
        assert cache.recall_summaries("abcd").keys() == {*"abd"}


def test_summaries_are_forgotten_by_their_texts(tmp_path):
    texts = ["b", "a" * 63, "a" * 64, "a" * 65, "a" * 64 + "b", "é" * 40, "é" * 41, "\ud800"]
    for gone in (texts[2:5:2], ["b", "é" * 40], ["\ud800", "never kept"], []):
        with kept_texts(tmp_path) as cache:
            cache.keep_summaries({text: (text, "details") for text in texts})
            cache.keep("completion", texts[3])
        with kept_texts(tmp_path) as cache:
            cache.keep("used", texts[4])
            cache.forget(gone)
            assert cache.recall_summaries(texts).keys() == {*texts} - {*gone}
            assert (cache.recall("completion"), cache.recall("used")) == (None, texts[4])


@pytest.mark.parametrize("forget_others", [False, True])
def test_documents_are_those_of_builds_since_the_last_clean_up(tmp_path, forget_others):
    def held(cache):
        return [names for names in ("", "b", "bc", "abc") if cache.holds_only(names)]

    with kept_texts(tmp_path) as cache:
        assert held(cache) == ["", "b", "bc", "abc"]
        cache.begin("ab")  # and is killed
    for before in (["abc"], ["bc", "abc"]):
        with kept_texts(tmp_path) as cache:
            assert held(cache) == before
            cache.begin("bc")
            if forget_others:
                cache.forget_the_rest(something_is_gone=False)
            else:
                cache.forget([])
            assert held(cache) == ["bc", "abc"]
    with kept_texts(tmp_path) as cache, kept_texts(tmp_path) as beside:
        cache.begin("b")
        beside.begin("ab")
        cache.forget([])
        assert held(cache) == ["abc"]


KILLED = """
import os, signal, sys
from hierindex.cache.file import open_cache

with open_cache(sys.argv[1], None) as cache:
    for i in range(3):
        cache.texts.keep(str(i), "paid for")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_is_kept_outlives_a_kill(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    assert killed.returncode == -signal.SIGKILL
    with kept_texts(tmp_path) as cache:
        assert [cache.recall(str(i)) for i in range(3)] == ["paid for"] * 3


def test_what_a_build_did_not_use_is_forgotten(tmp_path):
    with kept_texts(tmp_path) as cache:
        for key in "abc":
            cache.keep(key, f"old {key}")
    with kept_texts(tmp_path) as cache:
        cache.recall("b")
        cache.keep("c", "new c")
        cache.keep("d", "new d")
        cache.forget_the_rest()
    with kept_texts(tmp_path) as cache:
        assert [cache.recall(key) for key in "abcd"] == [None, "old b", "new c", "new d"]


def test_what_another_build_has_just_paid_for_stays(tmp_path):
    with kept_texts(tmp_path) as one:
        one.keep("before", "gone")
    with kept_texts(tmp_path) as one, kept_texts(tmp_path) as other:
        other.keep("of the other", "stays")
        one.keep("of the one", "stays")
        one.forget_the_rest()
        other.forget_the_rest()
        assert one.recall("before") is None
        assert one.recall("of the other") == other.recall("of the one") == "stays"


def test_ids_are_not_used_again(tmp_path):
    """Else what the other build keeps would pass for what was there when this one began."""
    with kept_texts(tmp_path) as one:
        one.keep("before", "gone")
    with kept_texts(tmp_path) as one, kept_texts(tmp_path) as other:
        forget(str(tmp_path), [], [])
        other.keep("of the other", "stays")
        one.forget_the_rest()
        assert other.recall("of the other") == "stays"


def test_many_threads_may_keep_and_recall_at_once(tmp_path):
    with kept_texts(tmp_path) as cache:

        def write(i):
            cache.keep(str(i), f"text {i}")
            return cache.recall(str(i))

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(write, range(200))) == [f"text {i}" for i in range(200)]


BUILD = """
import sys
from hierindex.cache.file import open_cache

_, folder, name = sys.argv
with open_cache(folder, "m") as cache:
    print(flush=True)  # it has begun
    sys.stdin.read()
    for i in range(50):
        cache.texts.recall("of both")
        cache.texts.keep("of both", name)
        cache.texts.keep(f"{name} {i}", "paid for")
    cache.forget_the_rest(something_is_gone=True)
"""


def test_two_processes_at_once_do_no_harm(tmp_path):
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
    with kept_texts(tmp_path) as cache:
        for name in "ab":
            assert {cache.recall(f"{name} {i}") for i in range(50)} == {"paid for"}
        assert cache.recall("of both") in ("a", "b")


def test_a_build_goes_on_without_a_write(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("hierindex.cache.file.WAIT", 0.01)
    with kept_texts(tmp_path) as cache:
        cache.keep("a", "text")
        with closing(sqlite3.connect(cache_file(str(tmp_path)))) as holder:
            holder.execute("BEGIN IMMEDIATE")
            cache.keep("b", "lost")
            assert cache.recall("a") == "text"
        cache.keep("c", "kept")
        assert [cache.recall(key) for key in "bc"] == [None, "kept"]
    assert caplog.text.count("database is locked") == 1


def test_a_thread_that_outlives_its_build_does_no_harm(tmp_path, caplog):
    with kept_texts(tmp_path) as cache:
        pass
    cache.keep("a", "too late")
    assert cache.recall("a") is None
    assert caplog.text.count("closed database") == 2
