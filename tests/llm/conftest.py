"""A real language model on loopback; what asks it is kept out of `make test`."""

import os
from pathlib import Path

import pytest
from benchmarks.real_model import file_of, served

from hierindex.models.llm import load_llm

SIZE = os.environ.get("SIZE", "0.5b")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what stands in this folder as slow, so that `make test` leaves it out."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.filterwarnings("ignore::hierindex.errors.FallbackWarning"))


@pytest.fixture(scope="session")
def url():
    """The address of the model, or a skip that says what is missing."""
    pytest.importorskip("xllamacpp", reason="run `make test-llm`")
    path = file_of(SIZE)
    if not path.exists():
        pytest.skip(f"{path.name} is not there; run `make test-llm`")
    with served(path) as url:
        yield url


@pytest.fixture(scope="session")
def llm(url):
    """A model of LlamaIndex that waits as long as a slow machine takes."""
    return load_llm("qwen", url, timeout=1200)
