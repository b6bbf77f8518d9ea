"""A store of a tree to be asked: of each kind where a test is parametrised by `nodes`."""

import pytest
from fakes import HashingEmbedding
from store.trees import HIERARCHIES, tree

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy


@pytest.fixture(scope="module")
def nodes(request):
    return tree(getattr(request, "param", SemanticHierarchy))


@pytest.fixture(scope="module")
def store(nodes, tmp_path_factory):
    store = HierarchyStore(tmp_path_factory.mktemp("index"))
    store.add(nodes)
    return store


@pytest.fixture(scope="session")
def stored(tmp_path_factory):
    """An index of each hierarchy, with its nodes by id."""

    def made(hierarchy):
        store = HierarchyStore(tmp_path_factory.mktemp(hierarchy.__name__))
        store.add(tree(hierarchy))
        return HierarchicalIndex(store), {n.node_id: n for n in store.get_nodes()}

    return {hierarchy: made(hierarchy) for hierarchy in HIERARCHIES}


@pytest.fixture
def embed_model():
    return HashingEmbedding()
