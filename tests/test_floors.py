"""A module imports only from floors below its own, and `core` nothing of LlamaIndex."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "hierindex"
FLOORS = [
    set("errors record progress settings loading".split()) | set("threads device unsafe".split()),
    {"core"},
    {"cache", "llm", "rules"},
    {"embed", "summarize", "store"},
    {"hierarchy", "read", "retrieve", "respond", "demo", "verify"},
    {"serve", "plot"},
    {"indexing", "index", "export", "scale"},
    {"evaluate"},
    {"cli"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
BESIDE = {  # rooms of one floor that may meet
    "settings": {"errors"},
    "loading": {"errors"},
    "respond": {"retrieve"},
    "index": {"indexing"},
    "export": {"index"},
    "scale": {"indexing"},
}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> Iterator[str]:
    return imported_by(ast.walk(ast.parse(path.read_text())))


def imported_by(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module or ""


def test_every_room_has_a_floor() -> None:
    assert {room_of(path) for path in FILES} == set(FLOOR)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    room = room_of(path)
    for module in imported(path):
        if not module.startswith("hierindex."):
            continue
        other = module.split(".")[1]
        below = FLOOR[other] < FLOOR[room]
        assert below or other == room or other in BESIDE.get(room, ()), f"{room} imports {module}"


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "core").glob("*.py")), ids=lambda path: path.name
)
def test_core_is_arrays(path: Path) -> None:
    roots = {module.partition(".")[0] for module in imported(path)}
    outside = {"llama_index", "torch", "transformers", "lancedb", "pathlib", "os", "time", "random"}
    assert not roots & outside


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_imports_wait(path: Path) -> None:
    heavy = set(
        "torch transformers umap lancedb sklearn summarizer pypdfium2 openai mammoth markdownify "
        "bs4 openpyxl pptx plotly ray lance".split()
    )
    module = ast.parse(path.read_text())
    at_top = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert not {name.partition(".")[0] for name in imported_by(at_top)} & heavy
