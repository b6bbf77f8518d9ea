from functools import partial

import numpy as np
import pytest
import torch
from fakes import HashingEmbedding
from filelock import FileLock
from store.trees import tree
from tiny_models import SENTENCES, save_cross_encoder, save_tiny_bert

from hierindex import HierarchyRetriever, HierarchyStore, load_reranker
from hierindex.errors import ModelError

QUESTION = "Who wrote a letter?"
TEXTS = ["", "salt", *SENTENCES, " ".join(SENTENCES * 9), "灯台守。", "  Two\nlines  "]


@pytest.fixture(scope="module")
def pair_folder(tmp_path_factory):
    """Of a tiny cross-encoder."""
    folder = tmp_path_factory.mktemp("pair")
    save_cross_encoder(folder)
    return str(folder)


@pytest.fixture(scope="module")
def load(pair_folder, of_all_workers):
    """Loads the model, exported once, in a precision."""
    cache = of_all_workers / "pair-exported"
    with pytest.MonkeyPatch.context() as patch, FileLock(f"{cache}.lock"):
        patch.setenv("XDG_CACHE_HOME", str(cache))
        load_reranker(pair_folder)
        yield partial(load_reranker, pair_folder)


@pytest.fixture(scope="module")
def exported(load):
    return load(precision="float32")


def on_torch(folder, **options):
    from sentence_transformers import CrossEncoder  # takes seconds

    return CrossEncoder(folder, device="cpu", **options)


# Of the range of the scores; what this model of random weights scores, rounding changes most.
@pytest.mark.parametrize(("precision", "within"), [("float32", 1e-4), ("bfloat16", 0.15)])
def test_scores_are_those_of_sentence_transformers(load, pair_folder, precision, within):
    model = load(precision=precision)
    assert type(model).__name__ == "OpenVinoCrossEncoder"
    torchs = on_torch(pair_folder, activation_fn=torch.nn.Identity())
    expected = torchs.predict([(QUESTION, text) for text in TEXTS])
    assert np.ptp(expected) > 0.1
    scores = model.rank(QUESTION, TEXTS)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=within * np.ptp(expected))
    if precision == "float32":
        assert np.argsort(scores).tolist() == np.argsort(expected).tolist()


def test_a_score_depends_on_its_pair_alone(exported):
    scores = exported.rank(QUESTION, TEXTS)
    assert scores == [exported.rank(QUESTION, [text])[0] for text in TEXTS]
    assert exported.rank("Where is the salt?", TEXTS) != scores
    assert exported.rank(QUESTION, ["caf\udce9"]) == exported.rank(QUESTION, ["caf\ufffd"])
    assert exported.rank(QUESTION, []) == []


def test_a_cross_encoder_that_cannot_be_exported_runs_on_torch(
    exported, pair_folder, own_cache, tmp_path, monkeypatch
):
    on_torch(pair_folder).save_pretrained(str(tmp_path / "saved"))  # as sentence-transformers does
    monkeypatch.setattr(torch.export, "export", lambda *_, **__: {}["operator"])
    model = load_reranker(str(tmp_path / "saved"))
    assert type(model).__name__ == "TorchCrossEncoder"
    assert model.max_length == 64
    np.testing.assert_allclose(
        model.rank(QUESTION, TEXTS), exported.rank(QUESTION, TEXTS), atol=1e-4
    )


def test_a_retriever_names_a_reranker_that_cannot_be_loaded(no_hub, tmp_path):
    (store := HierarchyStore(tmp_path)).add(tree())
    with pytest.raises(ModelError, match="'nowhere' cannot be loaded"):
        HierarchyRetriever(store, HashingEmbedding(), rerank="nowhere").retrieve(QUESTION)


def test_a_model_of_several_labels_or_of_another_kind(no_hub, own_cache, tmp_path):
    save_cross_encoder(tmp_path / "three", num_labels=3)
    with pytest.raises(ModelError, match=r"one label, but '.*three' is a .* with 3 labels; name"):
        load_reranker(str(tmp_path / "three"))
    save_tiny_bert(tmp_path / "encoder")
    with pytest.raises(ModelError, match=r"'.*encoder' is a BertModel"):
        load_reranker(str(tmp_path / "encoder"))
    assert list(own_cache.iterdir()) == []
