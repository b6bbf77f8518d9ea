"""An index in an object store: S3's protocol, spoken by a server on loopback."""

import pytest
from bucket import bucket
from fakes import HashingEmbedding
from llama_index.core.schema import Document
from store.trees import tree

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy

KEYS = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "aws_region": "us-east-1"}


@pytest.fixture(scope="module")
def endpoint():
    with bucket() as url:
        yield url


def stored():
    """The bytes of all objects in the bucket, from the server's memory."""
    from moto.s3.models import s3_backends

    (backend,) = (backend for account in s3_backends.values() for backend in account.values())
    return b"".join(key.value for key in backend.buckets["library"].keys.values())


def test_a_store_in_a_bucket(endpoint):
    options = {**KEYS, "aws_endpoint": endpoint, "allow_http": "true"}
    store = HierarchyStore("s3://library/store", storage_options=options)
    assert not store.snapshot().exists
    nodes = tree()
    store.add(nodes)
    assert {n.node_id for n in store.get_nodes()} == {n.node_id for n in nodes}
    assert nodes[0].text.encode() in stored()
    store.delete_nodes([nodes[0].node_id])
    assert nodes[0].text.encode() not in stored()
    assert [each["generation"] for each in store.generations()] == [2]
    other = HierarchyStore("s3://library/store", storage_options=options)
    assert len(other.get_nodes()) == len(nodes) - 1
    assert "secret" not in f"{store!r} {store.to_dict()}"
    other.clear()
    assert not store.snapshot().exists


def test_an_index_in_a_bucket_by_the_environment(endpoint, monkeypatch, tmp_path):
    environment = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
    for name, value in {**{k.upper(): v for k, v in KEYS.items()}, **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    texts = ("The keeper lit the lamp.", "The baker mended the oven.")
    documents = [Document(text=text, id_=text.split()[1]) for text in texts]
    hierarchy = SemanticHierarchy(HashingEmbedding())
    built = HierarchicalIndex.build(documents, "s3://library/index", hierarchy=hierarchy)
    assert built.info()["documents"] == 2
    index = HierarchicalIndex.open("s3://library/index", HashingEmbedding())
    assert "oven" in index.ask("Who mended the oven?").answer
