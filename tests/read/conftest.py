"""Files to be read."""

import pytest

from hierindex import read_documents
from hierindex.cache import Readings, open_cache
from hierindex.node import FILE_NAME, HEADINGS, Heading
from hierindex.read import documents

BETWEEN = "\n\n\n"  # of records, and so of the rows of a long table


def headings(document):
    """Level, title and first line of each heading."""
    found = document.metadata.get(HEADINGS, [])
    return [(level, title, document.text[at:].split("\n")[0]) for level, title, at, _ in found]


def placed_headings(document):
    """The headings in order, each of which begins a line with its title."""
    found = [Heading(*values) for values in document.metadata.get(HEADINGS, [])]
    assert found == sorted(found, key=lambda heading: heading.start)
    for heading in found:
        assert document.text.startswith(heading.title, heading.start)
        assert heading.start == 0 or document.text[heading.start - 1] in "\n\f"
    return found


@pytest.fixture
def written(tmp_path):
    def write(files: dict[str, bytes | str]):
        for name, data in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.encode() if isinstance(data, str) else data)
        return tmp_path

    return write


@pytest.fixture(scope="session")
def read_one(tmp_path_factory):
    """Reads a file of a folder of its own."""

    def read_one(name, data):
        path = tmp_path_factory.mktemp("one") / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        (document,), skipped = read_documents(path)
        assert not skipped
        assert document.id_ == name
        assert document.metadata[FILE_NAME] == name
        return document

    return read_one


@pytest.fixture
def skipped(written):
    """What is skipped of files beside one that is read."""

    def skipped(files: dict[str, bytes | str]):
        documents, found = read_documents(written({**files, "good.txt": "good"}))
        assert [document.id_ for document in documents] == ["good.txt"]
        return found

    return skipped


@pytest.fixture
def memory(tmp_path):
    with open_cache(str(tmp_path / "index")) as cache:
        yield Readings(cache)


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """The suffixes of what is read and looked into, as that happens."""
    suffixes: list[str] = []

    def counted(suffix, reader):
        def count(file):
            suffixes.append(suffix)
            return reader(file)

        return count

    for name in ("READERS", "PARTS"):
        readers = getattr(documents, name).items()
        monkeypatch.setattr(documents, name, {s: counted(s, reader) for s, reader in readers})
    return suffixes
