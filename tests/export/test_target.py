"""An export is there whole or not at all, and nothing is written over."""

from pathlib import Path

import pytest

from hierindex.errors import InputError
from hierindex.export import (
    persist_document_summary_index,
    plot_map,
    to_document_summary_index,
    to_html,
    to_json,
    to_langchain_documents,
    to_markdown,
    to_parquet,
    to_svg,
)

FILES = [to_json, to_parquet, to_svg, to_html]
FOLDERS = [persist_document_summary_index, to_markdown]


@pytest.mark.parametrize("export", [*FILES, *FOLDERS])
def test_nothing_is_written_of_nothing(nothing, tmp_path, export) -> None:
    with pytest.raises(InputError, match=r"holds no index|is empty"):
        export(nothing, tmp_path / "to")
    assert not (tmp_path / "to").exists()


@pytest.mark.parametrize("export", [to_langchain_documents, to_document_summary_index, plot_map])
def test_nothing_is_made_of_nothing(nothing, export) -> None:
    with pytest.raises(InputError, match=r"holds no index|is empty"):
        export(nothing)


@pytest.mark.parametrize("export", FILES)
def test_what_is_there_stays(soft, tmp_path, monkeypatch, export) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("mine")
    for target in (tmp_path, ".", tmp_path / "a.txt"):
        with pytest.raises(InputError, match="exists already; choose another path"):
            export(soft, target)
    with pytest.raises(InputError, match="b' cannot be written: "):
        export(soft, tmp_path / "a.txt" / "b")
    assert (tmp_path / "a.txt").read_text() == "mine"
    export(soft, tmp_path / "deep" / "new")
    assert [*(tmp_path / "deep").iterdir()] == [tmp_path / "deep" / "new"]


def test_a_folder_takes_the_place_of_an_empty_one(soft, tmp_path) -> None:
    (tmp_path / "to").mkdir()
    assert persist_document_summary_index(soft, tmp_path / "to")
    assert [*tmp_path.iterdir()] == [tmp_path / "to"]


@pytest.mark.parametrize(
    ("export", "last"),
    [
        (to_parquet, "pyarrow.parquet.ParquetWriter.write_table"),
        (persist_document_summary_index, "llama_index.core.StorageContext.persist"),
    ],
)
def test_nothing_is_left_of_a_failure(soft, tmp_path, monkeypatch, export, last) -> None:
    def interrupted(*_, persist_dir=None, **__):
        if persist_dir:
            Path(persist_dir).mkdir(exist_ok=True)
            Path(persist_dir, "b").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(last, interrupted)
    with pytest.raises(KeyboardInterrupt):
        export(soft, tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
