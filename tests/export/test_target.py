"""What is written is there whole or not at all, and nothing is written over."""

import pytest

from hierindex.errors import InputError
from hierindex.export.files import new


def test_a_file_appears_when_it_is_whole(tmp_path) -> None:
    target = tmp_path / "deep" / "a.txt"
    with new(target) as partial:
        partial.write_text("whole")
        assert not target.exists()
    assert target.read_text() == "whole"
    assert list(target.parent.iterdir()) == [target]


def test_a_folder_takes_the_place_of_an_empty_one(tmp_path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    with new(target, folder=True) as partial:
        partial.mkdir()
        (partial / "a.txt").write_text("whole")
    assert (target / "a.txt").read_text() == "whole"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("folder", [False, True])
def test_nothing_is_left_of_a_failure(tmp_path, folder) -> None:
    with pytest.raises(KeyboardInterrupt), new(tmp_path / "a") as partial:  # noqa: PT012
        if folder:
            partial.mkdir()
            partial = partial / "b"
        partial.write_text("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_stays(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("mine")
    for target in (tmp_path, ".", tmp_path / "a.txt"):
        with pytest.raises(InputError, match="exists already; choose another path"), new(target):
            pytest.fail("nothing is to be made")
    assert (tmp_path / "a.txt").read_text() == "mine"


def test_what_cannot_be_written_is_one_sentence(tmp_path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    target = tmp_path / "a.txt" / "b"
    with pytest.raises(InputError, match="b' cannot be written: "), new(target) as partial:
        partial.write_text("")
