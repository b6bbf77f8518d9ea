"""The notebooks: they run, and they show what they say."""

import re
from pydoc_data.topics import topics

import pytest
from fakes import HashingEmbedding
from run_notebooks import NOTEBOOKS, STORED_ON, code_cells, executed, machine, printed, read, shown

PATH = re.compile(r"/(?:tmp|home|root|Users|var)/")
LARGEST = 150_000  # bytes of a notebook with its figures


def each(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


def check_shown(path, texts: list[str]) -> None:
    """Compare what cells show with what is stored, exactly where vectors are the same."""
    notebook = read(path)
    stored = [shown(cell) for cell in code_cells(notebook)]
    assert [*map(bool, texts)] == [*map(bool, stored)]
    if notebook.metadata[STORED_ON] != machine():
        pytest.skip("It ran; what it shows was stored on a machine with other vectors or texts.")
    assert texts == stored


@each(NOTEBOOKS)
def test_a_notebook_runs_with_a_quick_model(path, monkeypatch) -> None:
    """And with the beginnings of the texts that it reads, unless it asks about their ends."""

    def quick(folder, precision, model_name):
        return HashingEmbedding(model_name=model_name)

    if path.stem != "evaluate":
        beginnings = {name: text[:9_000] for name, text in topics.items()}
        monkeypatch.setattr("pydoc_data.topics.topics", beginnings)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr("hierindex.models.load.OpenVinoEncoder", quick)
    stored = [shown(cell) for cell in code_cells(read(path))]
    assert [*map(bool, printed(path))] == [*map(bool, stored)]


@pytest.mark.slow
@each(NOTEBOOKS)
def test_notebook_shows_what_is_stored_in_a_kernel(path) -> None:
    cells = code_cells(executed(path))
    assert not [
        output for cell in cells for output in cell.outputs if output.get("name") == "stderr"
    ]
    check_shown(path, [shown(cell) for cell in cells])


@each(NOTEBOOKS)
def test_stored_notebook_is_small_and_has_no_path_of_a_machine(path) -> None:
    cells = code_cells(read(path))
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]
    assert path.stat().st_size < LARGEST
    assert not [text for cell in cells if PATH.search(text := shown(cell))]
