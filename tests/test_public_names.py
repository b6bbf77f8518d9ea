"""The public names, that they exist, and that importing them costs nothing."""

import inspect
import subprocess
import sys

import pytest

import hierindex

CONTRACT = {
    "SemanticHierarchy",
    "RaptorHierarchy",
    "DocumentHierarchy",
    "HierarchyStore",
    "HierarchicalIndex",
    "HierarchyRetriever",
}


MOST_NAMES, MOST_METHODS = 32, 24
NAMES = [name for name in hierindex.__all__ if not inspect.ismodule(getattr(hierindex, name))]


def test_contract_is_kept() -> None:
    assert set(NAMES) >= CONTRACT
    assert set(hierindex.__all__) <= set(dir(hierindex))


def test_the_facade_is_small() -> None:
    assert len(NAMES) <= MOST_NAMES
    index = hierindex.HierarchicalIndex
    assert index.__bases__ == (object,)
    methods = [name for name, _ in inspect.getmembers(index, callable) if name[0] != "_"]
    assert len(methods) <= MOST_METHODS


def test_names_are_documented() -> None:
    assert all(inspect.getdoc(getattr(hierindex, name)) for name in hierindex.__all__)


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="Nothing"):
        hierindex.Nothing  # noqa: B018


def test_import_is_light() -> None:
    code = "import sys, hierindex, hierindex.cli.app; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    heavy = {"numpy", "torch", "transformers", "llama_index", "lancedb", "umap", "pydantic"}
    heavy.add("importlib.metadata")  # which reads the version
    assert not heavy & set(run.stdout.split())
