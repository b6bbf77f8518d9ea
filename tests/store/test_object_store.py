"""An index in an object store: S3's protocol, spoken by a server on loopback."""

import logging
import random
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from bucket import bucket
from fakes import HashingEmbedding
from histories import text
from llama_index.core.schema import Document
from store.trees import tree

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy
from hierindex.errors import InputError

KEYS = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "aws_region": "us-east-1"}
TURNS = 2
SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]
CONFLICT = "The index {!r} was written by another process at the same time; try again."


@pytest.fixture(scope="module")
def endpoint():
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # it notes each request
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
    return {citation.document for source in sources for citation in source.citations}


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


def test_a_writer_is_told_of_another_that_removed_what_it_reads(endpoint):
    options = {**KEYS, "aws_endpoint": endpoint, "allow_http": "true"}
    store = HierarchyStore("s3://library/read", storage_options=options)
    other = HierarchyStore("s3://library/read/", storage_options=options)
    store.add(tree())

    def write():
        with store.table.writing("build"):
            read = store.snapshot()
            other.delete_nodes([tree()[0].node_id])  # with all earlier generations
            read.select("text")

    with pytest.raises(InputError) as told:
        write()
    assert "was removed by a later write" in str(told.value)


def written(uri, what, texts):
    """Build an index, or update it; return the generation, or what was said instead."""
    hierarchy = SemanticHierarchy(HashingEmbedding(), max_children=3)
    try:
        if what == "update":
            index = HierarchicalIndex.open(uri, HashingEmbedding())
            return index.update(documents_of(texts)).generation
        index = HierarchicalIndex.build(documents_of(texts), uri, hierarchy=hierarchy, replace=True)
        return index.last_build.generation
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("seed", SEEDS)
def test_machines_write_one_index_at_once_and_ask_it_beside(endpoint, monkeypatch, tmp_path, seed):
    """What is published is what one machine would have made of it, one thing after the other."""
    for name, value in in_environment(endpoint).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    uri, alone, draw = f"s3://library/shared{seed}", tmp_path / "alone", random.Random(seed)
    first = {f"{i}": text(draw) for i in range(2)}
    index, known, n_told = None, {*first}, 0
    with ThreadPoolExecutor(2) as machines:
        for turn in range(TURNS):
            waiting = {}  # by the URI of each, whose lock excludes none of the other
            for i, at in enumerate((uri, f"{uri}/")):
                what = draw.choice(("build", "update", "update")) if turn else "build"
                texts = {f"{turn} {i}": text(draw), **(first if what == "build" else {})}
                waiting[at] = what, texts
                known |= texts.keys()
            while waiting:  # until each has published
                began = {at: machines.submit(written, at, *given) for at, given in waiting.items()}
                while index and not all(machine.done() for machine in began.values()):
                    assert asked(index) <= known
                    wait(began.values(), timeout=1.0)
                said = {at: machine.result() for at, machine in began.items()}
                done = {what: at for at, what in said.items() if isinstance(what, int)}
                assert done, said
                for _, at in sorted(done.items()):
                    written(alone, *waiting.pop(at))
                for at in waiting:
                    assert said[at] == CONFLICT.format(at)
                    n_told += 1
                index, same = (HierarchicalIndex.open(x, HashingEmbedding()) for x in (uri, alone))
                assert texts_of(index) == texts_of(same)
    assert n_told
    assert index.verify().ok
