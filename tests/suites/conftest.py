"""Indices that other people's tests run over."""

import pytest
from fakes import HashingEmbedding
from store.trees import HIERARCHIES, documents, tree

from hierindex import HierarchicalIndex, HierarchyStore


@pytest.fixture(scope="module", params=HIERARCHIES, ids=lambda kind: kind.method)
def index(request, tmp_path_factory) -> HierarchicalIndex:
    """An index of four documents by each method."""
    store = HierarchyStore(tmp_path_factory.mktemp("suites") / "index")
    store.add(tree(request.param))
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> HierarchicalIndex:
    """An index whose embedding model any process can load by its name."""
    uri = tmp_path_factory.mktemp("suites") / "built"
    return HierarchicalIndex.build(documents(), uri, chunk_size=64)
