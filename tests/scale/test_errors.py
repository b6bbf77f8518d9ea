"""What is said where there is no cluster, or no Ray."""

import socket
import sys
import time

import pytest
from fakes import HashingEmbedding
from records import replace_all
from store.trees import tree

from hierindex import HierarchicalIndex, HierarchyStore, SemanticHierarchy
from hierindex.errors import HierindexError, InputError
from hierindex.scale.engine import RayEngine
from hierindex.store.fragments import Fragments, Place, Written
from hierindex.store.rows import row_of

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


@pytest.fixture
def store(tmp_path):
    pytest.importorskip("lance", reason="run `make test-ray`")
    return HierarchyStore(tmp_path)


def replaced(store, nodes, n_writers):
    """Write nodes as so many processes would, and publish them."""
    rows = Fragments(Place(*store.table.connection.parameters))
    for i in range(n_writers):
        rows.add_written(rows.place.write(map(row_of, nodes[i::n_writers])))
    return store.table.replace(rows, {})


def test_rows_of_many_writers_are_one_generation(store, tmp_path):
    nodes = tree()
    replace_all(store, nodes)
    held = [node.to_dict() for node in store.get_nodes()]
    other = HierarchyStore(tmp_path / "other")
    assert replaced(other, nodes, 1) == 1
    assert [node.to_dict() for node in other.get_nodes()] == held
    assert replaced(other, nodes, 3) == 2
    by_id = sorted((node.to_dict() for node in other.get_nodes()), key=lambda node: node["id_"])
    assert by_id == sorted(held, key=lambda node: node["id_"])


def test_files_of_earlier_generations_do_not_remain(store, tmp_path):
    made = []  # by each generation; some that it did not need may stay as long as it does
    for _ in range(5):
        replaced(store, tree(), 3)
        files = {path.name for path in (tmp_path / "nodes.lance" / "data").iterdir()}
        assert files.isdisjoint(set().union(*made[:-1])), "two generations are kept"
        made.append(files.difference(*made))


def test_rows_are_counted_before_they_are_published(store):
    nodes = tree()
    replaced(store, nodes, 2)
    torn = Fragments(Place(*store.table.connection.parameters))
    torn.add_written(torn.place.write(map(row_of, nodes[1:]))._replace(n_rows=len(nodes)))
    with pytest.raises(HierindexError, match="nothing was published"):
        store.table.replace(torn, {})
    assert store.snapshot().generation == 1
    assert len(store.get_nodes()) == len(nodes)
    store.add(nodes[:1])  # after which the next writer goes on from the published generation
    assert len(store.get_nodes()) == len(nodes)


def test_vectors_of_many_writers_have_one_dimension(store):
    rows = Fragments(Place(*store.table.connection.parameters))
    rows.add_written(Written(["{}"], 1, 3))
    with pytest.raises(InputError, match=r"one dimension, got \[3, 4\]"):
        rows.add_written(Written(["{}"], 1, 4))
