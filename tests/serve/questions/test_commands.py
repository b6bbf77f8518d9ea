"""A command prints the same with a server as without, and asks one only where it may."""

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest
from llama_index.core.schema import TextNode

from hierindex import HierarchicalIndex, HierarchyStore
from hierindex.errors import ModelError
from hierindex.retrieve import stored_tree
from hierindex.serve.questions import client, local_socket
from hierindex.serve.questions.client import answer_to, reply_to
from hierindex.serve.questions.endpoints import Retrieve, Show
from hierindex.serve.questions.local_socket import LOCK, NAME, listening

QUESTION = "What had the storm broken?"
COMMANDS = [
    ("query", QUESTION),
    ("query", QUESTION, "--level", "0", "--by", "dense", "--top-k", "2", "--min-score", "0"),
    ("query", "What is it all about?", "--mode", "collapsed", "--token-budget", "300"),
    ("query", QUESTION, "--where", "file_name=calm.txt", "--response-mode", "no_text"),
    ("query", b"Who was Napol\xffon?", "--fail-if-refused"),
    ("outline",),
    ("outline", "--of", "storm.txt", "--budget", "300", "--question", "boats"),
    ("show", "ID"),
    ("show", "ID", "--source", "--context", "20"),
]
ERRORS = [
    ("query", " "),
    ("query", QUESTION, "--level", "99"),
    ("query", QUESTION, "--where", "colour=red"),
    ("query", QUESTION, "--response-mode", "compact"),
    ("query", QUESTION, "--beam", "2"),
    ("outline", "--budget", "1"),
    ("outline", "--of", "none.txt"),
    ("show", "zz"),
]


@pytest.fixture(scope="module")
def copies(built, tmp_path_factory):
    """The folders of two copies of the index, of which the second is served; and a node's id."""
    folders = [tmp_path_factory.mktemp(name) for name in ("alone", "served")]
    for folder in folders:
        shutil.copytree(built, folder / "index")
    served = HierarchicalIndex.open(folders[1] / "index")
    with served.serve(0):
        yield folders, served.outline(budget=300)[0].node_id


@pytest.fixture
def both(run, copies, monkeypatch):
    """Runs a command line beside the copy that is not served, and beside the other."""
    folders, node_id = copies

    def both(*args) -> list[tuple[int, str, str]]:
        given, outcomes = [os.fsdecode(each).replace("ID", node_id[:8]) for each in args], []
        for folder in folders:
            monkeypatch.chdir(folder)
            outcomes.append(run(*given, "--index", "index"))
        return outcomes

    return both


def without_times(out: str) -> dict:
    """A command's JSON without what differs from run to run."""
    found = json.loads(out)
    found.pop("seconds", None)
    return found


@pytest.mark.parametrize("args", COMMANDS, ids=repr)
def test_a_server_answers_as_the_command_does(both, served, args) -> None:
    alone, asked = both(*args, "--json")
    assert served == [False, True]
    assert (alone[0], alone[2]) == (asked[0], asked[2])
    assert without_times(alone[1]) == without_times(asked[1])


@pytest.mark.parametrize("args", [("query", QUESTION), ("outline",), ("show", "ID", "--source")])
def test_its_answer_is_printed_as_that_of_the_command(both, served, args) -> None:
    alone, asked = both(*args)
    assert alone == asked
    assert served == [False, True]


@pytest.mark.parametrize("args", ERRORS, ids=repr)
def test_errors_are_those_of_the_command(both, served, args) -> None:
    alone, asked = both(*args)
    assert alone == asked
    assert served == [False, True]
    assert (alone[0], alone[1]) == (2, "")


def test_a_model_that_cannot_be_loaded_is_the_same_error(run, own, monkeypatch) -> None:
    def fail(name, **options):
        raise ModelError(f"There is no {name}.")

    monkeypatch.setattr(stored_tree, "load_encoder", fail)
    args = ("query", QUESTION, "--index", own.store.uri)
    alone = run(*args)
    with HierarchicalIndex.open(own.store.uri).serve(0):
        assert run(*args) == alone
    assert alone[0] == 2
    assert "The index was built with the embedding model 'hashing'" in alone[2]


def test_settings_are_those_of_the_command(run, letters, served, monkeypatch) -> None:
    with letters.serve(0):
        Path("hierindex.toml").write_text("top_k = 1")
        ways = ("--level", "0", "--min-score", "0")
        _, out, _ = run("query", QUESTION, "--index", "index", "--json", *ways)
        Path("hierindex.toml").unlink()
        assert len(without_times(out)["sources"]) == 1
        _, out, _ = run("query", QUESTION, "--index", "index", "--json", *ways)
        assert len(without_times(out)["sources"]) > 1
    assert served == [True, True]


def test_no_key_and_no_stream_is_sent(run, letters, served, monkeypatch) -> None:
    def fail(name):
        raise ModelError(f"There is no {name}.")

    monkeypatch.setattr("hierindex.retrieve.retrieval.load_reranker", fail)
    with letters.serve(0):
        url = ("--llm", "none", "--llm-base-url", "http://127.0.0.1:9/v1")
        assert run("query", QUESTION, "--index", "index", *url)[0] == 2
        assert run("query", QUESTION, "--index", "index", "--stream")[0] == 0
        assert run("query", QUESTION, "--index", "index", "--rerank", "none")[0] == 2
    assert served == []


def test_a_question_needs_no_heavy_import(letters) -> None:
    """Of a command that a server answers."""
    heavy = {*"llama_index lancedb torch numpy pyarrow openvino starlette uvicorn rich".split()}
    script = (
        "import sys; from hierindex.cli.app import main\n"
        f"sys.argv = ['hierindex', 'query', {QUESTION!r}, '--index', 'index']\n"
        "try: main()\n"
        f"finally: print(sorted({heavy} & sys.modules.keys()))"
    )
    with letters.serve(0):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    *answer, imported = done.stdout.splitlines()
    assert any(line.startswith("On day") for line in answer)
    assert imported == "[]"


@contextmanager
def answering(folder: Path, said: bytes):
    """A server of a folder that says the same to everybody."""
    with listening(folder) as bound:

        def answer() -> None:
            connection, _ = bound.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(said)

        thread = Thread(target=answer, daemon=True)
        thread.start()
        yield
        thread.join()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"nonsense",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b"HTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\n{}",
    ],
    ids=repr,
)
def test_a_reply_that_is_none_is_not_noticed(own, said) -> None:
    folder = Path(own.store.uri)
    with answering(folder, said):
        assert reply_to(Show(node="x"), folder) is None


def test_a_server_of_another_version_is_not_asked(run, letters, served, monkeypatch) -> None:
    with letters.serve(0):
        before = client.identity
        monkeypatch.setattr(client, "identity", lambda folder: f"9{before(folder)}")
        assert run("query", QUESTION, "--index", "index")[0] == 0
    assert served == [False]


def test_a_server_answers_for_its_folder_alone(letters, served, tmp_path) -> None:
    asked = Show(node=letters.outline(budget=300)[0].node_id)
    with letters.serve(0):
        shutil.copytree("index", "other", ignore=shutil.ignore_patterns(NAME))
        Path("index").rename("moved")  # with the socket
        assert reply_to(asked, Path("moved")) is None
        Path("other").rename("index")
        assert reply_to(asked, Path("moved")) is None
        assert reply_to(asked, Path("index")) is None
    assert Path("moved", NAME).exists()
    assert answer_to(asked, "moved")["id"] == asked.node


def test_a_system_without_such_sockets(run, letters, served, monkeypatch, caplog) -> None:
    names = {name: value for name, value in vars(socket).items() if name != "AF_UNIX"}
    monkeypatch.setattr(local_socket, "socket", SimpleNamespace(**names))
    with letters.serve(0):
        assert run("query", QUESTION, "--index", "index")[0] == 0
    assert served == [False]
    assert "commands answer questions by themselves" in caplog.text


@pytest.mark.parametrize("question", ["Who is Jürgen Nordgerüst?", "Où est née Zoë?", "誰が来た?"])
def test_a_question_in_any_letters(run, letters, served, question) -> None:
    with letters.serve(0):
        asked = run("query", question, "--index", "index")
    assert served == [True]
    assert asked == run("query", question, "--index", "index")


def test_a_long_path(built, served, tmp_path) -> None:
    folder = tmp_path.joinpath(*["a long name of a folder" * 5] * 3)
    letters = HierarchicalIndex.open(shutil.copytree(built, folder))
    with letters.serve(0):
        found = answer_to(Retrieve(question=QUESTION), str(folder))
    assert served == [True]
    assert found == answer_to(Retrieve(question=QUESTION), str(folder))


def test_files_of_a_server_are_in_nobodys_way(own, tmp_path) -> None:
    folder = Path(own.store.uri)
    with own.serve(0):
        subprocess.run(["cp", "-r", folder, tmp_path / "copy"], check=True)
        assert own.verify().ok
        node = own.store.get_nodes()[0]
        own.store.add([TextNode(text=node.text, embedding=node.embedding)])
        own.delete("a.txt")
        assert own.verify().ok
        assert reply_to(Retrieve(question="harbour"), folder) is not None
        assert reply_to(Retrieve(question="harbour"), tmp_path / "copy") is None
    assert not (folder / NAME).exists()
    assert (folder / LOCK).stat().st_size == 0
    assert HierarchyStore(tmp_path / "copy").get_nodes()
