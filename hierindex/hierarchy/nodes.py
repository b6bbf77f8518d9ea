"""Construction of leaves from chunks and of parents from summaries."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hierindex.core.identity import leaf_ids, parent_id
from hierindex.node import (
    EMBED_HIDDEN,
    LLM_HIDDEN,
    PAGE,
    PAGE_BREAK,
    SECTION,
    SECTIONS,
    Maker,
    Node,
    Quote,
    Span,
    for_chunks,
    page_in,
    shared_section,
)
from hierindex.summarize.claims import resolve_claims
from hierindex.summarize.summary import Summary

MAX_DISTINCT = 10  # values per key of a parent
RANGES = frozenset(
    "page page_number page_label timestamp time date start_time end_time last_modified_date".split()
)
KEPT = EMBED_HIDDEN, LLM_HIDDEN, "metadata_template", "metadata_separator", "text_template"
"""LlamaIndex's fields of a chunk that its leaf keeps."""

Merge = Callable[[list[Any]], Any]
"""Maps the children's values of one key, in order, to the parent's; None omits the key."""


def make_leaves(chunks: Sequence[Node], namespace: str, maker: Maker) -> list[Node]:
    """Copy chunks in document order, with content-derived ids and without blank ones."""
    order = {document: i for i, document in enumerate(dict.fromkeys(map(_document, chunks)))}
    chunks = sorted(chunks, key=lambda chunk: order[_document(chunk)])
    chunks = [chunk for chunk in chunks if chunk.text.strip()]
    texts = [chunk.text for chunk in chunks]
    ids = leaf_ids(namespace, [*map(_document, chunks)], texts)
    renamed = dict(zip((chunk.id for chunk in chunks), ids, strict=True))
    return [
        _leaf(chunk, node_id, renamed, maker) for chunk, node_id in zip(chunks, ids, strict=True)
    ]


def _document(chunk: Node) -> str:
    return chunk.documents[0]


def _leaf(chunk: Node, node_id: str, renamed: Mapping[str, str], maker: Maker) -> Node:
    start, source = chunk.others.get("start_char_idx"), chunk.source
    others = {key: chunk.others[key] for key in KEPT if key in chunk.others}
    if start is not None:
        others |= {"start_char_idx": start, "end_char_idx": start + len(chunk.text)}
    return Node(
        node_id,
        chunk.text,
        for_chunks(chunk.metadata),
        documents=(_document(chunk),),
        previous=renamed.get(chunk.previous, ""),
        next=renamed.get(chunk.next, ""),
        quotes=_quotes(chunk),
        document_hash=chunk.document_hash,
        read_from=chunk.read_from,
        maker=maker,
        source={**source, "metadata": for_chunks(source.get("metadata", {}))},
        others=others,
        vector=chunk.vector,
    )


def _quotes(chunk: Node) -> tuple[Quote, ...]:
    """Locate a chunk's text in its document, in parts of one page and section if they are known."""
    text, start = chunk.text, chunk.others.get("start_char_idx")
    if start is None:
        return (Quote(0, len(text), None),)
    end = chunk.others.get("end_char_idx") or start + len(text)
    page, label = page_in(chunk.metadata)
    section = chunk.metadata.get(SECTION)
    section = section if isinstance(section, str) else ""
    whole = Span(_document(chunk), start, end, page, section, label)
    if end - start != len(text):  # text edited after splitting: the span is that of the original
        return (Quote(0, len(text), whole, verbatim=False),)
    if chunk.quotes and all(_quotes_text(quote, whole, text) for quote in chunk.quotes):
        return tuple(chunk.quotes)
    if isinstance(chunk.metadata.get(PAGE), int):
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
    children: Sequence[Node],
    summary: Summary,
    *,
    level: int,
    rules: Mapping[str, Merge],
) -> Node:
    """Make a group's parent; its own parents are noted later.

    Metadata is excluded from the embedded text. An LLM sees the entries that are equal in all
    children and hidden in none.
    """
    documents = tuple(dict.fromkeys(d for child in children for d in child.documents))
    metadata = merged_metadata([child.metadata for child in children], rules)
    hidden = {key for child in children for key in child.others.get(LLM_HIDDEN, ())}
    differing = {k for k in metadata for c in children if c.metadata.get(k) != metadata[k]}
    child_ids = tuple(child.id for child in children)
    keys = {EMBED_HIDDEN: list(metadata), LLM_HIDDEN: sorted(hidden | differing)}
    return Node(
        parent_id(child_ids, text_key),
        summary.text,
        metadata,
        level=level,
        level_max=level,
        kind=summary.kind,
        title=summary.title,
        documents=documents,
        children=child_ids,
        quotes=resolve_claims(summary.claims, [child.quotes for child in children]),
        source_similarity=summary.source_similarity,
        maker=children[0].maker,
        source=children[0].source if len(documents) == 1 else {},
        others={name: hidden for name, hidden in keys.items() if hidden},
    )


def merged_metadata(
    children: Sequence[Mapping[str, Any]], rules: Mapping[str, Merge] | None = None
) -> dict[str, Any]:
    """Merge the metadata of children into that of their parent.

    A value that all children share is inherited. Pages and times (the keys in `RANGES`) become
    [min, max]. The section becomes the longest path of titles that all children share, and
    `sections` lists those of the children. Any other key becomes a list of at most `MAX_DISTINCT`
    distinct values.

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
    keys = dict.fromkeys(key for child in children for key in child)
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
