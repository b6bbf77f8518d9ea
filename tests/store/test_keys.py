"""Keys of filters that no chunk has."""

import pytest
from fakes import HashingEmbedding
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from hierindex import HierarchyStore, SemanticHierarchy
from hierindex.errors import InputError


def chunk(i: int, document: str, source: dict | None = None, **metadata) -> TextNode:
    info = RelatedNodeInfo(node_id=document, metadata=source or {})
    return TextNode(
        text=f"The lantern {i} of {document}.",
        metadata=metadata,
        relationships={NodeRelationship.SOURCE: info},
    )


def store_of(folder, *chunks: TextNode) -> HierarchyStore:
    store = HierarchyStore(folder)
    store.add(SemanticHierarchy(HashingEmbedding(), summary_tokens=40)(list(chunks)))
    return store


def check(store: HierarchyStore, *keys: str) -> None:
    filters = [MetadataFilter(key=key, value=1, operator="!=") for key in keys]
    nested = MetadataFilters(filters=[MetadataFilters(filters=filters)])
    store.delete_nodes(filters=nested, dry_run=True)


def refusal(store: HierarchyStore, *keys: str) -> str:
    with pytest.raises(InputError) as caught:
        check(store, *keys)
    return str(caught.value)


def test_keys_of_chunks_and_of_their_documents(tmp_path) -> None:
    store = store_of(
        tmp_path,
        chunk(0, "a", {"shelf": 1}, author="Ada", level="high", nothing=None),
        chunk(1, "a", {"shelf": 1}, author="Ada", **{"metadata.x": 1}),
        chunk(2, "b", author="Bo"),
    )
    check(store, "author", "shelf", "level", "metadata.x", "hierindex_level", "documents")
    assert refusal(store, "autor", "zzz") == (
        "No chunk has the key 'autor'; the nearest is author; there are author, shelf, "
        "level, metadata.x, hierindex_documents, hierindex_id, hierindex_kind, hierindex_level, "
        "hierindex_level_max, hierindex_whole_document."
    )
    assert "'zzz'; there are author" in refusal(store, "zzz", "author")
    for absent in ("nothing", "metadata.author", "shelv"):
        assert f"'{absent}'" in refusal(store, absent)


def test_a_key_that_only_summaries_have_is_of_no_use(tmp_path) -> None:
    store = store_of(tmp_path, *(chunk(i, "a", section=f"Part {i}") for i in range(3)))
    assert any("sections" in node.metadata for node in store.get_nodes())
    assert "'sections'; the nearest is section;" in refusal(store, "sections")


def test_few_of_many_keys_are_listed(tmp_path) -> None:
    rare = {f"key{i:03}": 1 for i in range(100)}
    store = store_of(tmp_path, chunk(0, "a", common=1, **rare), chunk(1, "b", common=1))
    said = refusal(store, "zzz")
    assert "there are common, key000, key001" in said
    assert "key050" not in said.partition("there are")[2]
    assert "the nearest is key099" in refusal(store, "key.099")
