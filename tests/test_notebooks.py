"""The notebooks: they run, they show what they say, and they can be read without running them."""

import re

import pytest
from run_notebooks import (
    FOLDER,
    NOTEBOOKS,
    STORED_ON,
    code_cells,
    executed,
    machine,
    printed,
    read,
    shown,
)

LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
PATH = re.compile(r"/(?:tmp|home|root|Users|var)/")
LARGEST = 150_000  # bytes of a notebook with its figures

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def check_shown(path, texts: list[str]) -> None:
    """Compare what cells show with what is stored, exactly where vectors are the same."""
    notebook = read(path)
    stored = [shown(cell) for cell in code_cells(notebook)]
    assert [*map(bool, texts)] == [*map(bool, stored)]
    if notebook.metadata[STORED_ON] != machine():
        pytest.skip("It ran; what it shows was stored on a machine with other vectors or texts.")
    assert texts == stored


@each
def test_notebook_shows_what_is_stored(path, monkeypatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    check_shown(path, printed(path))


@pytest.mark.slow
@each
def test_notebook_runs_in_a_kernel(path) -> None:
    cells = code_cells(executed(path))
    assert not [
        output for cell in cells for output in cell.outputs if output.get("name") == "stderr"
    ]
    check_shown(path, [shown(cell) for cell in cells])


@each
def test_notebook_begins_with_what_its_reader_can_do(path) -> None:
    title, sentence, *_ = read(path).cells[0].source.split("\n\n")
    assert title.startswith("# ")
    assert re.match(r"After (this notebook|these five minutes),? you can ", sentence)


@each
def test_notebook_was_run_from_top_to_bottom(path) -> None:
    cells = code_cells(read(path))
    assert [cell.execution_count for cell in cells] == [*range(1, len(cells) + 1)]


@each
def test_stored_notebook_is_small_and_has_no_path_of_a_machine(path) -> None:
    assert path.stat().st_size < LARGEST
    assert not [text for cell in code_cells(read(path)) if PATH.search(text := shown(cell))]


@each
def test_links_lead_to_files(path) -> None:
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    assert not [link for link in LINK.findall(text) if not (FOLDER / link).is_file()]
