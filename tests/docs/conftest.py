"""Pages that people read, followed in a folder of documents."""

from pathlib import Path
from shutil import copytree

import pytest
from cli.conftest import stopped  # noqa: F401

TOWN = Path(__file__).parent / "town"


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    """The documents of a town, `docs` of which are in the index `my-index`."""
    from hierindex import HierarchicalIndex

    folder = copytree(TOWN, tmp_path_factory.mktemp("town") / "town")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        HierarchicalIndex.build("docs", "my-index")
    return folder


@pytest.fixture
def town(prepared, tmp_path, monkeypatch) -> Path:
    """A copy of it, which is the working directory."""
    copied = copytree(prepared, tmp_path / "town")
    monkeypatch.chdir(copied)
    return copied
