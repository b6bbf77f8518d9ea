"""A folder of documents with an index, and command lines that are run in a copy of it."""

import json
import os
import shlex
import signal
import subprocess
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

import hierindex.cli
from hierindex.cli.output import print_note

LONG = "minutes-of-the-board-of-trustees-of-the-harbour-authority-of-the-seventh-of-may.txt"
REPORT = "# Report on the bridge\n\n" + "\n\n".join(
    f"## Month {i}\n\nThe bridge was closed in month {i} because the storm had bent span {i}. "
    f"The mason repaired pier {i} and the smith mended {i} of its bolts. No boat was lost."
    for i in range(1, 9)
)


HEAVY = {"rich", "numpy", "torch", "llama_index", "lancedb", "openvino"}


def imported_by(*lines: str) -> set[str]:
    """Run command lines in one process of their own; return its modules."""
    code = f"""if True:
        import sys
        from hierindex.cli.app import main
        for words in {[*map(shlex.split, lines)]}:
            sys.argv = ["hierindex", *words]
            try:
                main()
            except SystemExit:
                pass
        print(*sys.modules, file=sys.stderr)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {*done.stderr.splitlines()[-1].split()}


def minutes(topic: str) -> str:
    return "\n\n".join(
        f"In session {i} the board spoke about {topic} and gave {i} pounds to the keeper. "
        f"A letter about {topic} came from the mayor, and the clerk read letter {i} aloud."
        for i in range(1, 9)
    )


def write_documents(folder: Path) -> None:
    files = {
        "docs/report.md": REPORT,
        f"docs/{LONG}": minutes("the lighthouse"),
        "docs/letters.txt": minutes("the ferry"),
        "more-docs/addition.txt": minutes("the school"),
        "notes.txt": minutes("the mill"),
    }
    rows = {
        "documents": [{"doc_id": name, "text": text} for name, text in files.items()],
        "questions": [
            {"qid": "q", "doc_id": "docs/report.md", "question": "Why was the bridge closed?"}
            | {"start": 40, "end": 120}
        ],
    }
    for name, of in rows.items():
        files[f"questions/{name}.jsonl"] = "".join(f"{json.dumps(row)}\n" for row in of)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    """A folder with documents, evaluation data and an index of two generations."""
    from hierindex import HierarchicalIndex

    folder = tmp_path_factory.mktemp("prepared")
    write_documents(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        index = HierarchicalIndex.build("docs", "my-index", chunk_size=64)
        index.update("notes.txt")
    return folder


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch) -> Path:
    """A copy of it, which is the working directory."""
    copied = copytree(prepared, tmp_path / "work")
    monkeypatch.chdir(copied)
    return copied


@pytest.fixture
def stopped(monkeypatch) -> list[Callable[[str], None]]:
    """Ends a command that runs until it is stopped, as soon as it says so.

    Before that, each function of the list gets what the command has said.
    """
    told, meanwhile = [], []

    def print_and_stop(sentence: str) -> None:
        print_note(sentence)
        told.append(sentence)
        if "Ctrl-C" in sentence:
            for function in meanwhile:
                function("\n".join(told))
            os.kill(os.getpid(), signal.SIGINT)

    for module in vars(hierindex.cli).values():
        if hasattr(module, "until_stopped") and hasattr(module, "print_note"):
            monkeypatch.setattr(module, "print_note", print_and_stop)
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    return meanwhile
