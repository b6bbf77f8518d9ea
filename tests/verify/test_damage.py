"""Damaged and missing files are named, and what can be repaired is."""

from pathlib import Path
from shutil import copytree

import pytest
from llama_index.core.schema import MetadataMode
from records import replace_all
from store.trees import tree

from hierindex import HierarchicalIndex, HierarchyStore, Verification
from hierindex.cache import Texts, cache_file, open_cache
from hierindex.store import search
from hierindex.store.connection import damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """An index with a cache, deleted rows, and every kind of index."""
    folder = tmp_path_factory.mktemp("whole") / "index"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "SCALAR_ROWS", 5)
        patch.setattr(search, "VECTOR_ROWS", 15)
        replace_all(HierarchyStore(folder), tree(), {"usage": {}})
    with open_cache(str(folder)) as cache:
        Texts(cache).keep("key", "text " * 10_000)
    return folder


@pytest.fixture
def index(whole, tmp_path) -> Path:
    return copytree(whole, tmp_path / "index")


def verified(folder: Path, **options) -> Verification:
    return HierarchicalIndex(HierarchyStore(folder)).verify(**options)


def harm(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(data[: len(data) // 2] + (b"?" * 500 if how == "overwritten" else b""))


HOW = pytest.mark.parametrize("how", ["missing", "truncated", "overwritten"])


def where(outcome: Verification) -> set[str]:
    """What the problems name."""
    return {problem.where for check in outcome.checks for problem in check.problems}


@HOW
def test_a_file_of_rows(index, how) -> None:
    (path,) = (index / "nodes.lance" / "data").iterdir()
    harm(path, how)
    outcome = verified(index, repair=True)
    assert outcome.failed == ["files"]
    assert (f"nodes.lance/data/{path.name}" in where(outcome)) == (how == "missing")
    assert "hierindex build" in outcome.left[0]


def test_a_cache_beside_damaged_rows_is_repaired(index) -> None:
    (path,) = (index / "nodes.lance" / "data").iterdir()
    harm(path, "missing")
    harm(cache_file(str(index)), "overwritten")
    (index / "nodes.lance" / "_indices").rename(index / "elsewhere")
    assert verified(index).failed == ["cache", "indices", "files"]
    outcome = verified(index, repair=True)
    assert (outcome.failed, len(outcome.repaired)) == (["indices", "files"], 1)


@HOW
def test_the_newest_generation(index, how) -> None:
    """Also if the index was open before."""
    opened = HierarchicalIndex(HierarchyStore(index))
    opened.store.add(opened.store.get_nodes()[:1])
    assert opened.verify().ok
    harm(min((index / "nodes.lance" / "_versions").glob("*.manifest")), how)
    assert opened.verify().failed == ["files"]


def test_a_generation_that_was_never_published(index) -> None:
    """A killed writer leaves one; the next removes it."""
    table = HierarchyStore(index).client.open_table("nodes")
    table.delete("true")
    assert verified(index).ok


@pytest.mark.parametrize("how", ["missing", "truncated"])
def test_each_file_of_an_index(index, tmp_path, how) -> None:
    nodes = {node.node_id: node.get_content(MetadataMode.NONE) for node in tree()}
    files = (index / "nodes.lance" / "_indices").rglob("*.*")
    paths = {path.name: path for path in files}.values()  # one of each name
    assert len(paths) >= 4
    for path in paths:
        content = path.read_bytes()
        harm(path, how)
        outcome = verified(index)
        assert outcome.failed == ["indices"], path
        path.write_bytes(content)
    harm(path, how)
    outcome = verified(index, repair=True)
    assert outcome.ok
    assert len(outcome.repaired) == 1
    found = HierarchyStore(index).get_nodes([*nodes])
    assert {node.node_id: node.get_content(MetadataMode.NONE) for node in found} == nodes


@pytest.mark.parametrize("how", ["truncated", "overwritten"])
def test_the_cache(index, how) -> None:
    path = cache_file(str(index))
    harm(path, how)
    outcome = verified(index)
    assert outcome.failed == ["cache"]
    assert "--repair" in outcome.left[0]
    outcome = verified(index, repair=True)
    assert (outcome.ok, path.exists()) == (True, False)
    assert "cache" in outcome.repaired[0]


MISSING = "lance error: Not found: a b/nodes.lance/data/1.lance, /src/x.rs:1"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError(MISSING), "the file nodes.lance/data/1.lance is missing"),
        (RuntimeError("lance error: LanceError(IO): small, /rustc/2d/x.rs:1"), "(IO): small'"),
        (ValueError("file does not appear to be a Lance file"), "damaged"),
        (RuntimeError("cannot schedule new futures"), None),
        (KeyError("lance error"), None),
    ],
)
def test_an_error_of_lancedb_in_one_sentence(error, said) -> None:
    found = damage(error)
    assert (found is None) == (said is None)
    assert said is None or said in str(found)
    assert "/r" not in str(found)
