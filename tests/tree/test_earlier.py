"""Trees that are grown again after edits: what stays, and what a model is asked for."""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from fakes import HashingEmbedding
from guarantees import check_links, check_tree
from histories import documents
from llama_index.core.node_parser import SentenceSplitter
from store.trees import CountingSummarizer

from hierindex import (
    DocumentHierarchy,
    HierarchicalIndex,
    Node,
    RaptorHierarchy,
    SemanticHierarchy,
)
from hierindex.core.membership import from_groups
from hierindex.core.tree import ByMixture
from hierindex.tree import earlier

WORDS = "harbour sail mast anchor flour yeast oven dough nova orbit comet moon".split()
KINDS = [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy]


def texts_of(n_documents: int) -> dict[str, str]:
    """Documents of some paragraphs, each about two of the words."""
    draw = random.Random(7)
    return {
        f"{i:03}.txt": "\n\n".join(
            " ".join(
                f"In {i} the {draw.choice(WORDS[i % 4 * 3 : i % 4 * 3 + 3])} and the "
                f"{draw.choice(WORDS)} of part {part} meet {draw.randint(1, 999)}."
                for _ in range(3)
            )
            for part in range(3)
        )
        for i in range(n_documents)
    }


class Held:
    """An index of texts by name, which is updated."""

    def __init__(self, folder, hierarchy, texts, chunk_size=64) -> None:
        splitter = SentenceSplitter(chunk_size=chunk_size, chunk_overlap=0)
        self.given = {"hierarchy": hierarchy, "splitter": splitter}
        self.index = HierarchicalIndex.build(documents(texts), folder, **self.given)

    def change(self, texts=(), gone=()) -> list[Node]:
        """Update some documents and delete others; return all nodes."""
        if texts:
            self.index.update(documents(texts), **self.given)
        for document in gone:
            self.index.delete(document, hierarchy=self.given["hierarchy"])
        return self.nodes

    @property
    def nodes(self) -> list[Node]:
        return self.index.store.snapshot().nodes()


def hierarchy_of(kind, **options):
    return kind(embed_model=HashingEmbedding(), **{"max_children": 4, **options})


@pytest.fixture(autouse=True)
def searched(monkeypatch) -> None:
    """Small levels are not read as a whole, but searched as large ones are."""
    monkeypatch.setattr(earlier, "FEW", 3)


@pytest.mark.parametrize("kind", KINDS)
def test_one_edit_costs_the_summaries_above_it(kind, tmp_path) -> None:
    texts = texts_of(12)
    summarizer = CountingSummarizer()
    held = Held(tmp_path, hierarchy_of(kind, summarizer=summarizer), texts)
    n_summaries = sum(summarizer.calls)
    summarizer.calls.clear()
    edited = texts["005.txt"] + "\n\nThe harbour of 5 has a new mast and an old anchor."
    nodes = held.change({"005.txt": edited})
    n_levels = 1 + max(node.level for node in nodes)
    assert 0 < sum(summarizer.calls) <= min(3 * n_levels, n_summaries / 2)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_with_a_root_has_one_after_an_edit(kind, tmp_path) -> None:
    texts = texts_of(10)
    held = Held(tmp_path, hierarchy_of(kind), texts)
    check_tree(held.change(gone=["005.txt"]))


def test_a_taller_document_lifts_the_levels_above_documents_and_they_sink_without_it(
    tmp_path,
) -> None:
    texts = texts_of(14)
    held = Held(tmp_path, hierarchy_of(SemanticHierarchy), texts)
    before = of_documents(held.nodes)
    lifted = held.change({"tall.txt": "\n\n".join(texts.values()) * 2})
    check_tree(lifted)
    sunk = held.change(gone=["tall.txt"])
    assert document_levels(sunk) < document_levels(lifted)
    assert of_documents(sunk) == before


def of_documents(nodes) -> dict[str, str]:
    return {node.id: node.text for node in nodes if len(node.documents) == 1}


def document_levels(nodes) -> int:
    return max(node.level for node in nodes if len(node.documents) == 1)


def short_texts(n: int) -> dict[str, str]:
    return {f"{i}": f"{' '.join(random.Random(i).choices(WORDS, k=12))} {i}." for i in range(n)}


@pytest.mark.parametrize(
    "n", [27, *(pytest.param(n, marks=pytest.mark.slow) for n in (30, 33, 36))]
)
def test_neighbours_that_are_only_asked_stay_as_they_are(n, tmp_path) -> None:
    tree = hierarchy_of(DocumentHierarchy, max_children=3, summary_tokens=32, max_tokens=90)
    texts = short_texts(n + 1)
    new = {f"{n}": texts.pop(f"{n}")}
    check_links(Held(tmp_path, tree, texts).change(new))


@dataclass(frozen=True)
class Soft(ByMixture):
    """One group of two rows is within another one; other rows are in pairs."""

    def __call__(self, rows):
        if len(rows) != 11:
            return super().__call__(rows)
        groups = [[0, 1, 2], [0, 1], [3, 4], [5, 6], [7, 8], [9, 10]]
        return from_groups([(np.array(group), np.ones(len(group))) for group in groups], 11)


class SoftHierarchy(RaptorHierarchy):
    def _groupers(self):
        return [], [Soft(self.seed, self._caps(), self.mixture)]


def test_a_group_that_becomes_another_one_is_that_group(tmp_path) -> None:
    texts = {f"{i:02}": f"harbour {i} sail {i * 7}." for i in range(11)}
    tree = SoftHierarchy(HashingEmbedding(), max_children=3)
    check_links(Held(tmp_path, tree, texts).change(gone=["02"]))


def test_a_level_at_which_nothing_fits_together_is_no_level(tmp_path) -> None:
    tree = RaptorHierarchy(HashingEmbedding(), max_children=2, max_tokens=100)
    texts = {f"{i:02}": " ".join(f"w{i}x{j}" for j in range(90 if i > 1 else 5)) for i in range(12)}
    nodes = Held(tmp_path, tree, texts, 1024).change(gone=["00"])
    assert {node.level_max for node in nodes} == {0}
