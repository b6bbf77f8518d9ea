"""Vectors and weights of nodes as matrices, and nodes that are like each other."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.membership import Floats2d
from hierindex.embed.embedder import unit_vectors
from hierindex.hierarchy.nodes import Draft

ALIKE = 0.5  # cosine from which a node that replaces another takes its place among the others


def most_alike(new: Sequence[Draft], gone: Sequence[Draft]) -> dict[str, str]:
    """Return which node of the same document each new one is most like, each of them once."""
    if not (new and gone):
        return {}
    documents = [[draft.record.documents[0] for draft in drafts] for drafts in (new, gone)]
    X, Y = map(vectors_of, (new, gone))
    similarity = np.where(np.equal.outer(*map(np.array, documents)), X @ Y.T, -1.0)
    rows, columns = np.nonzero(similarity >= ALIKE)
    follows: dict[str, str] = {}
    for i in np.argsort(-similarity[rows, columns], kind="stable"):
        node, other = new[rows[i]].id, gone[columns[i]].id
        if node not in follows and other not in follows.values():
            follows[node] = other
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


def stacked(X: Floats2d, drafts: Sequence[Draft]) -> Floats2d:
    """Return rows of vectors with those of nodes below them."""
    if not drafts:
        return X
    return np.concatenate([X, vectors_of(drafts)]) if len(X) else vectors_of(drafts)


def vectors_of(drafts: Sequence[Draft]) -> Floats2d:
    """Return the unit vectors of nodes, (n_nodes, n_dims)."""
    return unit_vectors([draft.embedding for draft in drafts])
