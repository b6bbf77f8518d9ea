"""Command lines in processes of their own, which need not import everything anew."""

import multiprocessing
import os
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

# Not lancedb nor onnxruntime: they start threads when imported, which a fork does not have.
IMPORTED = (
    "hierindex.cli.app hierindex.cli.choose lance_namespace llama_index.llms.openai_like nltk "
    "scipy.stats torch transformers"
).split()
_forks = multiprocessing.get_context("forkserver")


def started(arguments: list[str], folder: Path) -> BaseProcess:
    """A process that runs `hierindex` in a folder, its output in the files `out` and `err` there.

    It is forked from one that has imported what takes seconds to import.
    """
    _forks.set_forkserver_preload(IMPORTED)
    process = _forks.Process(target=_run, args=(arguments, folder))
    process.start()
    return process


def _run(arguments: list[str], folder: Path) -> None:
    os.chdir(folder)
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_CREAT | os.O_TRUNC | os.O_WRONLY), descriptor)
    sys.argv = ["hierindex", *arguments]
    from hierindex.cli.app import main

    main()
