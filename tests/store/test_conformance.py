import pytest
from store.conformance import StoreConformance

from hierindex.store import search
from hierindex.store.vector_store import HierarchyStore


class TestHierarchyStore(StoreConformance):
    @pytest.fixture
    def empty(self, tmp_path):
        return HierarchyStore(tmp_path / "index")


@pytest.mark.slow
class TestWithIndices(StoreConformance):
    """The same, with the indices that only large tables have."""

    @pytest.fixture
    def empty(self, tmp_path, monkeypatch):
        monkeypatch.setattr(search, "SCALAR_ROWS", 1)
        return HierarchyStore(tmp_path / "index")
