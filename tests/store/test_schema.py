from datetime import date

import pytest
from hypothesis import given
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from node_strategies import COLLECTIONS
from records import as_text_nodes, replace_all

from hierindex import HierarchyStore
from hierindex.errors import InputError


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return HierarchyStore(tmp_path_factory.mktemp("index"))


@given(COLLECTIONS)
def test_nodes_come_back_as_they_were(store, made):
    collection = as_text_nodes(made)
    replace_all(store, collection)
    assert store.get_nodes() == collection
    assert store.get_nodes([node.node_id for node in collection[::-1]]) == collection[::-1]


@pytest.mark.parametrize(
    "options",
    [
        {"relationships": {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="\ud800")}},
        {
            "relationships": {
                NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d", metadata={"a": "\ud800"})
            }
        },
        {"excluded_llm_metadata_keys": ["\ud800"]},
        {"metadata": {"a": "\ud800"}},
        {"metadata": {"a": date(2026, 1, 2)}},
        {"metadata": {"a": {1, 2}}},
        {"text": "\ud800"},
    ],
    ids=str,
)
def test_what_cannot_be_written_is_named(store, options):
    node = TextNode(**{"id_": "n", "text": "", "embedding": [1.0], **options})
    with pytest.raises(InputError, match="node 'n' must be JSON and its text Unicode"):
        store.add([node])
