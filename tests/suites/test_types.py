"""mypy and pyright, both strict, read a user's program, which runs, and a user's mistakes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from suites import user_code

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
FILES = [Path(__file__).with_name(name) for name in ("user_code.py", "misuse.py")]
STRICT = {
    "typeCheckingMode": "strict",
    "enableTypeIgnoreComments": True,
    "reportUnnecessaryTypeIgnoreComment": "error",
    "extraPaths": [str(ROOT)],
    "include": [*map(str, FILES)],
}


def checked(program: str, *args: object) -> None:
    """Have types checked in this environment, as one that has hierindex installed."""
    paths = {"PYTHONPATH": str(ROOT), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [BIN / program, *map(str, args)],
        cwd=ROOT,
        env=os.environ | paths,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


def test_mypy_finds_only_the_mistakes() -> None:
    checked("mypy", *FILES)


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_pyright_finds_only_the_mistakes(tmp_path, version) -> None:
    settings = tmp_path / "pyrightconfig.json"
    settings.write_text(json.dumps(STRICT | {"pythonVersion": version}))
    checked("basedpyright", "-p", settings)


def test_types_of_all_public_names_are_complete() -> None:
    checked("basedpyright", "--ignoreexternal", "--verifytypes", "hierindex")


def test_the_program_runs(tmp_path) -> None:
    town = ROOT / "tests" / "docs" / "town"
    index = user_code.build(town, str(tmp_path / "index"))
    question = "Why was the bridge closed?"
    assert user_code.retrieve(index, question)
    assert user_code.ask(index, question).startswith("docs/inspection.md ")
    assert "bridge" in user_code.ask_langchain(index, question)
    assert user_code.send(index, tmp_path) is None
    assert user_code.served(index)
    assert user_code.run_pipeline(str(town), str(tmp_path / "other")).info()["levels"]
