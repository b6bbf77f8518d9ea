"""A pipeline's cache returns a tree only if nothing that shapes its nodes has changed."""

from functools import partial

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

from hierindex import Mixture, SemanticHierarchy
from hierindex.rules import Optimal
from hierindex.summarize import LLMRewriter, TwoStageSummarizer


class Instructed(HashingEmbedding):
    text_instruction: str = ""


class Every:
    """A rule of a user's own."""

    def __init__(self, rows):
        self.rows = rows

    def breakpoints(self, rows, caps):
        return np.arange(self.rows, len(rows), self.rows)


def is_grown(cache, embed_model=None, **options) -> bool:
    """Run a pipeline; return whether its tree was grown, and not taken from the cache."""
    model = embed_model or HashingEmbedding()
    chunks = [
        TextNode(text=f"The keeper {i} wrote a letter to Ada.", id_=f"n{i}", metadata={"to": i})
        for i in range(6)
    ]
    hierarchy = SemanticHierarchy(model, **options)
    IngestionPipeline(transformations=[hierarchy], cache=cache).run(nodes=chunks)
    return bool(model.batches)


def by_llm(prompt):
    return TwoStageSummarizer(LLMRewriter(MockLLM(), prompt=prompt))


@pytest.mark.filterwarnings("ignore::hierindex.errors.FallbackWarning")  # MockLLM's answers
@pytest.mark.parametrize(
    ("once", "then"),
    [
        (dict, lambda: {"embed_model": HashingEmbedding(dim=128)}),
        (
            lambda: {"embed_model": Instructed()},
            lambda: {"embed_model": Instructed(text_instruction="passage: ")},
        ),
        (lambda: {"rule": Optimal(rows=4)}, lambda: {"rule": Optimal(rows=3)}),
        (
            lambda: {"summarizer": by_llm("In {n_words} words: {text}")},
            lambda: {"summarizer": by_llm("Briefly, in {n_words} words: {text}")},
        ),
        (dict, lambda: {"mixture": Mixture(n_dims=5)}),
    ],
    ids="dimension,instruction,rule,prompt,mixture".split(","),
)
def test_only_the_same_settings_find_the_tree(once, then):
    cache = IngestionCache()
    assert is_grown(cache, **once())
    assert not is_grown(cache, **once())
    assert is_grown(cache, **then())
    assert not is_grown(cache, **then())


def test_weights_that_were_trained_again_grow_another_tree(tmp_path):
    (tmp_path / "weights").write_text("1")
    cache = IngestionCache()
    grown = partial(HashingEmbedding, model_name=str(tmp_path))
    assert is_grown(cache, grown())
    assert not is_grown(cache, grown())
    (tmp_path / "weights").write_text("22")
    assert is_grown(cache, grown())


@pytest.mark.parametrize(
    "options",
    [{"rule": Every(2)}, {"metadata_rules": {"to": lambda values: values[0]}}],
    ids=["rule", "merge"],
)
def test_a_rule_of_the_users_own_finds_no_tree(options):
    cache = IngestionCache()
    assert is_grown(cache, **options)
    assert is_grown(cache, **options)


@pytest.mark.parametrize("name", ["", "unknown"])
def test_a_model_that_cannot_be_known_finds_no_tree(name):
    cache = IngestionCache()
    assert is_grown(cache, HashingEmbedding(model_name=name))
    assert is_grown(cache, HashingEmbedding(model_name=name))
