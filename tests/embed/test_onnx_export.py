import hashlib
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from tiny_models import SENTENCES

from hierindex import OnnxEmbedding, load_embed_model
from hierindex.embed import onnx_export
from hierindex.embed.model_identity import fingerprint
from hierindex.embed.onnx import CARD, MODEL, TOKENIZER


@pytest.fixture
def loads(folder):
    """How often the model on torch was asked for."""

    class Loads(list):
        def __call__(self):
            self.append(folder)
            return HuggingFaceEmbedding(folder, device="cpu")

    return Loads()


@pytest.mark.usefixtures("graph_of_tiny")
def test_a_model_is_exported_once(folder, own_cache, loads):
    made = [onnx_export.exported_folder(Path(folder), "", loads) for _ in range(3)]
    assert len(loads) == 1
    assert made[0] == made[1] == made[2]
    assert list(own_cache.iterdir()) == [made[0]]
    assert {path.name for path in made[0].iterdir()} == {MODEL, TOKENIZER, CARD}


@pytest.mark.usefixtures("graph_of_tiny")
@pytest.mark.parametrize(
    ("file", "damage"), [(MODEL, b""), (TOKENIZER, b"{}"), (CARD, b"{}"), (CARD, None)], ids=str
)
def test_a_damaged_export_is_made_again(folder, tiny, own_cache, loads, file, damage):
    copy = own_cache / Path(tiny.folder).name
    shutil.copytree(tiny.folder, copy)
    assert onnx_export.exported_folder(Path(folder), "", loads) == copy
    assert loads == []
    if damage is None:
        (copy / file).unlink()
    else:
        (copy / file).write_bytes(damage)
    assert onnx_export.exported_folder(Path(folder), "", loads) == copy
    assert len(loads) == 1
    again = OnnxEmbedding(folder=str(copy))
    assert again.get_text_embedding("salt") == tiny.get_text_embedding("salt")


@pytest.mark.usefixtures("graph_of_tiny")
def test_what_a_model_is_given_before_a_text_is_part_of_it(folder, tiny, own_cache):
    def load():
        return HuggingFaceEmbedding(
            folder, device="cpu", query_instruction="grain ", text_instruction="salt "
        )

    made = OnnxEmbedding(folder=str(onnx_export.exported_folder(Path(folder), "x/y", load)))
    assert Path(made.folder).name != Path(tiny.folder).name
    assert fingerprint(made) != fingerprint(tiny)
    for text in SENTENCES:
        with_prompt = tiny.get_text_embedding(f"salt {text}")
        assert made.get_text_embedding(text) == pytest.approx(with_prompt, abs=1e-5)
        asked = tiny.get_query_embedding(f"grain {text}")
        assert made.get_query_embedding(text) == pytest.approx(asked, abs=1e-5)


def test_a_model_that_cannot_be_exported_runs_on_torch(folder, own_cache, monkeypatch):
    tried = []

    def refuse(*args, **kwargs):
        tried.append(args)
        raise torch.onnx.OnnxExporterError("There is no such operator.")

    monkeypatch.setattr(torch.onnx, "export", refuse)
    for _ in range(2):
        model = load_embed_model(folder)
        assert isinstance(model, HuggingFaceEmbedding)
        assert len(model.get_text_embedding("salt")) == 16
    assert len(tried) == 1
    (noted,) = own_cache.rglob(onnx_export._reason())
    assert "no such operator" in noted.read_text()


@pytest.mark.usefixtures("graph_of_tiny")
def test_a_graph_with_other_vectors_is_not_used(folder, own_cache, loads, monkeypatch):
    slightly_off = iter([np.eye(2), [[1, 0], [0.0148, 0.99989]]])
    monkeypatch.setattr(onnx_export, "_results", lambda _: np.array(next(slightly_off)))
    assert onnx_export.exported_folder(Path(folder), "", loads) is None
    monkeypatch.undo()
    (noted,) = own_cache.parent.rglob(onnx_export._reason())
    assert "0.0148" in noted.read_text()


@pytest.mark.usefixtures("graph_of_tiny")
def test_an_export_by_another_process_meanwhile_is_taken(folder, tiny, own_cache, loads):
    copy = own_cache / Path(tiny.folder).name

    def slow():
        shutil.copytree(tiny.folder, copy)  # the other process
        return loads()

    assert onnx_export.exported_folder(Path(folder), "", slow) == copy
    assert list(own_cache.iterdir()) == [copy]
    digest = hashlib.sha256((copy / MODEL).read_bytes()).hexdigest()
    assert json.loads((copy / CARD).read_text())["digests"][MODEL] == digest


@pytest.mark.usefixtures("graph_of_tiny")
def test_another_torch_may_export_what_this_one_does_not(folder, own_cache, loads, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(onnx_export, "version", lambda _: "0.1")
        patch.setattr(onnx_export, "_write_graph", lambda *_: 1 / 0)
        patch.setattr(onnx_export, "UNEXPORTABLE", (ZeroDivisionError,))
        assert onnx_export.exported_folder(Path(folder), "", loads) is None
        assert onnx_export.exported_folder(Path(folder), "", loads) is None
    assert len(loads) == 1
    assert onnx_export.exported_folder(Path(folder), "", loads) is not None


def test_without_a_cache_folder_a_model_runs_on_torch(folder, tmp_path, monkeypatch, caplog):
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert isinstance(load_embed_model(folder), HuggingFaceEmbedding)
    assert "runs on torch" in caplog.text


@pytest.mark.parametrize(
    ("module", "limits"),
    [
        (SimpleNamespace(is_causal=True), {}),
        (SimpleNamespace(), {"sliding_window": 128}),
        (SimpleNamespace(is_causal=False), {"softcap": 50.0}),
    ],
)
def test_attention_that_is_limited_is_not_exported(module, limits):
    x = torch.ones((1, 2, 3, 4))
    with pytest.raises(ValueError, match="attend"):
        onnx_export._attend(module, x, x, x, None, scaling=1.0, **limits)
