"""An index of each method, to be exported without any model."""

import pytest
from fakes import HashingEmbedding
from llama_index.core.settings import _Settings
from store.trees import HIERARCHIES, columns_of, tree

from hierindex import HierarchicalIndex, HierarchyStore


@pytest.fixture(autouse=True)
def no_default_models(monkeypatch):
    """LlamaIndex never looks for OpenAI's."""

    def refuse(settings):
        raise AssertionError

    monkeypatch.setattr(_Settings, "llm", property(refuse))
    monkeypatch.setattr(_Settings, "embed_model", property(refuse))


@pytest.fixture(scope="session", params=HIERARCHIES, ids=lambda kind: kind.method)
def any_index(request, tmp_path_factory):
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add(tree(request.param))
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture
def index(tmp_path):
    """A semantic one, which may be changed."""
    store = HierarchyStore(tmp_path / "index")
    store.add(tree())
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture(params=["none", "cleared"])
def nothing(request, index, tmp_path):
    """An index that is not there, and one of which all is deleted."""
    if request.param == "none":
        return HierarchicalIndex(HierarchyStore(tmp_path / "none"), HashingEmbedding())
    index.store.delete_nodes(columns_of(index.store, "id")["id"])
    return index
