"""Nodes of a tree: leaves made of chunks, parents of groups, and nodes as arrays."""

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, dok_array

from hierindex.core.arguments import Floats2d, Ints1d
from hierindex.core.identity import digest, leaf_ids, parent_id
from hierindex.core.membership import NO_HEADINGS, Rows
from hierindex.errors import InputError
from hierindex.models.embedder import unit_vectors
from hierindex.models.record import Usage
from hierindex.node import (
    EMBED_HIDDEN,
    LLM_HIDDEN,
    SECTION,
    SECTIONS,
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
from hierindex.summarize.summary import Group, Summary, resolve_claims
from hierindex.text.sentences import split_sentences
from hierindex.tree.recipe import Merge, Recipe
from hierindex.tree.titles import names_in_list, titles_under

ALIKE = 0.5  # cosine from which a node that replaces another takes its place among the others

KEPT = EMBED_HIDDEN, LLM_HIDDEN, "metadata_template", "metadata_separator", "text_template"
"""LlamaIndex's fields of a chunk that its leaf keeps."""

MAX_DISTINCT = 10  # values per key of a parent
RANGES = frozenset(
    "page page_number page_label timestamp time date start_time end_time last_modified_date".split()
)


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
    documents = dict.fromkeys(chunk.documents[0] for chunk in chunks)
    place = {document: i for i, document in enumerate(documents)}
    chunks = sorted(chunks, key=lambda chunk: place[chunk.documents[0]])
    chunks = [chunk for chunk in chunks if chunk.text.strip()]
    texts = [chunk.text for chunk in chunks]
    ids = leaf_ids(namespace, [chunk.documents[0] for chunk in chunks], texts)
    renamed = dict(zip((chunk.id for chunk in chunks), ids, strict=True))
    return [
        _leaf(chunk, node_id, renamed, maker) for chunk, node_id in zip(chunks, ids, strict=True)
    ]


def _leaf(chunk: Node, node_id: str, renamed: Mapping[str, str], maker: Maker) -> Node:
    start, source = chunk.others.get("start_char_idx"), chunk.source
    others = {key: chunk.others[key] for key in KEPT if key in chunk.others}
    if start is not None:
        others |= {"start_char_idx": start, "end_char_idx": start + len(chunk.text)}
    return Node(
        node_id,
        chunk.text,
        for_chunks(chunk.metadata),
        documents=chunk.documents[:1],
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
    whole = Span(chunk.documents[0], start, end, page, chunk.section, label)
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


def merged_metadata(
    children: Sequence[Mapping[str, Any]], rules: Mapping[str, Merge] = {}
) -> dict[str, Any]:
    """Merge the metadata of children into the metadata of their parent.

    A value that all children share is inherited. Pages and times (the keys in `RANGES`) become
    [min, max]. The section becomes the longest path of titles that all children share, and
    `sections` lists the sections of the children. Any other key becomes a list of at most
    `MAX_DISTINCT` distinct values.

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


def parents_of(
    groups: Sequence[Sequence[Node]],
    centroids: Floats2d,
    level: int,
    recipe: Recipe,
    watch: Stopwatch,
) -> tuple[list[Node], Floats2d, Usage]:
    """Return a parent of each group with its unit vector, (n_groups, n_dims), and their usage.

    Parameters
    ----------
    groups : Sequence[Sequence[Node]]
    centroids : (n_groups, n_dims) unit vectors
        Vectors of the parents if `parent_embedding` is "mean".
    level : int
        Level of the parents.
    recipe : Recipe
    watch : Stopwatch
    """
    with watch("summarize"):
        names = [names_in_list(group, recipe.budget) for group in groups]
        keys = [_key(group, called, recipe) for group, called in zip(groups, names, strict=True)]
        summaries = _summaries(keys, groups, names, recipe, level)
    with watch("link"):
        parents = [
            _parent(key, group, summary, level, recipe)
            for key, group, summary in zip(keys, groups, summaries, strict=True)
        ]
    with watch("embed"):
        X = centroids
        if recipe.settings.parent_embedding == "text" and parents:
            X = recipe.embed(parents, f"embed level {level}")
            if X.shape[1] != centroids.shape[1]:
                raise InputError(
                    f"Chunks have embeddings of {centroids.shape[1]} dimensions, summaries of "
                    f"{X.shape[1]}; pass the embedding model that embedded the chunks as "
                    "embed_model=."
                )
        n_tokens = recipe.embedder.count_tokens([parent.text for parent in parents])
    for parent, x, n in zip(parents, X, n_tokens.tolist(), strict=True):
        parent.vector = x.copy()  # not all of them
        parent.n_tokens = n
    return parents, X, sum((summary.usage for summary in summaries), Usage())


def _parent(
    text_key: str, children: Sequence[Node], summary: Summary, level: int, recipe: Recipe
) -> Node:
    """Make the parent of a group; its own parents are set later.

    Metadata is excluded from the embedded text. An LLM sees the entries that are equal in all
    children and hidden in none.
    """
    documents = tuple(dict.fromkeys(d for child in children for d in child.documents))
    rules = recipe.settings.metadata_rules
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
        written_title=summary.title,
        documents=documents,
        children=child_ids,
        quotes=resolve_claims(summary.claims, [child.quotes for child in children]),
        grounding=summary.grounding,
        n_chunks=sum(child.n_chunks for child in children),
        titles=titles_under(children) if len(documents) > 1 else (),
        maker=recipe.maker,
        source=children[0].source if len(documents) == 1 else {},
        others={name: hidden for name, hidden in keys.items() if hidden},
    )


def _key(children: Sequence[Node], names: Sequence[str], recipe: Recipe) -> str:
    """Digest everything that determines a group's summary."""
    number: dict[str | None, int] = {}  # documents by order: renaming one keeps the cache hit
    fields = []
    for child, name in zip(children, names, strict=True):
        places = ((q, q.source or Span("", 0, 0)) for q in child.quotes)
        parts = [
            (q.at, q.to, number.setdefault(source.document, len(number)), source.section)
            for q, source in places
        ]
        fields += [child.text, json.dumps([name, child.n_chunks, parts])]
    return digest("checked summary", recipe.shaped_by, str(recipe.budget.max_tokens), *fields)


def _summaries(
    keys: Sequence[str],
    children: Sequence[Sequence[Node]],
    names: Sequence[Sequence[str]],
    recipe: Recipe,
    level: int,
) -> list[Summary]:
    """Return one summary per group, from the cache if possible."""
    known = recipe.texts.recall_summaries(keys)
    first: dict[str, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)  # equal groups, as of copies, share a summary
    new = [i for key, i in first.items() if key not in known]
    wanted: list[Group] = [
        [
            sentence
            for at, (child, name) in enumerate(zip(children[i], names[i], strict=True))
            for sentence in split_sentences(child.text, child.quotes, at, name, child.n_chunks)
        ]
        for i in new
    ]
    written = recipe.summarize(wanted, f"summarize level {level}") if new else []
    fresh = dict(zip(new, written, strict=True))
    if not recipe.is_rehearsal:
        lasting = {i: s for i, s in fresh.items() if s.kind != "extractive_fallback"}
        recipe.texts.keep_summaries({keys[i]: (s.text, s.details) for i, s in lasting.items()})
        for summary in written:
            if summary.completions:
                recipe.resources.completions.assign(summary.completions, summary.text)
    known |= {keys[i]: (summary.text, summary.details) for i, summary in fresh.items()}
    return [fresh[i] if i in fresh else Summary.recalled(*known[key]) for i, key in enumerate(keys)]
