"""Servers through publishes, deletions, deaths and other servers and users."""

import os
import re
import signal
import stat
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from shutil import copytree, rmtree
from threading import Event, Thread
from urllib.parse import urlsplit

import httpx
import pytest
from fakes import HashingEmbedding
from other_user import NOBODY, ask
from processes import process
from records import replace_all
from store.trees import tree

from hierindex import HierarchicalIndex, HierarchyStore, InputError, Node
from hierindex.models.model_identity import identity
from hierindex.retrieve import stored_tree
from hierindex.serve.questions.client import reply_to
from hierindex.serve.questions.endpoints import Outline, Retrieve, Show
from hierindex.serve.questions.local_socket import HOLDER, NAME, connected
from hierindex.text_node import metadata_of

PATIENCE = 60  # seconds, for a machine that is busy
ASKED = Retrieve(question="the harbour of a1", mode="collapsed", top_k=50, token_budget=10_000)


def waited(holds: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def documents_in(found: dict) -> set[str]:
    return {place["document"] for node in found["nodes"] for place in node["citations"]}


def test_each_answer_is_of_the_newest_generation(own) -> None:
    folder, (node, *_) = Path(own.store.uri), own.store.get_nodes()
    with own.serve(0) as server:
        for i in range(3):
            text = f"The zeppelin number {i} met the harbour."
            own.store.add([node.model_copy(update={"text": text})])
            found = reply_to(ASKED, folder)["nodes"]
            assert [each["text"] for each in found if "zeppelin" in each["text"]] == [text]
            answer = httpx.post(f"{server.url}show", json={"node": node.node_id})
            assert answer.json()["text"] == text
            assert answer.headers["hierindex-generation"] == str(i + 2)


def test_answers_go_on_while_generations_are_published_and_removed(own) -> None:
    folder, done, replies = Path(own.store.uri), Event(), []

    def ask() -> None:
        while not done.is_set():
            replies.append(reply_to(ASKED, folder))

    with own.serve(0):
        clients = [Thread(target=ask) for _ in range(2)]
        for client in clients:
            client.start()
        for _ in range(3):
            replace_all(own.store, tree(), purge=True)
        done.set()
        for client in clients:
            client.join(PATIENCE)
    assert len(replies) >= len(clients)
    assert all(len(reply["nodes"]) == len(replies[0]["nodes"]) for reply in replies)


def test_nothing_is_left_of_a_deleted_document(own) -> None:
    folder = Path(own.store.uri)
    with own.serve(0):
        before = reply_to(ASKED, folder)["nodes"]
        gone = [each["id"] for each in before if documents_in({"nodes": [each]}) == {"a.txt"}]
        own.store.delete("a.txt")
        for asked in (ASKED, Outline(budget=5000)):
            found = reply_to(asked, folder)
            assert found["nodes"]
            assert "a.txt" not in documents_in(found)
            assert "of a1 met" not in str(found)
        with pytest.raises(InputError, match="No nodes have an id that begins with"):
            reply_to(Show(node=gone[0]), folder)
        own.store.clear()
        with pytest.raises(InputError, match="holds no index"):
            reply_to(ASKED, folder)
        own.store.add(tree())
        assert "a.txt" in documents_in(reply_to(ASKED, folder))


def test_an_index_of_another_model_is_asked_with_that_one(own, monkeypatch) -> None:
    loaded = []

    def load(name, **options):
        loaded.append(name)
        return HashingEmbedding(model_name=name, dim=64 if name == "hashing" else 32)

    monkeypatch.setattr(stored_tree, "load_encoder", load)
    other = load("other")
    loaded.clear()
    with HierarchicalIndex.open(own.store.uri).serve(0):
        assert reply_to(ASKED, Path(own.store.uri))["nodes"]
        nodes = tree()
        for node in nodes:
            made = Node.of(node)
            maker = made.maker._replace(embed_model="other", embed_settings=identity(other))
            node.metadata.update(metadata_of(replace(made, maker=maker)))
            node.embedding = other.get_text_embedding(node.text)
        replace_all(own.store, nodes)
        assert reply_to(ASKED, Path(own.store.uri))["nodes"]
        assert reply_to(ASKED, Path(own.store.uri))["nodes"]
    assert loaded == ["hashing", "other"]


COMMAND = "serve", "--index", "index", "--port", "0"


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_the_command_serves_until_it_is_stopped(own, serving, tmp_path, number) -> None:
    with serving(*COMMAND) as (served, said):
        (url,) = re.fullmatch(
            r"hierindex: Answering questions on index until Ctrl-C, at "
            r"(http://127.0.0.1:\d+/)openapi.json\n",
            said,
        ).groups()
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:  # keeps its connection
            assert client.get("/health").json()["process"] == served.pid
            with ExitStack() as opened:
                address = urlsplit(url).hostname, urlsplit(url).port
                asking = [opened.enter_context(closing(HTTPConnection(*address))) for _ in range(4)]
                for connection in asking:
                    connection.request("GET", "/health")
                    connection.getresponse().read()
                for connection in asking:
                    connection.request("POST", "/outline", "{}")
                time.sleep(0.2)  # until they are read; others are not answered
                os.kill(served.pid, number)
                assert [connection.getresponse().status for connection in asking] == [200] * 4
            served.join(PATIENCE)
        assert served.exitcode == 0
    assert (tmp_path / "err").read_text() == f"{said}hierindex: Stopped.\n"
    assert (tmp_path / "out").read_text() == ""
    assert not (tmp_path / "index" / NAME).exists()


def test_after_a_kill_commands_answer_and_another_server_starts(own, serving, tmp_path) -> None:
    folder, asked = tmp_path / "index", Outline(budget=500)
    with serving(*COMMAND) as (served, _):
        assert reply_to(asked, folder)
        with pytest.raises(InputError, match=f"is served already by process {served.pid};"):
            own.serve(0)
        assert reply_to(asked, folder)
        os.kill(served.pid, signal.SIGKILL)
        served.join(PATIENCE)
        assert (folder / NAME).is_socket()
        assert reply_to(asked, folder) is None
    with own.serve(0):
        assert reply_to(asked, folder)
        with pytest.raises(InputError, match="is served already by this process; close"):
            own.serve(0)
    with own.serve(0), pytest.raises(InputError, match=r"Nothing can be served at 192\.0\.2\.1"):
        HierarchicalIndex(HierarchyStore(tmp_path / "none")).serve(0, "192.0.2.1")
    assert not (folder / NAME).exists()


def test_the_server_of_a_folder_that_was_moved_is_named(own, tmp_path) -> None:
    moved = tmp_path / "moved"
    with own.serve():
        Path(own.store.uri).rename(moved)
        assert reply_to(Outline(budget=500), moved) is None
        with pytest.raises(InputError, match="is served already by this process; close"):
            HierarchicalIndex(HierarchyStore(moved), HashingEmbedding()).serve()
    with HierarchicalIndex(HierarchyStore(moved), HashingEmbedding()).serve():
        assert reply_to(Outline(budget=500), moved)
    assert not (moved / NAME).exists()
    assert not (moved / HOLDER).exists()


def test_what_is_being_answered_is_finished(own, monkeypatch) -> None:
    asking, go_on, replies = Event(), Event(), []

    def slow(self, query):
        asking.set()
        assert go_on.wait(PATIENCE)
        return self._vector(query)

    folder = Path(own.store.uri)
    with own.serve(0) as server:
        reply_to(ASKED, folder)
        monkeypatch.setattr(HashingEmbedding, "_get_query_embedding", slow)
        client = Thread(target=lambda: replies.append(reply_to(ASKED, folder)))
        client.start()
        assert asking.wait(PATIENCE)
        closing = Thread(target=server.close)
        closing.start()
        waited(lambda: not is_open(server.url))
        go_on.set()
        client.join(PATIENCE)
        closing.join(PATIENCE)
    assert replies[0]["nodes"]


def is_open(url: str) -> bool:
    try:
        return httpx.get(f"{url}health").is_success
    except httpx.HTTPError:
        return False


def test_only_its_user_can_connect(own) -> None:
    with own.serve(0):
        mode = (Path(own.store.uri) / NAME).stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert stat.S_IMODE(mode) == 0o600


def test_another_user_is_refused(own) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    home = Path(tempfile.mkdtemp())
    try:
        home.chmod(0o755)
        folder = Path(copytree(own.store.uri, home / "index"))
        with HierarchicalIndex(HierarchyStore(folder), HashingEmbedding()).serve(0):
            other = process(ask, folder)
            other.join(PATIENCE)
            assert other.exitcode == 0
            assert reply_to(Outline(budget=500), folder)
            os.chown(folder / NAME, NOBODY, NOBODY)  # as if that user's server listened
            with pytest.raises(PermissionError):
                connected(folder)
            assert reply_to(Outline(budget=500), folder) is None
    finally:
        rmtree(home)
