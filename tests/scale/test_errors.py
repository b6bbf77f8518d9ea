"""What is said where there is no cluster, or no Ray."""

import socket
import sys
import time

import pytest
from fakes import HashingEmbedding

from hierindex import HierarchicalIndex, SemanticHierarchy
from hierindex.errors import InputError
from hierindex.scale import RayEngine

MOST = 10.0  # seconds


def refused(tmp_path, engine):
    """Build; return what is said, and the seconds that it took."""
    (tmp_path / "a.md").write_text("The bell rang.")
    start = time.monotonic()
    with pytest.raises(InputError) as refusal:
        HierarchicalIndex.build(
            tmp_path / "a.md",
            tmp_path / "index",
            hierarchy=SemanticHierarchy(HashingEmbedding()),
            engine=engine,
        )
    assert not (tmp_path / "index").exists()
    return str(refusal.value), time.monotonic() - start


def test_without_ray(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    said, _ = refused(tmp_path, RayEngine())
    assert said == "The engine ray needs `pip install 'hierindex[ray]'`."


@pytest.mark.parametrize("is_heard", [False, True])
def test_an_address_without_a_cluster(tmp_path, is_heard):
    pytest.importorskip("ray", reason="run `make test-ray`")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        if is_heard:
            other.listen()
        address = "127.0.0.1:{1}".format(*other.getsockname())
        said, seconds = refused(tmp_path, RayEngine(address))
    assert said.startswith(f"There is no Ray cluster at {address!r}; ")
    assert seconds < MOST


@pytest.mark.parametrize("workers", [0, -1, 1.5, True])
def test_numbers_of_workers(workers):
    with pytest.raises(InputError, match="workers must be an integer of at least 1"):
        RayEngine(workers=workers)
