import re
from datetime import date

import pytest
from fakes import HashingEmbedding
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import (
    Document,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from records import metadata_of, replace_all

from hierindex import (
    Grounding,
    HierarchicalIndex,
    HierarchyStore,
    Quote,
    SemanticHierarchy,
    Span,
)
from hierindex.errors import InputError
from hierindex.node import Maker
from hierindex.text_node import RECORD_KEYS

N_DIMS = 3
ids = st.text(min_size=1, max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
json_objects = st.dictionaries(
    st.text().filter(lambda key: key not in RECORD_KEYS), json_values, max_size=3
)
related = st.builds(
    RelatedNodeInfo,
    node_id=ids,
    node_type=st.none() | st.sampled_from(ObjectType),
    metadata=json_objects,
    hash=st.none() | st.text(),
)
linked = st.builds(RelatedNodeInfo, node_id=ids)
relationships = st.fixed_dictionaries(
    {},
    optional={
        NodeRelationship.SOURCE: related,
        NodeRelationship.PREVIOUS: linked,
        NodeRelationship.NEXT: linked,
        NodeRelationship.PARENT: linked,
        NodeRelationship.CHILD: st.lists(
            linked, min_size=1, max_size=3, unique_by=lambda info: info.node_id
        ),
    },
)
embeddings = st.lists(
    st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=N_DIMS, max_size=N_DIMS
)
spans = st.builds(Span, ids, st.integers(0), st.integers(0), st.none() | st.integers(1))
text = st.text(max_size=5)
records = st.fixed_dictionaries(
    {
        "level": st.integers(0, 5),
        "level_max": st.integers(5, 9),
        "kind": text,
        "documents": st.lists(ids, min_size=1, max_size=3),
        "parents": st.lists(st.tuples(ids, st.floats(0, 1)), max_size=3),
        "quotes": st.lists(
            st.builds(Quote, st.integers(0), st.integers(0), st.none() | spans), max_size=3
        ),
        "n_tokens": st.integers(0, 10**6),
        "grounding": st.none() | st.builds(Grounding, *[st.integers(0, 9)] * 5, st.tuples(text)),
        "maker": st.builds(Maker, text, text, text, text),
    }
)


templates = st.lists(
    st.sampled_from(["{content}", "{metadata_str}", "{{", "}}"])
    | st.text(st.characters(exclude_characters="{}", codec="utf-8"))
).map("".join)


@st.composite
def nodes(draw):
    node = TextNode(
        id_=draw(ids),
        text=draw(st.text()),
        embedding=draw(embeddings),
        metadata=draw(json_objects),
        relationships=draw(relationships),
        excluded_embed_metadata_keys=draw(st.lists(st.text(), max_size=2)),
        excluded_llm_metadata_keys=draw(st.lists(st.text(), max_size=2)),
        text_template=draw(templates),
        metadata_separator=draw(st.text()),
        start_char_idx=draw(st.none() | st.integers(0)),
    )
    if draw(st.booleans()):
        record = draw(records)
        node.metadata |= metadata_of(**record)
        node.excluded_embed_metadata_keys += RECORD_KEYS
        node.excluded_llm_metadata_keys += RECORD_KEYS
        node.relationships.pop(NodeRelationship.PARENT, None)
        if record["parents"]:  # as a hierarchy has it: the strongest of them
            strongest = RelatedNodeInfo(node_id=record["parents"][0][0])
            node.relationships[NodeRelationship.PARENT] = strongest
    return node


collections = st.lists(nodes(), min_size=1, max_size=4, unique_by=lambda node: node.node_id)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return HierarchyStore(tmp_path_factory.mktemp("index"))


@given(collections)
def test_nodes_come_back_as_they_were(store, collection):
    replace_all(store, collection)
    assert store.get_nodes() == collection
    assert [store.get_nodes([node.node_id])[0] for node in collection] == collection


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


@pytest.mark.spread
@pytest.mark.parametrize(
    "templates",
    [
        {"text_template": "{"},
        {"text_template": "{content} in {}"},
        {"text_template": "{content.size}"},
        {"metadata_template": "{key}: {values}"},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "door",
    [
        lambda node, folder: HierarchyStore(folder).add([node]),
        lambda node, folder: SemanticHierarchy(HashingEmbedding())([node]),
        lambda node, folder: HierarchicalIndex.build(
            [Document(**node.to_dict())], folder, hierarchy=SemanticHierarchy(HashingEmbedding())
        ),
    ],
    ids=["store", "hierarchy", "index"],
)
def test_a_template_that_cannot_be_formatted_is_named(tmp_path, door, templates):
    ((name, template),) = templates.items()
    node = TextNode(id_="n", text="It is so.", embedding=[1.0], metadata={"a": 1}, **templates)
    said = rf"{name} of node 'n' cannot be formatted, got {re.escape(repr(template))}; use only {{"
    with pytest.raises(InputError, match=said):
        door(node, tmp_path / "index")
