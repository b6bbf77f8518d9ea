import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import SENTENCES, on_torch

from hierindex import OpenVinoEmbedding, load_embed_model
from hierindex.models import export
from hierindex.models.embedder import fingerprint

REFUSED = "*-not-exportable-by-torch-*.txt"


@pytest.fixture
def loads(torchs_tiny):
    """How often the model on torch was asked for."""

    class Loads(list):
        def __call__(self):
            self.append(torchs_tiny)
            return torchs_tiny

    return Loads()


@pytest.mark.usefixtures("graph_of_tiny")
def test_a_model_is_exported_once(folder, own_cache, loads):
    made = [export.exported_folder(Path(folder), "", loads) for _ in range(3)]
    assert len(loads) == 1
    assert made[0] == made[1] == made[2]
    assert list(own_cache.iterdir()) == [made[0]]
    files = {"model.xml", "model.bin", "tokenizer.json", "card.json"}
    assert {path.name for path in made[0].iterdir()} == files


@pytest.mark.usefixtures("graph_of_tiny")
def test_what_a_model_is_given_before_a_text_is_part_of_it(folder, tiny, own_cache):
    def load():
        return on_torch(folder, query_instruction="grain ", text_instruction="salt ")

    exported = str(export.exported_folder(Path(folder), "x/y", load))
    made = OpenVinoEmbedding(folder=exported, precision=tiny.precision)
    assert Path(made.folder).name != Path(tiny.folder).name
    assert fingerprint(made) != fingerprint(tiny)
    for text in SENTENCES:
        with_prompt = tiny.get_text_embedding(f"salt {text}")
        assert made.get_text_embedding(text) == pytest.approx(with_prompt, abs=1e-5)
        asked = tiny.get_query_embedding(f"grain {text}")
        assert made.get_query_embedding(text) == pytest.approx(asked, abs=1e-5)


def test_a_model_that_cannot_be_exported_runs_on_torch(folder, own_cache, monkeypatch):
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    tried = []

    def refuse(*args, **kwargs):
        tried.append(args)
        raise RuntimeError("There is no such operator.")

    monkeypatch.setattr(torch.export, "export", refuse)
    for _ in range(2):
        model = load_embed_model(folder)
        assert isinstance(model, HuggingFaceEmbedding)
        assert model.embed_batch_size == 10
        assert len(model.get_text_embedding("salt")) == 16
    assert len(tried) == 1
    (noted,) = own_cache.rglob(REFUSED)
    assert "no such operator" in noted.read_text()


@pytest.mark.usefixtures("graph_of_tiny")
def test_a_graph_with_other_vectors_is_not_used(folder, own_cache, loads, monkeypatch):
    slightly_off = iter([np.eye(2), [[1, 0], [0.0148, 0.99989]]])
    monkeypatch.setattr(export, "_results", lambda _: np.array(next(slightly_off)))
    assert export.exported_folder(Path(folder), "", loads) is None
    monkeypatch.undo()
    (noted,) = own_cache.parent.rglob(REFUSED)
    assert "0.0148" in noted.read_text()


@pytest.mark.usefixtures("graph_of_tiny")
@pytest.mark.parametrize(
    ("fastest", "cosine", "kept"),
    [("bfloat16", 0.9995, "bfloat16"), ("bfloat16", 0.9985, "float32"), ("float32", 0, "float32")],
)
def test_a_model_that_bfloat16_harms_runs_in_float32(
    folder, own_cache, monkeypatch, fastest, cosine, kept
):
    in_bfloat16 = [[1, 0], [np.sqrt(1 - cosine**2), cosine]]
    results = iter([np.eye(2), np.eye(2), np.array(in_bfloat16)])  # first torch's, then float32
    monkeypatch.setattr(export, "fastest_precision", lambda: fastest)
    monkeypatch.setattr(export, "_results", lambda _: next(results))
    assert load_embed_model(folder).precision == kept
    assert load_embed_model(folder, precision="float32").precision == "float32"
    assert len([*own_cache.iterdir()]) == 1


@pytest.mark.usefixtures("graph_of_tiny")
def test_an_export_by_another_process_meanwhile_is_taken(folder, tiny, own_cache, loads):
    copy = own_cache / Path(tiny.folder).name

    def slow():
        shutil.copytree(tiny.folder, copy)  # the other process
        return loads()

    assert export.exported_folder(Path(folder), "", slow) == copy
    assert list(own_cache.iterdir()) == [copy]


@pytest.mark.usefixtures("graph_of_tiny")
def test_another_torch_may_export_what_this_one_does_not(folder, own_cache, loads, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(export, "version", lambda _: "0.1")
        patch.setattr(export, "_write_graph", lambda *_: 1 / 0)
        patch.setattr(export, "UNEXPORTABLE", (ZeroDivisionError,))
        assert export.exported_folder(Path(folder), "", loads) is None
        assert export.exported_folder(Path(folder), "", loads) is None
    assert len(loads) == 1
    assert export.exported_folder(Path(folder), "", loads) is not None


def test_without_a_cache_folder_a_model_runs_on_torch(folder, tmp_path, monkeypatch, caplog):
    from llama_index.embeddings.huggingface import HuggingFaceEmbedding

    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert isinstance(load_embed_model(folder), HuggingFaceEmbedding)
    assert "runs on torch" in caplog.text
