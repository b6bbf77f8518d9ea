"""A question that is asked while trees are published is answered from one of them."""

from itertools import cycle

import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import TextNode
from readers import QUESTION, TREES, WAYS, words_of
from records import replace_all

from hierindex import HierarchyRetriever, HierarchyStore, SemanticHierarchy
from hierindex.errors import InputError
from hierindex.store.connection import Connection


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A store in which another tree is published before each opening of its table."""
    store, opened = HierarchyStore(tmp_path), Connection.open
    writer = HierarchyStore(tmp_path)
    replace_all(writer, TREES["old"])
    others, openings = cycle(["new", "old"]), []

    def publish_first(self):
        if self is store.table.connection:
            openings.append(self)
            replace_all(writer, TREES[next(others)])
        return opened(self)

    monkeypatch.setattr(Connection, "open", publish_first)
    return store, openings


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_every_schedule_gives_one_tree(published, options):
    store, openings = published
    retriever = HierarchyRetriever(store, HashingEmbedding(), **options)
    openings.clear()
    found = retriever.retrieve(QUESTION)
    assert found
    assert len(words_of(found)) == 1
    assert len(openings) == 1


def test_a_model_is_compared_with_the_tree_that_is_asked(tmp_path):
    """An object that is open while a build with another model is published."""

    class Other(HashingEmbedding):
        model_name: str = "other"

    store = HierarchyStore(tmp_path)
    replace_all(store, TREES["old"])
    retriever = HierarchyRetriever(store, HashingEmbedding())
    assert retriever.retrieve(QUESTION)
    grow = SemanticHierarchy(embed_model=Other(), summary_tokens=40)
    chunks = [TextNode(text=f"A lantern {i}.") for i in range(3)]
    replace_all(HierarchyStore(tmp_path), grow(chunks))
    with pytest.raises(InputError, match=r"model 'other', not with 'hashing'"):
        retriever.retrieve(QUESTION)
    assert HierarchyRetriever(store, Other()).retrieve(QUESTION)
