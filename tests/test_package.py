"""What is released: the wheel that the source distribution builds, in a fresh environment."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest
from filelock import FileLock

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CACHES = shutil.ignore_patterns("__pycache__", "*.pyc", "node_modules")
RELEASED = ("hierindex", "tests", "pyproject.toml", "README.md", "LICENSE")
BUILD = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"
TYPED = """\
from hierindex import HierarchicalIndex, __version__

reveal_type(__version__)
reveal_type(HierarchicalIndex.open("index").ask("Why?").answer)
HierarchicalIndex.open(1)
"""
# What needs each extra.
USES = {
    "bert": "hierindex.summarize.BertExtractor('bert-base-uncased').extract([], None)",
    "langchain": "hierindex.export.to_langchain_documents(index)",
    "llm": "from hierindex.models.llm import load_llm; load_llm('m', 'http://127.0.0.1:9/v1')",
    "multilingual": "hierindex.load_embed_model('multilingual').get_text_embedding('x')",
    "office": "hierindex.read_documents('letter.msg')",
    "plot": "hierindex.export.plot_map(index)",
    "ray": "from hierindex.scale import RayEngine\n"
    "hierindex.HierarchicalIndex.build('docs', 'by-ray', engine=RayEngine())",
    "serve": "from hierindex.serve import serve; serve(index)",
}


def run(*command: object, **options: object) -> str:
    """What a command prints; an error has all that it printed."""
    done = subprocess.run(
        [*map(str, command)], check=False, capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    """The source distribution, built from a copy, as builds write into the sources."""
    copy, out = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("dist")
    for name in RELEASED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=CACHES)
        else:
            shutil.copy(ROOT / name, copy)
    run(sys.executable, "-c", BUILD, out, cwd=copy)
    (built,) = out.glob("*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(sdist) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", sdist.parent, sdist)
    (built,) = sdist.parent.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel, of_all_workers) -> Path:
    """Python of an environment that has the wheel, without extras, and what it needs."""
    folder = of_all_workers / "environment"
    python, constraints = folder / "bin" / "python", ROOT / "constraints.txt"
    with FileLock(folder.with_suffix(".lock")):
        if not (folder / "installed").exists():
            venv.create(folder, with_pip=True)
            run(python, "-m", "pip", "install", "-qq", "--no-compile", "-c", constraints, wheel)
            (folder / "installed").touch()
    return python


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Where and how the environment is used: without this checkout and its settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HIERINDEX", "PYTHON"))
    }
    folder = tmp_path_factory.mktemp("work")
    (folder / "docs").mkdir()
    (folder / "docs" / "bridge.txt").write_text(
        "The bridge was closed in April because the second pier had sunk.\n\n"
        "A ferry for forty passengers crosses every twenty minutes."
    )
    (folder / "letter.msg").write_bytes(bytes.fromhex("D0CF11E0A1B11AE1"))  # as Outlook begins
    return {"cwd": folder, "env": kept | {"HF_HUB_OFFLINE": "1", "LANCE_LOG": "error"}}


@pytest.fixture(scope="module")
def built(python, alone) -> dict:
    """The report of a build by the command line of the environment."""
    command = python.with_name("hierindex")
    return json.loads(run(command, "build", "docs", "--index", "index", "--json", **alone))


def test_the_wheel_has_the_package_and_nothing_else(wheel) -> None:
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "hierindex"
    ours = {str(path.relative_to(ROOT)) for path in package.rglob("*") if path.is_file()}
    assert names == {name for name in ours if "__pycache__" not in name}
    assert {"hierindex/py.typed", "hierindex/__init__.pyi"} < names
    assert any(name.startswith("hierindex/serve/explorer/page/") for name in names)


def test_the_sources_have_licence_and_readme(sdist) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "hierindex/__init__.py"} < names


def test_all_names_have_one_version(python, alone) -> None:
    version = PROJECT["version"]
    command = python.with_name("hierindex")
    assert run(command, "--version", **alone).splitlines()[0] == f"hierindex {version}"
    printed = run(python, "-c", "import hierindex; print(hierindex.__version__)", **alone)
    assert printed == f"{version}\n"


def test_types_are_seen(python, alone) -> None:
    file = alone["cwd"] / "typed.py"
    file.write_text(TYPED)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", python, "--config-file=", file],
        capture_output=True,
        text=True,
        check=False,
        **alone,
    )
    shown = checked.stdout.splitlines()
    assert (
        sum('Revealed type is "builtins.str"' in line for line in shown) == 2
        or sum('Revealed type is "str"' in line for line in shown) == 2
    ), checked.stdout
    (error,) = (line for line in shown if ": error:" in line)
    assert 'incompatible type "int"' in error


def builds_and_answers(python: Path, alone: dict, index: str) -> None:
    """Build and ask by the command line of an environment."""
    command = python.with_name("hierindex")
    report = json.loads(run(command, "build", "docs", "--index", index, "--json", **alone))
    assert report["added"] == 1
    question = "Why was the bridge closed?"
    answer = json.loads(run(command, "query", question, "--index", index, "--json", **alone))
    assert "the second pier had sunk" in answer["answer"]
    assert answer["citations"][0]["document"] == "bridge.txt"


def test_it_builds_and_answers(python, alone) -> None:
    builds_and_answers(python, alone, "first")


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_it_works_in_an_environment_of_uv(version, wheel, alone, tmp_path) -> None:
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uv is None:
        pytest.skip("uv is not installed: pip install uv")
    find = [uv, "python", "find", "--no-python-downloads", version]
    found = subprocess.run(find, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"there is no Python {version}: {found.stderr.strip()}")
    python = tmp_path / "environment" / "bin" / "python"
    run(uv, "venv", "--python", found.stdout.strip(), python.parents[1])
    run(uv, "pip", "install", "--python", python, "-c", ROOT / "constraints.txt", wheel)
    builds_and_answers(python, alone, version)
    shutil.rmtree(python.parents[1])  # gigabytes, which pytest would keep


def test_each_extra_is_tried() -> None:
    assert USES.keys() == PROJECT["optional-dependencies"].keys()


@pytest.mark.parametrize("extra", USES)
def test_an_extra_works_or_is_named(extra, python, alone, built) -> None:
    code = f"import hierindex\nindex = hierindex.HierarchicalIndex.open('index')\n{USES[extra]}"
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=False, **alone
    )
    shown = done.stdout + done.stderr
    assert done.returncode == 0 or f"hierindex[{extra}]" in shown, shown
