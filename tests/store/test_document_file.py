"""What a build has read waits in a file of the index."""

import gc
from contextlib import suppress
from pathlib import Path

from fakes import HashingEmbedding
from llama_index.core.schema import Document

from hierindex import HierarchicalIndex, SemanticHierarchy

N_FILES = 6


def test_it_is_not_in_memory_and_its_file_has_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr("hierindex.jobs.job.Job.part", 1)
    (folder := tmp_path / "texts").mkdir()
    uri, alive = tmp_path / "index", []

    def progress(stage, done, total):
        if stage == "split" and uri.is_dir():
            named = {path.name for path in uri.iterdir()}
            assert any(path.parent == uri and path.name not in named for path in open_files())
            documents = [each for each in gc.get_objects() if type(each) is Document]
            alive.append(sum("The bell" in each.text for each in documents))

    gc.collect()  # documents of other tests
    for edit in ("rang", "fell"):  # the second build finds a folder
        for i in range(N_FILES):
            (folder / f"{i}.txt").write_text(f"The bell {edit} at gate {i}.\n" * 9)
        hierarchy = SemanticHierarchy(HashingEmbedding(), progress=progress)
        HierarchicalIndex.build(folder, uri, hierarchy=hierarchy)
    assert 0 < max(alive) < N_FILES / 2


def open_files():
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the folder itself
            yield each.readlink()
