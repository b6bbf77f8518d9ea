"""An index in an object store: S3's protocol, spoken by a server on loopback."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from bucket import bucket
from fakes import HashingEmbedding
from histories import text
from llama_index.core.schema import Document
from store.trees import tree

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy

KEYS = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "aws_region": "us-east-1"}
TURNS = 4
CONFLICT = "The index {!r} was written by another process at the same time; try again."


@pytest.fixture(scope="module")
def endpoint():
    with bucket() as url:
        yield url


def stored():
    """The bytes of all objects in the bucket, from the server's memory."""
    from moto.s3.models import s3_backends

    (backend,) = (backend for account in s3_backends.values() for backend in account.values())
    return b"".join(key.value for key in backend.buckets["library"].keys.values())


def in_environment(endpoint):
    """The variables by which a process knows the object store."""
    known = {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
    return {**{name.upper(): value for name, value in KEYS.items()}, **known}


def documents_of(texts):
    return [Document(text=text, id_=name) for name, text in texts.items()]


def asked(index):
    """The documents that a question finds."""
    sources = index.ask("Who met the keeper by the boat?", top_k=20).sources
    return {citation["document"] for source in sources for citation in source.citations}


def texts_of(index):
    return {node.node_id: node.text for node in index.store.get_nodes()}


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
    for name, value in in_environment(endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    texts = ("The keeper lit the lamp.", "The baker mended the oven.")
    documents = [Document(text=text, id_=text.split()[1]) for text in texts]
    hierarchy = SemanticHierarchy(HashingEmbedding())
    built = HierarchicalIndex.build(documents, "s3://library/index", hierarchy=hierarchy)
    assert built.info()["documents"] == 2
    index = HierarchicalIndex.open("s3://library/index", HashingEmbedding())
    assert "oven" in index.ask("Who mended the oven?").answer


class Machine:
    """Another process that updates an index; see `store/machine.py`."""

    def __init__(self, uri, folder):
        code = str(Path(__file__).with_name("machine.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", code, uri],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "XDG_CACHE_HOME": str(folder),
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
        )

    def begin(self, texts):
        self._process.stdin.write(f"{json.dumps(texts)}\n")
        self._process.stdin.flush()

    def said(self):
        return json.loads(self._process.stdout.readline())

    def stop(self):
        self._process.communicate(timeout=60)


def test_machines_update_one_index_at_once_and_ask_it_beside(endpoint, monkeypatch, tmp_path):
    for name, value in in_environment(endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    uri, hierarchy = "s3://library/shared", SemanticHierarchy(HashingEmbedding(), max_children=3)
    draw = random.Random(0)
    held = {f"{i}": text(draw) for i in range(6)}
    index = HierarchicalIndex.build(documents_of(held), uri, hierarchy=hierarchy)
    machines = [Machine(uri, tmp_path / str(i)) for i in range(2)]
    n_told = 0
    for turn in range(TURNS):
        waiting = {machine: {f"{turn} {i}": text(draw)} for i, machine in enumerate(machines)}
        new = {name for texts in waiting.values() for name in texts}
        while waiting:  # until each has added its own
            for machine, texts in waiting.items():
                machine.begin(texts)
            found = {document for _ in range(3) for document in asked(index)}
            assert found <= held.keys() | new
            said = {machine: machine.said() for machine in waiting}
            done = {what: machine for machine, what in said.items() if isinstance(what, int)}
            assert done, said
            for _, machine in sorted(done.items()):
                held |= waiting.pop(machine)
            for machine in waiting:
                assert said[machine] == CONFLICT.format(uri)
                n_told += 1
    for machine in machines:
        machine.stop()
    assert n_told
    alone = HierarchicalIndex.build(documents_of(held), tmp_path / "alone", hierarchy=hierarchy)
    index = HierarchicalIndex.open(uri, HashingEmbedding())
    assert texts_of(index) == texts_of(alone)
    assert index.verify().ok
