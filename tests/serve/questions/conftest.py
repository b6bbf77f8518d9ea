"""An index that commands and a server answer from."""

from shutil import copytree

import httpx
import pytest

from hierindex import HierarchicalIndex
from hierindex.serve.questions import client

TEXT = "\n\n".join(
    f"On day {i} the keeper of the lighthouse wrote to {name}. The storm had broken {what}."
    for i in range(8)
    for name, what in (("Ada", "the lamp"), ("Bo", "the pier"), ("Cy", "his best boat"))
)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """An index of two letters by the bundled model."""
    at = tmp_path_factory.mktemp("asked")
    (at / "letters").mkdir()
    (at / "letters" / "storm.txt").write_text(TEXT)
    (at / "letters" / "calm.txt").write_text(TEXT.replace("storm", "calm"))
    HierarchicalIndex.build(at / "letters", at / "index", chunk_size=64)
    return at / "index"


@pytest.fixture
def letters(built, tmp_path, monkeypatch) -> HierarchicalIndex:
    """A copy of it in the working directory."""
    monkeypatch.chdir(tmp_path)
    return HierarchicalIndex.open(copytree(built, tmp_path / "index"))


@pytest.fixture
def served(monkeypatch) -> list[bool]:
    """Whether a server has answered, for each request of a command."""
    answered, ask = [], client.reply_to

    def noted(asked, folder):
        answered.append(True)
        reply = ask(asked, folder)
        answered[-1] = reply is not None
        return reply

    monkeypatch.setattr(client, "reply_to", noted)
    return answered


class Http(httpx.Client):
    """A client by HTTP."""

    def ask(self, path: str, status: int = 200, **asked):
        answer = self.post(path, json=asked)
        assert answer.status_code == status, answer.text
        return answer.json()

    def sentence(self, path: str, status: int = 400, **asked) -> str:
        error = self.ask(path, status, **asked)
        assert [*error] == ["error"]
        assert "Traceback" not in error["error"]
        return error["error"]


@pytest.fixture(scope="session")
def http(index):
    with index.serve(0) as server, Http(base_url=server.url, timeout=60) as asking:
        yield asking
