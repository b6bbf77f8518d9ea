"""Files to be read."""

import pytest

from hierindex import read_documents
from hierindex.node import FILE_NAME


@pytest.fixture
def written(tmp_path):
    def write(files: dict[str, bytes | str]):
        for name, data in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode() if isinstance(data, str) else data)
        return tmp_path

    return write


@pytest.fixture
def read_one(written):
    def read_one(name, data):
        (document,), skipped = read_documents(written({name: data}))
        assert not skipped
        assert document.id_ == name
        assert document.metadata[FILE_NAME] == name
        return document

    return read_one
