"""The recipes and the notebook, run as a reader runs them."""

import importlib.util
import inspect
from pathlib import Path

import nbclient
import nbformat
import pytest

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "pipelines").glob("*.py"))
TEXT = "\n\n".join(
    f"On day {i} the {who} mended the {what}. Nobody in the harbour had seen such a {what} before."
    for i in range(10)
    for who, what in (("keeper", "lamp"), ("baker", "oven"), ("sailor", "rudder"))
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "texts"
    source.mkdir()
    for name in ("north", "south", "west"):
        (source / f"{name}.txt").write_text(TEXT.replace("harbour", f"{name} harbour"))
    return source


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_answers(path, folder, tmp_path, capsys) -> None:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    recipe.main(str(folder), str(tmp_path / "index"), "What did the baker mend?")
    assert "oven" in capsys.readouterr().out


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_is_short_and_says_how_to_run_it(path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) < 60
    assert f"python pipelines/{path.name}" in inspect.cleandoc(source.split('"""')[1])


def test_notebook_runs() -> None:
    notebook = nbformat.read(ROOT / "notebooks" / "quickstart.ipynb", as_version=4)
    done = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [cell.outputs for cell in done.cells if cell.cell_type == "code"]
    assert any("level 2" in str(output) for output in outputs)
