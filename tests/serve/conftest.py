"""An explorer over small trees, on loopback."""

import sys
from collections.abc import Iterator

import httpx
import pytest
from fakes import HashingEmbedding
from store.trees import HIERARCHIES, tree

import hierindex.serve
from hierindex import HierarchicalIndex, HierarchyStore


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


def client_of(index: HierarchicalIndex) -> Iterator[Client]:
    with index.explore(0) as explorer, Client(base_url=explorer.url, timeout=60) as client:
        yield client


@pytest.fixture(scope="session", params=HIERARCHIES, ids=lambda kind: kind.method)
def index(request, tmp_path_factory) -> HierarchicalIndex:
    store = HierarchyStore(tmp_path_factory.mktemp("explored") / "letters")
    store.add(tree(request.param))
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture(scope="session")
def client(index) -> Iterator[Client]:
    yield from client_of(index)


@pytest.fixture(scope="session")
def page(tmp_path_factory) -> Iterator[Client]:
    """A client of an explorer of any index."""
    store = HierarchyStore(tmp_path_factory.mktemp("page"))
    store.add(tree())
    yield from client_of(HierarchicalIndex(store, HashingEmbedding()))


@pytest.fixture
def own(tmp_path) -> HierarchicalIndex:
    """A semantic index that may be changed."""
    store = HierarchyStore(tmp_path / "index")
    store.add(tree())
    return HierarchicalIndex(store, HashingEmbedding())


@pytest.fixture
def own_client(own) -> Iterator[Client]:
    yield from client_of(own)


@pytest.fixture
def uninstall(monkeypatch):
    """Let imports of a package fail, and those of the servers begin anew."""

    def uninstalled(package: str) -> None:
        monkeypatch.setattr(hierindex, "serve", hierindex.serve)  # so that it is restored
        for name in [*sys.modules]:
            if name.startswith(("hierindex.serve", package)):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)

    return uninstalled
