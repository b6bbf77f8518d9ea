"""`hierindex verify`: a table or JSON, and an exit status for scripts."""

import json
from pathlib import Path
from shutil import copytree

import pytest
from records import replace_all
from store.trees import tree
from verify.direct import written

from hierindex import HierarchyStore


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "index"
    replace_all(HierarchyStore(folder), tree(), {"usage": {}})
    return folder


@pytest.fixture
def index(whole, tmp_path) -> Path:
    return copytree(whole, tmp_path / "index")


@pytest.fixture
def verify(run):
    return lambda index, *flags: run("verify", "--index", index, *flags)


def test_a_good_index(index, verify) -> None:
    status, out, err = verify(index)
    assert (status, err) == (0, "")
    assert "previous and next" in out
    assert out.rstrip().endswith("All checks of 22 nodes hold.")


def test_a_broken_index_is_repaired(index, verify) -> None:
    with written(index) as table:
        table.drop_index("words_idx")
    status, out, err = verify(index)
    assert (status, err) == (1, "")
    assert "indices:\n  words: " in out
    assert "`hierindex verify --repair --index" in out
    status, out, err = verify(index, "--repair")
    assert (status, err) == (0, "")
    assert "created again" in out


def test_of_many_problems_the_first_are_listed(index, verify) -> None:
    with written(index) as table:
        table.update(where="level = 0", values={"node": "{"})
    status, out, err = verify(index)
    assert (status, err) == (1, "")
    assert "readable:\n  " in out
    assert "and 6 more" in out
    assert "`hierindex build SOURCE..." in out


def test_json(index, verify) -> None:
    status, out, err = verify(index, "--json")
    report = json.loads(out)
    assert (status, err) == (0, "")
    assert set(report) == {"ok", "generation", "nodes", "stale", "checks", "repaired", "left"}
    assert (report["ok"], report["nodes"], report["stale"]) == (True, 22, 0)
    assert set(report["checks"][0]) == {"name", "ok", "checked", "count", "problems"}
    path = next((index / "nodes.lance" / "data").iterdir())
    path.write_bytes(path.read_bytes()[:100])
    status, out, err = verify(index, "--json")
    assert (status, err) == (1, "")
    (problem,) = json.loads(out)["checks"][-1]["problems"]
    assert problem["where"] == "nodes.lance"
    assert "cannot be read" in problem["what"]


def test_other_commands_name_a_missing_file(index, run) -> None:
    path = next((index / "nodes.lance" / "data").iterdir())
    path.unlink()
    status, out, err = run("info", "--index", index)
    assert (status, out) == (1, "")
    assert f"the file nodes.lance/data/{path.name} is missing" in err
    assert "`hierindex verify`" in err
    assert err.count("\n") == 1


def test_no_index(tmp_path, verify) -> None:
    status, out, err = verify(tmp_path / "nowhere")
    assert (status, out) == (2, "")
    assert "holds no index" in err
