"""Indexes to be exported without any model."""

from shutil import copytree

import pytest
from fakes import HashingEmbedding
from llama_index.core.settings import _Settings
from serve.conftest import soft_tree
from store.trees import columns_of

from hierindex import HierarchicalIndex, HierarchyStore


@pytest.fixture(autouse=True)
def no_default_models(monkeypatch):
    """LlamaIndex never looks for OpenAI's."""

    def refuse(settings):
        raise AssertionError

    monkeypatch.setattr(_Settings, "llm", property(refuse))
    monkeypatch.setattr(_Settings, "embed_model", property(refuse))


@pytest.fixture(scope="session")
def soft(tmp_path_factory):
    """An index that has a chunk of two parents and rows that pass up."""
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add(soft_tree())
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture
def index(soft, tmp_path):
    """A copy of it, which may be changed."""
    store = HierarchyStore(copytree(soft.store.uri, tmp_path / "index"))
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture(params=["none", "cleared"])
def nothing(request, index, tmp_path):
    """An index that is not there, and one of which all is deleted."""
    if request.param == "none":
        return HierarchicalIndex(HierarchyStore(tmp_path / "none"), HashingEmbedding())
    index.store.delete_nodes(columns_of(index.store, "id")["id"])
    return index
