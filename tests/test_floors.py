"""A module imports only from floors below its own, and `core` nothing of LlamaIndex."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "hierindex"
FLOORS = [
    set("errors node text_node progress settings threads unsafe".split()),
    {"text"},
    {"core"},
    {"cache", "rules"},
    {"models"},
    {"summarize", "store"},
    {"tree", "read", "retrieve", "respond", "verify"},
    {"jobs", "demo"},
    {"index"},
    {"serve", "scale"},
    {"export", "evaluate"},
    {"cli"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
BESIDE = {  # rooms of one floor that may meet
    "node": {"text_node", "unsafe"},
    "text_node": {"errors", "node"},
    "settings": {"errors"},
    "respond": {"retrieve"},
}
DOORS = {  # modules that import LlamaIndex with themselves, by room
    "evaluate": "datasets runner",
    "export": "document_summary langchain",
    "jobs": "sources",
    "models": "adapters llm reasoning",
    "read": "documents split",
    "respond": "chat citation_check compare engine synthesizers",
    "retrieve": "retriever",
    "store": "vector_store",
    "summarize": "bert llm replies summarizers",
    "text_node": "text_node",
    "tree": "hierarchy",
}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if not path.name.startswith("__"))


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


def test_imports_go_down() -> None:
    assert not [f"{path} imports {module}" for path in FILES for module in upwards(path)]


def upwards(path: Path) -> Iterator[str]:
    room = room_of(path)
    for module in imported(path):
        if module.startswith("hierindex."):
            other = module.split(".")[1]
            below = FLOOR[other] < FLOOR[room]
            if not (below or other == room or other in BESIDE.get(room, ())):
                yield module


def test_core_is_arrays() -> None:
    outside = {"llama_index", "torch", "transformers", "lancedb", "pathlib", "os", "time", "random"}
    files = (PACKAGE / "core").glob("*.py")
    roots = {module.partition(".")[0] for path in files for module in imported(path)}
    assert roots
    assert not roots & outside


def test_llama_index_is_at_the_doors() -> None:
    found = {(room_of(path), path.stem) for path in FILES if "llama_index" in roots_at_top(path)}
    assert found == {(room, name) for room, names in DOORS.items() for name in names.split()}


def test_heavy_imports_wait() -> None:
    heavy = set(
        "torch transformers umap lancedb sklearn summarizer pypdfium2 openai "
        "openpyxl pptx plotly ray lance".split()
    )
    for path in FILES:
        assert not roots_at_top(path) & heavy, path


def roots_at_top(path: Path) -> set[str]:
    """The packages that are imported with a module, and not only for its annotations."""
    module = ast.parse(path.read_text())
    at_top = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return {name.partition(".")[0] for name in imported_by(at_top)}
