"""A pipeline's cache returns a tree only if nothing that shapes its nodes has changed."""

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from fakes import HashingEmbedding
from llama_index.core.ingestion import IngestionCache, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

from hierindex import Mixture, SemanticHierarchy
from hierindex.summarize import LLMRewriter, TwoStageSummarizer
from hierindex.tree.recipe import code_digest


class Instructed(HashingEmbedding):
    text_instruction: str = ""


class Every:
    """A rule of a user's own."""

    def __init__(self, rows):
        self.rows = rows

    def breakpoints(self, rows, caps):
        return np.arange(self.rows, len(rows), self.rows)


class EveryThird(Every):
    step = 3

    def breakpoints(self, rows, caps):
        return np.arange(self.step, len(rows), self.step)


def first(n):
    return lambda values: values[:n]


def recursive():
    def depth(values):
        return depth(values[1:]) + 1 if values else 0

    return depth


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


def merged(rule):
    return {"metadata_rules": {"to": rule}}


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
        (lambda: {"rule": Every(2)}, lambda: {"rule": Every(3)}),
        (lambda: {"rule": Every(2)}, lambda: {"rule": EveryThird(2)}),
        (lambda: merged(lambda values: values[0]), lambda: merged(lambda values: values[-1])),
        (lambda: merged(first(1)), lambda: merged(first(2))),
        (lambda: merged(max), lambda: merged(np.max)),
        (
            lambda: merged(partial(sorted, reverse=True)),
            lambda: merged(partial(sorted, reverse=False)),
        ),
        (lambda: merged(recursive()), lambda: merged(first(3))),
        (
            lambda: {"summarizer": by_llm("In {n_words} words: {text}")},
            lambda: {"summarizer": by_llm("Briefly, in {n_words} words: {text}")},
        ),
        (dict, lambda: {"summary_tokens": 50}),
        (dict, lambda: {"mixture": Mixture(covariance="full")}),
    ],
    ids=(
        "dimension,instruction,rule's values,rule's code,merge's code,closure,builtin,partial,"
        "recursive,prompt,budget,mixture"
    ).split(","),
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


def test_an_attribute_in_the_body_of_a_rules_class_grows_another_tree(monkeypatch):
    cache = IngestionCache()
    assert is_grown(cache, rule=EveryThird(2))
    assert not is_grown(cache, rule=EveryThird(2))
    monkeypatch.setattr(EveryThird, "step", 4)
    assert is_grown(cache, rule=EveryThird(2))
    assert not is_grown(cache, rule=EveryThird(2))


@pytest.mark.parametrize("name", ["", "unknown"])
def test_a_model_that_cannot_be_known_finds_no_tree(name):
    cache = IngestionCache()
    assert is_grown(cache, HashingEmbedding(model_name=name))
    assert is_grown(cache, HashingEmbedding(model_name=name))


CODE = """
from functools import partial
from hierindex.tree.recipe import code_digest
def merge(values, n=2, *, among=frozenset(("a", "b", "c"))):
    return [value for value in values if value in {"x", "y", "z"} and (lambda v: v in among)(value)]
class Merge:
    def __call__(self, values):
        return merge(values)
print([code_digest(each) for each in (merge, partial(merge, n=3), Merge(), Merge().__call__, max)])
"""


def test_equal_code_is_equal_in_another_process():
    digests = {
        subprocess.run(
            [sys.executable, "-c", CODE],
            check=True,
            capture_output=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in "12"
    }
    assert len(digests) == 1


def test_what_cannot_be_pickled_is_never_the_same():
    unknown = (i for i in range(3))
    assert code_digest(unknown) != code_digest(unknown)
