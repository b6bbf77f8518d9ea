import pytest
from fakes import HashingEmbedding
from llama_index.core.settings import _Settings
from store.trees import tree

from hierindex import HierarchicalIndex, HierarchyRetriever, HierarchyStore


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add(tree())
    return store


@pytest.fixture(scope="module")
def embed_model():
    return HashingEmbedding()


@pytest.fixture(scope="module")
def retriever(store, embed_model):
    """Finds all chunks."""
    return HierarchyRetriever(store, embed_model, level=0, top_k=100, token_budget=None)


@pytest.fixture(scope="module")
def index(store, embed_model):
    return HierarchicalIndex(store, embed_model)


@pytest.fixture(autouse=True)
def no_default_llm(monkeypatch):
    """`Settings.llm` is never resolved."""

    def refuse(settings):
        raise AssertionError

    monkeypatch.setattr(_Settings, "llm", property(refuse))


@pytest.fixture(autouse=True)
def no_model_is_known(monkeypatch, no_wait):
    """What one test learnt of the thoughts of a model is of no account for the next."""
    monkeypatch.setattr("hierindex.models.llm._begins_within", {})
