import os
import shutil
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pytest
from filelock import FileLock
from tiny_models import on_torch, save_tiny_sentence_transformer

from hierindex import load_embed_model
from hierindex.models import export

WINDOW = 40  # no multiple of 16, to which texts are padded


@pytest.fixture
def models_read_once():
    """Not here: reading them is what is tested."""


@pytest.fixture(scope="package")
def folder(tmp_path_factory):
    """Of a tiny sentence-transformers model."""
    folder = tmp_path_factory.mktemp("tiny")
    save_tiny_sentence_transformer(folder, WINDOW)
    return str(folder)


@pytest.fixture(scope="package")
def tiny(folder, of_all_workers):
    """The model in that folder, exported once to a cache of its own, which shows nothing."""
    cache = of_all_workers / "exported"
    with pytest.MonkeyPatch.context() as patch, FileLock(f"{cache}.lock"):
        patch.setenv("XDG_CACHE_HOME", str(cache))
        with nothing_shown():
            return load_embed_model(folder)


@contextmanager
def nothing_shown():
    """Nothing is written to the terminal meanwhile."""
    with TemporaryFile("w+") as file, redirect_stdout(file), redirect_stderr(file):
        before = [os.dup(descriptor) for descriptor in (1, 2)]
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        try:
            yield
        finally:
            for descriptor, old in zip((1, 2), before, strict=True):
                os.dup2(old, descriptor)
                os.close(old)
        file.seek(0)
        assert file.read() == ""


@pytest.fixture(scope="package")
def torchs_tiny(folder):
    """The model in that folder on torch, loaded once."""
    return on_torch(folder)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A user's cache folder that nobody has used."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "hierindex" / "exported"


@pytest.fixture
def graph_of_tiny(tiny, monkeypatch):
    """Exports copy the tiny model's graph, which takes seconds to write and to compare."""

    def copy(_, graph):
        for file in ("model.xml", "model.bin"):
            shutil.copy(Path(tiny.folder) / file, graph.with_name(file))

    monkeypatch.setattr(export, "_write_graph", copy)
    monkeypatch.setattr(export, "_results", lambda _: np.eye(2))
