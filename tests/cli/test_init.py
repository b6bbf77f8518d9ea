"""The file of settings that `hierindex init` writes."""

import re
from pathlib import Path

from hierindex.settings import MODE_OF, Settings, load_settings

FILE = Path("hierindex.toml")


def test_it_changes_nothing_until_a_line_is_uncommented(run, folder) -> None:
    status, out, err = run("init")
    assert (status, out) == (0, "")
    assert (
        err
        == "hierindex: note: Wrote hierindex.toml; remove the # before a setting to change it.\n"
    )
    assert load_settings() == Settings()
    text = FILE.read_text()
    assert max(map(len, text.splitlines())) <= 100
    FILE.write_text(text.replace("#seed = 0", "seed = 7"))
    assert load_settings() == Settings(seed=7)


def test_all_lines_are_settings(run, folder) -> None:
    run("init")
    text, n_settings = re.subn(r"(?m)^#(\w+ = )", r"\1", FILE.read_text())
    FILE.write_text(text)
    defaults, loaded = Settings(), load_settings()
    assert n_settings == len(Settings.model_fields)
    for name in Settings.model_fields:
        default, value = getattr(defaults, name), getattr(loaded, name)
        if name in MODE_OF:
            assert value == default  # not of the mode of the file
        elif default is None:
            assert value is not None
        else:
            assert value == default


def test_an_existing_file_is_left_as_it_is(run, folder) -> None:
    FILE.write_text("seed = 3\n")
    assert run("init") == (
        2,
        "",
        "hierindex: hierindex.toml exists already; edit it, or remove it first.\n",
    )
    assert FILE.read_text() == "seed = 3\n"


def test_a_folder_that_cannot_be_written_is_one_sentence(run, folder, monkeypatch) -> None:
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    (folder / "gone").rmdir()
    status, out, err = run("init")
    assert (status, out) == (2, "")
    assert re.fullmatch(r"hierindex: hierindex\.toml cannot be written: [^\n]+\.\n", err)
