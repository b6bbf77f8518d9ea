import sys

import pytest
from strategies import unit_vectors

from hierindex.core import reduce


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every branch is covered by a test that names its case, not by a random example."""
    for item in items:
        if item.get_closest_marker("hypothesis"):
            item.add_marker("no_cover")


@pytest.fixture(scope="session", autouse=True)
def compiled():
    """UMAP compiles in a fresh environment, and for minutes where each line is traced."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        reduce.umap_coordinates(unit_vectors("noise", 20, 4), 2, n_neighbors=5, seed=0)
    finally:
        sys.settrace(tracer)


@pytest.fixture(autouse=True)
def models_read_once():
    """No test of arrays needs the embedding models, which take seconds to import."""
