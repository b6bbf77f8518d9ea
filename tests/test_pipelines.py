"""The recipes, run as a reader runs them."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest
from loopback import LoopbackServer, names_words

from hierindex.respond.compare import ANSWERING

ROOT = Path(__file__).parents[1]
RECIPES = sorted((ROOT / "pipelines").glob("*.py"))
WITH_MODEL = [path for path in RECIPES if "[MODEL BASE_URL]" in path.read_text()]
QUESTION = "What did the baker mend?"
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


def run(name: str, *arguments: str) -> None:
    """The recipe's main, as from the command line."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "pipelines" / f"{name}.py")
    recipe = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recipe)
    recipe.main(*arguments)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_answers(path, folder, tmp_path, capsys) -> None:
    run(path.stem, str(folder), str(tmp_path / "index"), QUESTION)
    assert "oven" in capsys.readouterr().out


@pytest.fixture
def asked(folder, tmp_path):
    """Runs a recipe with a model; its requests, those of a second run apart."""

    def ask(name: str) -> list[list[str]]:
        runs = []
        for _ in range(2):
            with LoopbackServer(reply=names_words) as server:
                run(name, str(folder), str(tmp_path / "index"), QUESTION, "m", server.base_url)
            runs.append([request.prompt for request in server.requests])
        return runs

    return ask


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_MODEL, ids=lambda path: path.stem)
def test_recipe_asks_the_model_that_is_named(path, asked, capsys) -> None:
    first, second = asked(path.stem)
    assert first
    assert "The passages tell of " in capsys.readouterr().out
    # A summary is paid for once.
    assert not any("which questions it answers:" in prompt for prompt in second)


def test_response_modes_shows_what_each_costs(asked, capsys) -> None:
    prompts, _ = asked("response_modes")
    shown = capsys.readouterr().out.split("All modes read these chunks:")[1]
    rows = {row[0]: row[1:] for row in map(str.split, shown.splitlines()) if len(row) == 4}
    calls = {mode: int(rows[mode][0]) for mode in ANSWERING}
    assert sum(calls.values()) == len(prompts)
    assert (calls["extractive"], calls["tree_summarize"], calls["refine"]) == (0, 1, 5)
    assert all(int(rows[mode][1].replace(",", "")) > 0 for mode in ANSWERING if calls[mode])
    assert shown.count(".txt  ") == 5


def test_document_summary_searches_summaries_and_answers_from_chunks(asked, folder) -> None:
    first, second = asked("document_summary")
    *summaries, answer = first
    assert len(summaries) == 3
    assert all("which questions it answers:" in prompt for prompt in summaries)
    assert QUESTION in answer
    assert any(all(said in answer for said in sentences(path)) for path in folder.iterdir())
    assert second == [answer]


def sentences(path: Path) -> list[str]:
    return re.split(r"(?<=\.)\s+", path.read_text())


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_is_short_says_how_to_run_it_and_needs_public_names_alone(path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) < 60
    assert f"python pipelines/{path.name}" in inspect.cleandoc(source.split('"""')[1])
    assert not re.findall(r"(?m)^ *(?:from|import) (hierindex\.(?!rules\b|evaluate\b)\S+)", source)
