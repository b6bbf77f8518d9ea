import asyncio

import httpx
import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import TextNode

from hierindex import (
    ExtractiveSynthesizer,
    HierarchicalIndex,
    HierarchyRetriever,
    HierarchyStore,
    HierindexError,
    SemanticHierarchy,
)


class Down(HashingEmbedding):
    """Fails whatever it is asked."""

    error: Exception

    model_config = HashingEmbedding.model_config | {"arbitrary_types_allowed": True}

    def _vector(self, text):
        raise self.error


def embed(model, store):
    SemanticHierarchy(model)([TextNode(text="A text.")])


def retrieve(model, store):
    HierarchyRetriever(store, model).retrieve("Why?")


def aretrieve(model, store):
    asyncio.run(HierarchyRetriever(store, model).aretrieve("Why?"))


def ask(model, store):
    HierarchicalIndex(store, model).ask("Why was the bridge closed?")


def answer(model, store):
    ExtractiveSynthesizer(model).get_response("Why?", ["The bridge was closed for repairs."])


calls = pytest.mark.parametrize("call", [embed, retrieve, aretrieve, ask, answer])


@calls
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (httpx.ConnectError("no"), "cannot be used: nothing answers at its address"),
        (httpx.ReadTimeout("timed out"), "failed to answer: .* in time"),
        (ConnectionResetError("reset"), "failed to answer: reset"),
    ],
    ids=["connect", "timeout", "reset"],
)
def test_a_service_that_fails_is_named(tmp_path, call, error, said):
    with pytest.raises(HierindexError, match=rf"^The embedding model 'hashing' {said}[^\n]*\.$"):
        call(Down(error=error), HierarchyStore(tmp_path))


@calls
def test_what_is_no_failure_of_a_service_passes(tmp_path, call):
    error = KeyError("word")
    with pytest.raises(KeyError) as caught:
        call(Down(error=error), HierarchyStore(tmp_path))
    assert caught.value is error
