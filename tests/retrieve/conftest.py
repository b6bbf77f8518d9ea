"""A store of a tree to be asked: of each kind where a test is parametrised by `nodes`."""

import pytest
from fakes import HashingEmbedding
from store.trees import tree

from hierindex import HierarchyStore, SemanticHierarchy


@pytest.fixture(scope="module")
def nodes(request):
    return tree(getattr(request, "param", SemanticHierarchy))


@pytest.fixture(scope="module")
def store(nodes, tmp_path_factory):
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add(nodes)
    return store


@pytest.fixture
def embed_model():
    return HashingEmbedding()
