"""A store of each kind of tree, to be asked."""

import pytest
from fakes import HashingEmbedding
from store.trees import HIERARCHIES, tree

from hierindex.store.vector_store import HierarchyStore


@pytest.fixture(scope="module", params=HIERARCHIES)
def nodes(request):
    return tree(request.param)


@pytest.fixture(scope="module")
def store(nodes, tmp_path_factory):
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add(nodes)
    return store


@pytest.fixture
def embed_model():
    return HashingEmbedding()
