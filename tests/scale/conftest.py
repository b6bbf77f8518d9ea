"""A Ray cluster of two nodes on this machine; what needs it is kept out of `make test`."""

import random
import warnings
from pathlib import Path

import pytest
from bucket import bucket
from histories import text
from scale.nodes import add_node, environment

N_DOCUMENTS = 24


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the cluster as slow, so that `make test` leaves it out."""
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
            # Ray leaves sockets and files of its processes to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))


@pytest.fixture(scope="session")
def library():
    """The URI of a bucket in an object store, which processes know by the environment."""
    with bucket() as url, pytest.MonkeyPatch.context() as patch:
        known = {
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }
        for name, value in known.items():
            patch.setenv(name, value)
        yield "s3://library"


@pytest.fixture(scope="session")
def cluster(library):
    """The address of a cluster of two nodes, to which this process is connected."""
    ray = pytest.importorskip("ray", reason="run `make test-ray`")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, value in environment().items():
            patch.setenv(name, value)
        nodes = Cluster()
        try:
            for _ in range(2):
                add_node(nodes, n_cpus=1)
            ray.init(nodes.address, log_to_driver=False, logging_level="ERROR")
            yield nodes.address
        finally:
            ray.shutdown()
            nodes.shutdown()


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Documents, a link to one of them, and a file that cannot be read as text."""
    folder = tmp_path_factory.mktemp("documents")
    for i in range(N_DOCUMENTS):
        (folder / f"{i}.md").write_text(text(random.Random(i)))
    (folder / "link.md").symlink_to(folder / "3.md")
    (folder / "picture.txt").write_bytes(b"\x00\x01\x02" * 100)
    return folder
