"""Functions and command lines in processes of their own, which need not import everything anew."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

# LanceDB is imported by what is warm and not used, as a fork does not have its threads.
IMPORTED = (
    "filelock hierindex.cli.app hierindex.cli.models lance_namespace "
    "llama_index.llms.openai_like nltk scipy.stats tokenizers warm writers"
).split()
LANCEDB = "ignore:lancedb fork support is experimental:RuntimeWarning"
_forks = multiprocessing.get_context("forkserver")


PATIENCE = 60  # seconds, for a machine that is busy


def until(holds: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait until a function returns something true."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)


def process(function: Callable[..., None], *arguments: Any) -> BaseProcess:
    """A started process that calls a function.

    It is forked from one that has imported what takes seconds to import.
    """
    with pytest.MonkeyPatch.context() as patch:  # what the one to fork from does not know else
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        patch.setenv("PYTHONWARNINGS", LANCEDB)
        _forks.set_forkserver_preload(IMPORTED)
        forkserver.ensure_running()
    made: BaseProcess = _forks.Process(target=function, args=arguments)
    made.start()
    return made


def started(arguments: list[str], folder: Path, terminal: str = "") -> BaseProcess:
    """A process that runs `hierindex` in a folder, with its output in the files `out` and `err`.

    Or in a terminal of that path.
    """
    return process(_run, arguments, folder, terminal)


def _run(arguments: list[str], folder: Path, terminal: str) -> None:
    os.chdir(folder)
    # As from a terminal, also where the tests run in the background, with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor, name in ((1, "out"), (2, "err")):
        new = os.O_CREAT | os.O_TRUNC | os.O_WRONLY
        os.dup2(os.open(terminal or name, os.O_RDWR if terminal else new), descriptor)
    if terminal:  # what stood there before may have been a file
        sys.stdout, sys.stderr = (os.fdopen(descriptor, "w", 1) for descriptor in (1, 2))
    sys.argv = ["hierindex", *arguments]
    from hierindex.cli.app import main

    main()
