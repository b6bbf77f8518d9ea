"""Leaves: copies of chunks with content-derived ids and vectors; and conversion to arrays."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array, dok_array

from hierindex.core.arguments import Floats2d, Ints1d
from hierindex.core.identity import leaf_ids
from hierindex.core.membership import NO_HEADINGS, Rows
from hierindex.models.embedder import unit_vectors
from hierindex.node import (
    EMBED_HIDDEN,
    LLM_HIDDEN,
    Maker,
    Node,
    Quote,
    Span,
    for_chunks,
    page_in,
    shared_section,
    titles_of,
)
from hierindex.progress import Stopwatch
from hierindex.tree.recipe import Recipe

ALIKE = 0.5  # cosine from which a node that replaces another takes its place among the others

KEPT = EMBED_HIDDEN, LLM_HIDDEN, "metadata_template", "metadata_separator", "text_template"
"""LlamaIndex's fields of a chunk that its leaf keeps."""


def headings_between(chunks: Sequence[Node]) -> Ints1d:
    """Return the level of the highest heading between each chunk and the one before it.

    >>> paths = ["Results", "Results › Timing", "Results › Timing", "Outlook", ""]
    >>> headings_between([Node("", "", {"section": path}) for path in paths]).tolist()
    [1, 2, 0, 1, 1]
    """
    levels = [
        0 if before == after else 1 + len(titles_of(shared_section([before, after])))
        for before, after in pairwise(["", *(chunk.section for chunk in chunks)])
    ]
    return np.array(levels, dtype=np.int64)


def level_rows(
    nodes: Sequence[Node], X: Floats2d, level: int, heading: Ints1d = NO_HEADINGS
) -> Rows:
    """Return the rows of nodes; see `Rows` for the arrays.

    By default, no row starts at a heading.
    """
    number = {d: i for i, d in enumerate(dict.fromkeys(d for n in nodes for d in n.documents))}
    document = [
        number[node.documents[0]] if len(node.documents) == 1 else -1 - i
        for i, node in enumerate(nodes)
    ]
    n_tokens = np.array([node.n_tokens for node in nodes], dtype=np.int64)
    return Rows(X, n_tokens, np.array(document, dtype=np.int64), level, heading)


def most_alike(new: Sequence[Node], gone: Sequence[Node]) -> dict[str, str]:
    """Match each new node to the most similar earlier node of its document, each at most once."""
    if not (new and gone):
        return {}
    documents = [[node.documents[0] for node in nodes] for nodes in (new, gone)]
    X, Y = map(vectors_of, (new, gone))
    similarity = np.where(np.equal.outer(*map(np.array, documents)), X @ Y.T, -1.0)
    rows, columns = np.nonzero(similarity >= ALIKE)
    follows: dict[str, str] = {}
    for i in np.argsort(-similarity[rows, columns], kind="stable"):
        follower, other = new[rows[i]].id, gone[columns[i]].id
        if follower not in follows and other not in follows.values():
            follows[follower] = other
    return follows


def weight_matrix(weights: Sequence[Mapping[str, float]], groups: Sequence[str]) -> csr_array:
    """Return weights by group as a (n_rows, n_groups) matrix, without other groups."""
    column = {group: g for g, group in enumerate(groups)}
    M = dok_array((len(weights), len(groups)))
    for row, of in enumerate(weights):
        for group in of.keys() & column.keys():
            M[row, column[group]] = of[group]
    return csr_array(M)


def stacked(X: Floats2d, nodes: Sequence[Node]) -> Floats2d:
    """Return the rows of vectors with the vectors of nodes appended."""
    if not nodes:
        return X
    return np.concatenate([X, vectors_of(nodes)]) if len(X) else vectors_of(nodes)


def vectors_of(nodes: Sequence[Node]) -> Floats2d:
    """Return the unit vectors of nodes, (n_nodes, n_dims)."""
    return unit_vectors([np.asarray(node.vector) for node in nodes])


def embedded_leaves(
    chunks: Sequence[Node], recipe: Recipe, watch: Stopwatch
) -> tuple[list[Node], Floats2d]:
    """Return leaves made of chunks with their unit vectors, (n_leaves, n_dims).

    Chunks without a vector are embedded.
    """
    embedder = recipe.embedder
    with watch("link"):
        leaves = make_leaves(chunks, recipe.settings.namespace, recipe.maker)
    embedder.warn_of_summaries(recipe.settings.summary_tokens)
    if not leaves:
        return [], np.zeros((0, 1))
    with watch("embed"):
        n_tokens = embedder.count_tokens([leaf.embedded_text for leaf in leaves])
        embedder.warn_of_cut(n_tokens)
        for leaf, n in zip(leaves, n_tokens.tolist(), strict=True):
            leaf.n_tokens = n
        if new := [leaf for leaf in leaves if leaf.vector is None]:
            for leaf, x in zip(new, recipe.embed(new, "embed chunks"), strict=True):
                leaf.vector = x.copy()  # not all of them
        return leaves, vectors_of(leaves)


def make_leaves(chunks: Sequence[Node], namespace: str, maker: Maker) -> list[Node]:
    """Copy chunks in document order, with content-derived ids, without blank chunks."""
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
    """Locate a chunk in its document; the parts of a chunk of ours have a page and section each."""
    text, start = chunk.text, chunk.others.get("start_char_idx")
    if start is None:
        return (Quote(0, len(text), None),)
    end = chunk.others.get("end_char_idx") or start + len(text)
    page, label = page_in(chunk.metadata)
    whole = Span(_document(chunk), start, end, page, chunk.section, label)
    if end - start != len(text):  # text edited after splitting: the span is that of the original
        return (Quote(0, len(text), whole, verbatim=False),)
    if chunk.quotes and all(_quotes_text(quote, whole, text) for quote in chunk.quotes):
        return tuple(chunk.quotes)
    return (Quote(0, len(text), whole),)


def _quotes_text(quote: Quote, whole: Span, text: str) -> bool:
    """Return whether a quote is of this text, and not of a text that was split again."""
    source = quote.source
    return (
        source is not None
        and source.document == whole.document
        and source.start - quote.at == whole.start
        and (quote.to <= len(text) if quote.verbatim else quote.to == len(text))
    )
