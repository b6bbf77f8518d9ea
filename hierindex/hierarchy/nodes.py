"""Construction of leaves from chunks and of parents from summaries."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageNode,
    MetadataMode,
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from numpy.typing import NDArray

from hierindex.core.identity import leaf_ids, parent_id
from hierindex.errors import InputError
from hierindex.record import (
    PAGE,
    PAGE_BREAK,
    RECORD_KEYS,
    SECTION,
    SECTIONS,
    NodeRecord,
    Quote,
    Span,
    for_chunks,
    level_in,
    page_in,
    record_keys,
    shared_section,
)
from hierindex.store.nodes import bare_node, record_of
from hierindex.store.rows import Row, check_node, placed_row
from hierindex.summarize.claims import resolve_claims
from hierindex.summarize.summary import Summary

MAX_DISTINCT = 10  # values per key of a parent
RANGES = frozenset(
    "page page_number page_label timestamp time date start_time end_time last_modified_date".split()
)

Merge = Callable[[list[Any]], Any]
"""Maps the children's values of one key, in order, to the parent's; None omits the key."""


@dataclass
class Draft:
    """A node of a growing tree, with its record, vector and children beside it.

    `vector`, (n_dims,), is None for a chunk that is not embedded yet. `children` are ids, which
    take a tenth of the memory of LlamaIndex's relationships.
    """

    node: TextNode
    record: NodeRecord
    vector: NDArray[np.floating] | None = None
    children: Sequence[str] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return the node of a row."""
        vector = np.asarray(row["vector"], np.float32)
        return cls(bare_node(row), record_of(row), vector, row["child_ids"])

    @property
    def id(self) -> str:
        """The node's id."""
        return self.node.node_id

    @property
    def embedding(self) -> NDArray[np.floating]:
        """The vector of an embedded node."""
        assert self.vector is not None
        return self.vector

    def note(self, **changes: Any) -> None:
        """Change fields of the record."""
        known = vars(self.record)
        if any(known[field] != value for field, value in changes.items()):  # most change nothing
            self.record = NodeRecord(**(known | changes))  # `replace` takes half as long again

    def row(self) -> Row:
        """Return the row of the finished node."""
        return placed_row(self.node, self.record, self.children, self.embedding)

    def finished(self) -> TextNode:
        """Return the node with its vector, children and strongest parent.

        Its record is in its metadata.
        """
        self.node.embedding = None if self.vector is None else self.vector.tolist()
        self.node.metadata |= self.record.to_metadata()
        relationships = self.node.relationships
        if self.children:
            relationships[NodeRelationship.CHILD] = list(map(_related, self.children))
        relationships.pop(NodeRelationship.PARENT, None)
        if self.record.parents:
            relationships[NodeRelationship.PARENT] = _related(self.record.parents[0][0])
        return self.node


def make_leaves(nodes: Sequence[BaseNode], namespace: str = "") -> list[Draft]:
    """Copy chunks in document order, with content-derived ids and without blank ones.

    Raises
    ------
    InputError
        If a node is not a text node, is a summary, has a template that cannot be formatted, or
        uses a metadata key that hierindex writes; names the node.
    """
    for node in nodes:
        _check(node)
    order = {document: i for i, document in enumerate(dict.fromkeys(map(_document, nodes)))}
    nodes = sorted(nodes, key=lambda node: order[_document(node)])
    nodes = [node for node in nodes if node.get_content(MetadataMode.NONE).strip()]
    texts = [node.get_content(MetadataMode.NONE) for node in nodes]
    ids = leaf_ids(namespace, [_document(node) for node in nodes], texts)
    renamed = dict(zip((node.node_id for node in nodes), ids, strict=True))
    return [_leaf(node, node_id, renamed) for node, node_id in zip(nodes, ids, strict=True)]


def _check(node: BaseNode) -> None:
    if not isinstance(node, TextNode | Document) or isinstance(node, ImageNode):
        raise InputError(
            f"A hierarchy needs text nodes, but node {node.node_id} is {type(node).__name__}; "
            "remove it."
        )
    if level_in(node.metadata) > 0:
        raise InputError(
            f"Node {node.node_id} is a summary of an earlier hierarchy; pass only chunks."
        )
    check_node(node)


def _document(node: BaseNode) -> str:
    return node.ref_doc_id or node.node_id


def _leaf(node: BaseNode, node_id: str, renamed: Mapping[str, str]) -> Draft:
    text, document = node.get_content(MetadataMode.NONE), _document(node)
    start = 0 if isinstance(node, Document) else getattr(node, "start_char_idx", None)
    source = node.source_node or RelatedNodeInfo(node_id=document, node_type=ObjectType.DOCUMENT)
    metadata = for_chunks(node.metadata)
    leaf = TextNode(
        id_=node_id,
        text=text,
        metadata={k: v for k, v in metadata.items() if k not in record_keys(metadata)},
        excluded_embed_metadata_keys=_with_own(node.excluded_embed_metadata_keys),
        excluded_llm_metadata_keys=_with_own(node.excluded_llm_metadata_keys),
        metadata_template=node.metadata_template,
        metadata_separator=node.metadata_separator,
        text_template=getattr(
            node, "text_template", TextNode.model_fields["text_template"].default
        ),
        start_char_idx=start,
        end_char_idx=None if start is None else start + len(text),
        relationships={
            NodeRelationship.SOURCE: source.model_copy(
                update={"metadata": for_chunks(source.metadata)}
            )
        },
    )
    for relation in (NodeRelationship.PREVIOUS, NodeRelationship.NEXT):
        beside = node.relationships.get(relation)
        if isinstance(beside, RelatedNodeInfo) and beside.node_id in renamed:
            leaf.relationships[relation] = _related(renamed[beside.node_id])
    known = NodeRecord.from_metadata(node.metadata)
    record = NodeRecord(
        documents=(document,),
        quotes=_quotes(node, document, start, known.quotes),
        document_hash=known.document_hash,
        read_from=known.read_from,
    )
    return Draft(leaf, record, None if node.embedding is None else np.array(node.embedding))


def _quotes(
    node: BaseNode, document: str, start: int | None, known: Sequence[Quote]
) -> tuple[Quote, ...]:
    """Locate a chunk's text in its document, in parts of one page and section if they are known."""
    text = node.get_content(MetadataMode.NONE)
    if start is None:
        return (Quote(0, len(text), None),)
    end = getattr(node, "end_char_idx", None) or start + len(text)
    page, label = page_in(node.metadata)
    section = node.metadata.get(SECTION)
    whole = Span(document, start, end, page, section if isinstance(section, str) else "", label)
    if end - start != len(text):  # text edited after splitting: the span is that of the original
        return (Quote(0, len(text), whole, verbatim=False),)
    if known and all(_quotes_text(quote, whole, text) for quote in known):
        return tuple(known)
    if isinstance(node.metadata.get(PAGE), int):
        return tuple(_by_page(text, whole))
    return (Quote(0, len(text), whole),)


def _quotes_text(quote: Quote, whole: Span, text: str) -> bool:
    """Return whether a quote is of this text, and not of one that a splitter divided again."""
    source = quote.source
    return (
        source is not None
        and source.document == whole.document
        and source.start - quote.at == whole.start
        and (quote.to <= len(text) if quote.verbatim else quote.to == len(text))
    )


def _by_page(text: str, whole: Span) -> Iterator[Quote]:
    """Yield a quote per page; `whole` has the first one."""
    at = 0
    for page, part in enumerate(text.split(PAGE_BREAK), start=whole.page or 0):
        start, end = whole.start + at, whole.start + at + len(part)
        yield Quote(at, at + len(part), whole._replace(start=start, end=end, page=page))
        at += len(part) + 1


def make_parent(
    text_key: str,
    children: Sequence[Draft],
    summary: Summary,
    *,
    level: int,
    rules: Mapping[str, Merge],
) -> Draft:
    """Make a group's parent; its own parents are recorded later.

    Metadata is excluded from the embedded text. An LLM sees the entries that are equal in all
    children and hidden in none.
    """
    documents = tuple(dict.fromkeys(d for child in children for d in child.record.documents))
    nodes = [child.node for child in children]
    metadata = merged_metadata([node.metadata for node in nodes], rules)
    hidden = {key for node in nodes for key in node.excluded_llm_metadata_keys}
    differing = {key for key in metadata for n in nodes if n.metadata.get(key) != metadata[key]}
    child_ids = tuple(node.node_id for node in nodes)
    parent = TextNode(
        id_=parent_id(child_ids, text_key),
        text=summary.text,
        metadata=metadata,
        excluded_embed_metadata_keys=_with_own(list(metadata)),
        excluded_llm_metadata_keys=_with_own(sorted(hidden | differing)),
    )
    if len(documents) == 1:
        source = nodes[0].relationships[NodeRelationship.SOURCE]
        parent.relationships[NodeRelationship.SOURCE] = source
    record = NodeRecord(
        level=level,
        level_max=level,
        kind=summary.kind,
        documents=documents,
        quotes=resolve_claims(summary.claims, [child.record.quotes for child in children]),
        source_similarity=summary.source_similarity,
        title=summary.title,
    )
    return Draft(parent, record, children=child_ids)


def _related(node_id: str) -> RelatedNodeInfo:
    return RelatedNodeInfo(node_id=node_id)


def _with_own(keys: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*keys, *RECORD_KEYS]))


def merged_metadata(
    children: Sequence[Mapping[str, Any]], rules: Mapping[str, Merge] | None = None
) -> dict[str, Any]:
    """Merge the metadata of children into that of their parent.

    A value that all children share is inherited. Pages and times (the keys in `RANGES`) become
    [min, max]. The section becomes the longest path of titles that all children share, and
    `sections` lists those of the children. Any other key becomes a list of at most `MAX_DISTINCT`
    distinct values. Keys that hierindex writes are omitted.

    Parameters
    ----------
    children : Sequence[Mapping]
        Metadata in reading order.
    rules : Mapping[str, Merge], optional
        Replacements of these rules, by key.

    Examples
    --------
    >>> merged_metadata([{"page": 2, "by": "Ada", "to": "Bo"}, {"page": 4, "by": "Ada"}])
    {'page': [2, 4], 'by': 'Ada', 'to': ['Bo']}
    """
    rules = rules or {}
    keys = dict.fromkeys(key for child in children for key in child if key not in RECORD_KEYS)
    merged = {}
    for key in keys:
        values = [child[key] for child in children if key in child]
        if key in rules:
            value = rules[key](values)
        elif len(values) == len(children) and all(other == values[0] for other in values):
            value = values[0]
        elif key == SECTION and all(isinstance(value, str) for value in values):
            value = shared_section(child.get(key, "") for child in children) or None
        elif key in RANGES:
            value = value_range(values)
        else:
            value = distinct(values)
        if value is not None:
            merged[key] = value
    sections = _flat([child.get(SECTIONS, child.get(SECTION)) for child in children])
    listed = distinct([section for section in sections if isinstance(section, str)])
    if len(listed) > 1:
        merged[SECTIONS] = listed
    return merged


def value_range(values: list[Any]) -> list[Any]:
    """Return [min, max] of values and ranges, or the distinct values if they have no order.

    >>> value_range([3, [5, 9]]), value_range(["9", "10"])
    ([3, 9], ['9', '10'])
    """
    flat = _flat(values)
    if not flat:
        return []
    if all(isinstance(v, str) and v.isdecimal() for v in flat):  # page labels
        return [min(flat, key=int), max(flat, key=int)]
    if all(isinstance(v, int | float) for v in flat) or all(isinstance(v, str) for v in flat):
        return [min(flat), max(flat)]
    return distinct(values)


def distinct(values: list[Any]) -> list[Any]:
    """Return the first `MAX_DISTINCT` distinct values, with lists flattened.

    >>> distinct(["a", ["b", "a"], {"c": 1}])
    ['a', 'b', {'c': 1}]
    """
    first: dict[str, Any] = {}
    for value in _flat(values):
        first.setdefault(json.dumps(value, sort_keys=True, default=str), value)
    return list(first.values())[:MAX_DISTINCT]


def _flat(values: list[Any]) -> list[Any]:
    return [item for v in values for item in (v if isinstance(v, list) else [v])]
