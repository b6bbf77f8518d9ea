"""An explorer over small trees, on loopback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import httpx
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from processes import started, until
from store.trees import documents, record, tree

from hierindex import HierarchicalIndex, HierarchyStore
from hierindex import serve as servers
from hierindex.serve import explore, serve
from hierindex.text_node import metadata_of


class Client(httpx.Client):
    """A client of an explorer."""

    def json(self, path: str, status: int = 200, **query):
        """What an endpoint returns."""
        answer = self.get(f"/api/{path}", params={k.rstrip("_"): v for k, v in query.items()})
        assert answer.status_code == status, answer.text
        return answer.json()

    def sentence(self, path: str, status: int = 400, **query) -> str:
        """The error of an endpoint."""
        error = self.json(path, status, **query)
        assert [*error] == ["error"]
        assert "Traceback" not in error["error"]
        return error["error"]


def soft_tree() -> list[TextNode]:
    """A semantic tree of four levels with rows that pass up, and a chunk of two parents."""
    nodes = tree()
    first, second = [n for n in nodes if record(n).level == 1 and "a.txt" in record(n).documents]
    child = next(n for n in nodes if record(n).parents == ((first.node_id, 1.0),))
    parents = ((first.node_id, 0.75), (second.node_id, 0.25))
    child.metadata |= metadata_of(replace(record(child), parents=parents))
    below = second.relationships[NodeRelationship.CHILD]
    second.relationships[NodeRelationship.CHILD] = [
        RelatedNodeInfo(node_id=child.node_id),
        *below,
    ]
    return nodes


class Http(httpx.Client):
    """A client of a server of questions."""

    def ask(self, path: str, status: int = 200, **asked):
        answer = self.post(path, json=asked)
        assert answer.status_code == status, answer.text
        return answer.json()

    def sentence(self, path: str, status: int = 400, **asked) -> str:
        """The error of a question."""
        error = self.ask(path, status, **asked)
        assert [*error] == ["error"]
        assert "Traceback" not in error["error"]
        return error["error"]


def client_of(index: HierarchicalIndex) -> Iterator[Client]:
    with explore(index, 0) as explorer, Client(base_url=explorer.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="session")
def index(tmp_path_factory) -> HierarchicalIndex:
    store = HierarchyStore(tmp_path_factory.mktemp("explored") / "letters")
    store.add(soft_tree())
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture(scope="session")
def client(index) -> Iterator[Client]:
    yield from client_of(index)


@pytest.fixture(scope="session")
def semantic(tmp_path_factory) -> Path:
    """The folder of a semantic index."""
    folder = tmp_path_factory.mktemp("semantic") / "index"
    HierarchyStore(folder).add(tree())
    return folder


@pytest.fixture
def own(semantic, tmp_path) -> HierarchicalIndex:
    """A copy of it, which may be changed."""
    store = HierarchyStore(copytree(semantic, tmp_path / "index"))
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture
def own_client(own) -> Iterator[Client]:
    yield from client_of(own)


@pytest.fixture(scope="session")
def loadable(tmp_path_factory) -> Path:
    """The folder of an index whose embedding model a new process can load, without torch."""
    folder = tmp_path_factory.mktemp("loadable") / "index"
    HierarchicalIndex.build(documents(), folder)
    return folder


@pytest.fixture
def serving(loadable, tmp_path):
    """Starts a server of an index in a process of its own, beside that; gives what it says."""
    copytree(loadable, tmp_path / "index")

    @contextmanager
    def serving(*args: str):
        said = tmp_path / "err"
        said.touch()
        process = started([*args], tmp_path)
        try:
            until(lambda: said.read_text().endswith("\n"))
            yield process, said.read_text()
        finally:
            process.kill()
            process.join()

    return serving


@pytest.fixture
def uninstall(monkeypatch):
    """Let imports of a package fail, and those of the servers begin anew."""

    def uninstalled(name: str) -> None:
        monkeypatch.setattr("hierindex.serve", servers)  # so that it is restored
        for function in servers.__all__:
            monkeypatch.delitem(vars(servers), function, raising=False)
        for module in [*sys.modules]:
            if module.startswith(("hierindex.serve", name)):
                monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, name, None)

    return uninstalled


@pytest.fixture(scope="session")
def http(index):
    with serve(index, 0) as server, Http(base_url=server.url, timeout=60) as asking:
        yield asking
