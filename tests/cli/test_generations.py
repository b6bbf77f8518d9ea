"""The commands that list generations and return to an earlier one."""

import json
from datetime import datetime

import pytest
from llama_index.core.schema import TextNode
from records import replace_all

from hierindex import HierarchyStore


def nodes(ids):
    return [TextNode(id_=node_id, text=f"text {node_id}", embedding=[1.0]) for node_id in ids]


@pytest.fixture
def index(tmp_path):
    store = HierarchyStore(tmp_path)
    with store.table.writing("build"):
        replace_all(store, nodes("ab"), {"changes": {"added": 2, "removed": 0}})
    store.add(nodes("bc"))
    return tmp_path


def test_generations_are_listed(run, index):
    status, out, err = run("generations", "--index", index)
    assert (status, err) == (0, "")
    head, oldest, newest = (line.split() for line in out.splitlines())
    assert head == ["generation", "published", "documents", "levels", "nodes", "written", "by"]
    assert newest[3:] == ["3", "1", "3", "add:", "1", "nodes", "added,", "1", "nodes", "changed"]
    assert oldest[3:] == ["2", "1", "2", "build:", "2", "added"]
    assert datetime.fromisoformat(" ".join(newest[1:3]))
    listed = json.loads(run("generations", "--index", index, "--json")[1])["generations"]
    assert listed == HierarchyStore(index).generations()
    assert [oldest[0], newest[0]] == [str(each["generation"]) for each in listed]


def test_a_rollback_publishes_an_earlier_generation(run, index):
    status, out, err = run("rollback", "--index", index)
    assert (status, err) == (0, "")
    assert out.splitlines()[1].split()[0] == "3"
    assert "rollback to generation 1" in out
    assert len(HierarchyStore(index).get_nodes()) == 2
    made = json.loads(run("rollback", 2, "--index", index, "--json")[1])
    assert (made["generation"], made["nodes"], made["changes"]) == (4, 3, {"generation": 2})
    status, out, err = run("rollback", 1, "--index", index)
    assert (status, out) == (2, "")
    assert "does not hold generation 1; it holds 3, 4." in err


def test_a_rollback_does_not_wait_for_a_writer(run, index):
    with HierarchyStore(index).table.writing("build"):
        status, _, err = run("rollback", "--index", index)
    assert status == 2
    assert "is being written by process" in err
