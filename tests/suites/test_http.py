"""Schemathesis asks `hierindex serve` what its own description allows, and what it does not."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from hierindex.serve import serve

PATHS = ["/query", "/retrieve", "/outline", "/show", "/health"]
SCHEMATHESIS = [Path(sys.executable).with_name("schemathesis"), "--no-color", "run"]
OPTIONS = ["--seed", "1", "--max-examples", "50", "--continue-on-failure"]


@pytest.fixture(scope="module")
def url(built):
    """The address of the description."""
    with serve(built, 0) as server:
        yield f"{server.url}openapi.json"


def test_all_paths_are_tested(url) -> None:
    assert {*httpx.get(url).json()["paths"]} == {*PATHS}


@pytest.mark.parametrize("path", PATHS)
def test_schemathesis_finds_nothing(url, tmp_path, path) -> None:
    done = subprocess.run(
        [*SCHEMATHESIS, url, "--include-path", path, *OPTIONS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
