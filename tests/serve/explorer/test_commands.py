"""The commands that show an index in a browser."""

import json
import re

import pytest


@pytest.fixture
def hierindex(run, monkeypatch, own, tmp_path):
    """Runs a command line beside an index."""
    monkeypatch.chdir(tmp_path)
    return run


def test_a_report_is_written(hierindex, own, tmp_path) -> None:
    status, out, err = hierindex("report", "--index", "index", "--to", "report.html")
    n_nodes = sum(1 for _ in own.store.get_nodes())
    assert re.fullmatch(rf"Wrote report\.html: {n_nodes} nodes, \d\.\d MB\.\n", out)
    assert (status, err) == (0, "")
    n_bytes = (tmp_path / "report.html").stat().st_size
    status, out, err = hierindex("report", "--index", "index", "--to", "report.html")
    assert (status, out) == (2, "")
    assert "'report.html' exists already" in err
    small = ("--max-mb", (n_bytes - 500) / 1e6, "--json")
    status, out, _ = hierindex("report", "--index", "index", "--to", "less.html", *small)
    written = json.loads(out)
    assert (status, written["path"], written["nodes"]) == (0, "less.html", n_nodes)
    assert written["left_out"].startswith("Left out, to stay below 0.")
    assert written["bytes"] == (tmp_path / "less.html").stat().st_size < n_bytes


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("report", "--to", "x.html", "--max-mb", "0.001"), "too small for the page"),
        (("report", "--to", "x.html", "--max-mb", "1e308"), "'--max-mb'"),
        (("explore", "--port", "99999"), "Cannot listen on 127.0.0.1:99999"),
    ],
)
def test_errors_are_sentences(hierindex, tmp_path, args, said) -> None:
    status, out, err = hierindex(*args, "--index", "index")
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "x.html").exists()
