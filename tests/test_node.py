"""The one form of a node, and that it survives LlamaIndex's form and JSON."""

import json
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    MetadataMode,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from node_strategies import NODES, NUMBERS, OTHERS

from hierindex import Grounding, Node, Quote, Span
from hierindex.node import Maker, shared_section
from hierindex.text_node import RECORD_KEYS, record_keys, to_text_node


def through_json(node: Node) -> Node:
    """The node after LlamaIndex's form was written and read."""
    data = json.loads(json.dumps(to_text_node(node).to_dict()))
    return Node.of(TextNode.from_dict(data))


@given(NODES)
def test_every_field_survives_llama_index_and_json(node):
    again = through_json(node)
    assert again == node
    assert all(isinstance(span, Span) for span in again.citations)


def test_a_vector_survives_llama_index_and_json():
    vector = [0.1, -3.0, 1e-9]
    again = through_json(Node.of(TextNode(text="text", embedding=vector)))
    assert again.vector.tolist() == vector
    assert through_json(Node("a", "text")).vector is None


@pytest.mark.parametrize("fields", [{"level": 2}, {"grounding": Grounding(1, faults=("a",))}])
def test_common_words_are_the_users(fields):
    own = {"level": "advanced", "level_max": 3, "grounding": "earth", "kind": "x"}
    node = Node("a", "text", own, documents=("d",), maker=Maker(), **fields)
    again = Node.of(to_text_node(node))
    assert again.metadata == own
    assert (again.level, again.level_max, again.kind) == (node.level, 0, "chunk")
    assert again.grounding == node.grounding


@pytest.mark.parametrize("metadata", [{}, {"file_name": "a.txt", "level": 3, "level_max": 4}])
def test_a_node_that_hierindex_did_not_make_is_a_chunk_of_its_document(metadata):
    source = RelatedNodeInfo(node_id="doc")
    alone = Node.of(TextNode(id_="a", text="text", metadata=metadata))
    of_one = Node.of(TextNode(text="text", relationships={NodeRelationship.SOURCE: source}))
    assert (alone.metadata, alone.documents, alone.maker) == (metadata, ("a",), None)
    assert (alone.level, alone.level_max, alone.kind) == (0, 0, "chunk")
    assert alone.grounding is None
    assert not alone.parents
    assert not alone.children
    assert of_one.documents == ("doc",)
    assert not record_keys(to_text_node(alone).metadata)


LINKS = {
    kind: RelatedNodeInfo(node_id=kind.name)
    for kind in (NodeRelationship.PREVIOUS, NodeRelationship.NEXT, NodeRelationship.PARENT)
}
LINKS[NodeRelationship.SOURCE] = RelatedNodeInfo(
    node_id="doc", node_type=ObjectType.DOCUMENT, metadata={"pages": [1, 2]}, hash="h"
)
LINKS[NodeRelationship.CHILD] = [RelatedNodeInfo(node_id="one"), LINKS["3"]]
OWN = {
    "id_": "a",
    "text": "text",
    "metadata": {"level": 1, "tags": ["x", None]},
    "embedding": [0.25, 0.5],
    "excluded_embed_metadata_keys": ["level"],
    "excluded_llm_metadata_keys": ["tags"],
    "metadata_separator": "; ",
    "metadata_template": "{key}={value}",
    "text_template": "{content} ({metadata_str})",
    "relationships": LINKS,
    "start_char_idx": 3,
    "end_char_idx": 7,
    "mimetype": "text/html",
}


@pytest.mark.parametrize(
    "node",
    [
        TextNode(text="text"),
        TextNode(**OWN),
        IndexNode(**OWN, index_id="table"),
        ImageNode(**OWN, image_url="a.png", text_embedding=[1.0]),
    ],
    ids=["plain", "links and templates", "index node", "image node"],
)
def test_a_users_node_comes_back_as_it_was(node):
    again = to_text_node(Node.of(node))
    assert type(again) is type(node)
    assert again == node
    assert Node.of(NodeWithScore(node=node, score=0.5)) == Node.of(node)


def test_a_document_becomes_a_text_node():
    document = Document(id_="a", text="text", metadata={"title": "A"})
    again = to_text_node(Node.of(document))
    assert type(again) is TextNode
    for mode in MetadataMode:
        assert again.get_content(mode) == document.get_content(mode)


def test_metadata_of_a_document_need_not_be_json_until_they_are_stored():
    odd = {"when": date(2020, 1, 1), "tags": {1}, "n": np.int64(3), "at": object()}
    link = RelatedNodeInfo(node_id="a", node_type=ObjectType.DOCUMENT, metadata=odd)
    node = TextNode(text="text", metadata=odd, relationships={NodeRelationship.SOURCE: link})
    again = to_text_node(Node.of(node))
    assert again.metadata == odd
    assert again.source_node.metadata == odd
    assert again.source_node.node_type == ObjectType.DOCUMENT


@given(NODES, OTHERS, st.booleans())
def test_texts_are_those_of_llama_index(node, others, is_ours):
    node = replace(node, others=others, maker=Maker() if is_ours else None)
    theirs = to_text_node(node)
    assert node.embedded_text == theirs.get_content(MetadataMode.EMBED)
    assert node.llm_text == theirs.get_content(MetadataMode.LLM)
    again = Node.of(theirs)
    assert (again.embedded_text, again.llm_text) == (node.embedded_text, node.llm_text)


@given(NODES)
def test_our_keys_reach_no_text(node):
    theirs = to_text_node(node)
    for mode in MetadataMode.EMBED, MetadataMode.LLM:
        shown = theirs.model_copy(update={"metadata_template": "{key}", "metadata_separator": "|"})
        assert not {*RECORD_KEYS} & {*shown.get_metadata_str(mode).split("|")}
        assert not any(key in theirs.get_content(mode) for key in RECORD_KEYS)


@given(NODES)
def test_citations_are_the_distinct_known_sources_in_order(node):
    sources = [source for quote in node.quotes for source in quote.sources]
    assert len(set(node.citations)) == len(node.citations)
    assert set(node.citations) == set(sources)
    firsts = [sources.index(span) for span in node.citations]
    assert firsts == sorted(firsts)
    assert node.start == min((span.start for span in sources), default=-1)
    doubled = replace(node, quotes=node.quotes * 2)
    assert doubled.citations == node.citations


@given(st.text(min_size=1), st.data())
def test_a_part_of_a_verbatim_quote_keeps_its_exact_source(document, data):
    def stretch(most):
        return sorted((data.draw(st.integers(0, most)), data.draw(st.integers(0, most))))

    start, end = stretch(len(document))
    at = data.draw(NUMBERS)
    quote = Quote(at, at + end - start, Span("d", start, end, 4))
    a, b = stretch(end - start)
    part = quote.part(at + a, at + b)
    assert (part.at, part.to) == (at + a, at + b)
    assert document[part.source.start : part.source.end] == document[start:end][a:b]
    assert (part.source.document, part.source.page) == ("d", 4)
    assert quote.part(quote.at, quote.to) == quote


@pytest.mark.parametrize("source", [None, Span("d", 0, 7), Span("d", 0, 30, 2)])
def test_a_part_of_any_other_quote_keeps_the_whole_source(source):
    beside = (Span("d", 40, 50),)
    quote = Quote(10, 20, source, verbatim=False, also=beside)
    assert quote.part(12, 15) == Quote(12, 15, source, verbatim=False, also=beside)


@pytest.mark.parametrize(
    ("sections", "shared"),
    [
        (["A › B", "A › B"], "A › B"),
        (["A › B", "A › B › C"], "A › B"),
        (["A › B", "A › Bee"], "A"),
        (["A", "B"], ""),
        (["A", ""], ""),
        ([], ""),
    ],
)
def test_sections_share_titles(sections, shared):
    assert shared_section(sections) == shared
