"""Nodes as arrays: their rows, vectors and weights, and which are like each other."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from hierindex.core.arrays import Floats2d, Ints1d
from hierindex.core.rows import NO_HEADINGS, Rows
from hierindex.models.embedder import unit_vectors
from hierindex.node import SECTION, Node, shared_section, titles_of

ALIKE = 0.5  # cosine from which a node that replaces another takes its place among the others


def headings_between(chunks: Sequence[Node]) -> Ints1d:
    """Return the level of the highest heading between each chunk and the one before it.

    >>> paths = ["Results", "Results › Timing", "Results › Timing", "Outlook", ""]
    >>> headings_between([Node("", "", {"section": path}) for path in paths]).tolist()
    [1, 2, 0, 1, 1]
    """
    known = [chunk.metadata.get(SECTION) for chunk in chunks]
    sections = [section if isinstance(section, str) else "" for section in known]
    levels = [
        0 if before == after else 1 + len(titles_of(shared_section([before, after])))
        for before, after in pairwise(["", *sections])
    ]
    return np.array(levels, dtype=np.int64)


def level_rows(
    nodes: Sequence[Node], X: Floats2d, level: int, heading: Ints1d | None = None
) -> Rows:
    """Return the rows of nodes; see `Rows` for the arrays. Without `heading`, there are none."""
    number = {d: i for i, d in enumerate(dict.fromkeys(d for n in nodes for d in n.documents))}
    document = [
        number[node.documents[0]] if len(node.documents) == 1 else -1 - i
        for i, node in enumerate(nodes)
    ]
    n_tokens = np.array([node.n_tokens for node in nodes], dtype=np.int64)
    heading = NO_HEADINGS if heading is None else heading
    return Rows(X, n_tokens, np.array(document, dtype=np.int64), level, heading)


def most_alike(new: Sequence[Node], gone: Sequence[Node]) -> dict[str, str]:
    """Return which node of the same document each new one is most like, each of them once."""
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
    """Return weights by group as a (n_rows, n_groups) matrix; other groups are left out."""
    column = {group: g for g, group in enumerate(groups)}
    links = [
        (row, column[group], weight)
        for row, of in enumerate(weights)
        for group, weight in of.items()
        if group in column
    ]
    row, columns, weight = np.array(links).reshape(-1, 3).T
    places = row.astype(np.int64), columns.astype(np.int64)
    return csr_array((weight, places), shape=(len(weights), len(groups)))


def stacked(X: Floats2d, nodes: Sequence[Node]) -> Floats2d:
    """Return rows of vectors with those of nodes below them."""
    if not nodes:
        return X
    return np.concatenate([X, vectors_of(nodes)]) if len(X) else vectors_of(nodes)


def vector_of(node: Node) -> NDArray[np.floating]:
    """Return the vector of an embedded node, (n_dims,)."""
    assert node.vector is not None
    return node.vector


def vectors_of(nodes: Sequence[Node]) -> Floats2d:
    """Return the unit vectors of nodes, (n_nodes, n_dims)."""
    return unit_vectors([vector_of(node) for node in nodes])
