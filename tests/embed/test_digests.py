import hashlib
import json
import logging
import os

import pytest

from hierindex.embed.digests import FILE, FileDigests


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(path, folder):
    with FileDigests(folder) as digests:
        return digests.of(path)


@pytest.fixture
def path(tmp_path):
    (file := tmp_path / "weights").write_text("one")
    return file


@pytest.fixture
def hashed(monkeypatch):
    """How many files were read."""
    calls, real = [], hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *args: calls.append(1) or real(*args))
    return calls


def test_a_file_is_read_once(tmp_path, path, hashed):
    assert [digest_of(path, tmp_path / "cache") for _ in range(3)] == [sha256("one")] * 3
    assert len(hashed) == 1


def test_another_file_in_its_place_is_read_though_size_and_time_are_the_same(tmp_path, path):
    with FileDigests(tmp_path) as digests:
        assert digests.of(path) == sha256("one")
        before = path.stat()
        path.write_text("two")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert digests.of(path) == sha256("two")
    assert digest_of(path, tmp_path) == sha256("two")


def test_files_that_are_gone_are_forgotten(tmp_path, path):
    (gone := tmp_path / "gone").write_text("gone")
    digest_of(gone, tmp_path)
    gone.unlink()
    digest_of(path, tmp_path)
    assert list(json.loads((tmp_path / FILE).read_text())) == [str(path)]


@pytest.mark.parametrize("written", ["", "[]", "{", '{"a": 3}'])
def test_what_cannot_be_read_is_begun_anew(tmp_path, path, written):
    (tmp_path / FILE).write_text(written)
    assert digest_of(path, tmp_path) == sha256("one")


def test_a_folder_that_cannot_be_written_keeps_nothing_and_is_named_once(tmp_path, path, caplog):
    (other := tmp_path / "tokenizer").write_text("two")
    with caplog.at_level(logging.INFO), FileDigests(path / "below") as digests:
        assert [digests.of(path), digests.of(other)] == [sha256("one"), sha256("two")]
    (note,) = caplog.messages
    assert f"{path / 'below' / FILE} cannot be written" in note
