import shutil

import numpy as np
import pytest
from tiny_models import SENTENCES, save_tiny_sentence_transformer

from hierindex import OpenVinoEmbedding, load_embed_model, load_reranker
from hierindex.errors import InputError, ModelError
from hierindex.models import load


def test_the_bundled_model_by_its_short_name(embed_model):
    short = load_embed_model(embed_model.model_name.rpartition("/")[2])
    assert isinstance(short, OpenVinoEmbedding)
    assert short.folder == embed_model.folder
    text = SENTENCES[0]
    assert short.get_text_embedding(text) == embed_model.get_text_embedding(text)


@pytest.mark.usefixtures("graph_of_tiny")
def test_other_weights_are_another_export(tiny, tmp_path, own_cache):
    save_tiny_sentence_transformer(tmp_path / "other", window=16)
    other = load_embed_model(str(tmp_path / "other"))
    assert (other.max_length, tiny.max_length) == (16, 40)
    assert list(own_cache.iterdir()) == [load.Path(other.folder)]
    assert load.Path(other.folder).name != load.Path(tiny.folder).name


@pytest.mark.parametrize("load_model", [load_embed_model, load_reranker])
def test_an_unknown_model_and_precision(no_hub, load_model):
    for name in ("nowhere", "no-one/no-such-model", "", "a b/c d/e"):
        with pytest.raises(ModelError, match=repr(name)):
            load_model(name)
    with pytest.raises(InputError, match=r"bfloat16 or float32, got 'int8'"):
        load_model("nowhere", precision="int8")


@pytest.mark.parametrize("broken", ["modules.json", "config.json", "model.safetensors"])
def test_a_folder_of_a_broken_model(no_hub, own_cache, tmp_path, broken):
    save_tiny_sentence_transformer(tmp_path / "model")
    path = next((tmp_path / "model").rglob(broken))
    path.write_bytes(b"{")
    with pytest.raises(ModelError):
        load_embed_model(str(tmp_path / "model"))
    assert list(own_cache.iterdir()) == []


@pytest.mark.usefixtures("graph_of_tiny")
@pytest.mark.parametrize("is_there", [True, False])
def test_a_model_of_the_hub_is_exported_the_first_time(
    folder, torchs_tiny, own_cache, monkeypatch, is_there
):
    found = iter([load.Path(folder)] * 2 if is_there else [None, load.Path(folder)])
    asked = []

    def loaded(*source):
        asked.append(source)
        return torchs_tiny

    monkeypatch.setattr(load, "_folder", lambda *_: next(found))
    monkeypatch.setattr(load, "_on_torch", loaded)
    model = load_embed_model("someone/tiny")
    assert (type(model), model.model_name) == (OpenVinoEmbedding, "someone/tiny")
    assert {source for _, source, _ in asked} == {"someone/tiny"}


def test_a_model_runs_on_torch_where_it_is_asked_to(folder, monkeypatch):
    monkeypatch.setattr(load, "accelerator", lambda: "meta")
    monkeypatch.setattr(load, "_on_torch", lambda name, source, device: (name, device))
    assert load_embed_model(folder) == (folder, "meta")
    assert load_embed_model(folder, device="cuda:1") == (folder, "cuda:1")
    monkeypatch.undo()
    assert load_embed_model(device="meta").embed_batch_size == 128
    assert isinstance(load_embed_model(device="cpu"), OpenVinoEmbedding)


@pytest.mark.usefixtures("graph_of_tiny")
def test_a_copy_of_a_model_is_not_exported_again(
    folder, torchs_tiny, tmp_path, own_cache, monkeypatch
):
    monkeypatch.setattr(load, "_on_torch", lambda *_: torchs_tiny)
    first = load_embed_model(folder)
    copy = shutil.copytree(folder, tmp_path / "copy")
    monkeypatch.setattr(load, "_on_torch", lambda *_: 1 / 0)
    second = load_embed_model(str(copy))
    assert second.folder == first.folder
    np.testing.assert_array_equal(
        second.get_text_embedding(SENTENCES[0]), first.get_text_embedding(SENTENCES[0])
    )
