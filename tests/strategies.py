"""Hypothesis strategies, named by their axes. Arrays are read-only: inputs stay as given."""

import sys
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array

from hierindex.core.bounds import Caps
from hierindex.core.membership import (
    Membership,
    Rows,
    centroids,
    groups_of,
    normalised,
)
from hierindex.core.tree import Grouper, Tree, grow_tree
from hierindex.rules import (
    Cosine,
    Gradient,
    Interquartile,
    Optimal,
    Percentile,
    Rule,
    StandardDeviation,
    TargetSize,
)

SUMMARY_TOKENS = 20
UNBOUNDED = Caps(max_tokens=sys.maxsize, max_children=sys.maxsize)


def noise(rng: Generator, n: int, d: int) -> NDArray:
    return rng.normal(size=(n, d))


def blobs(rng: Generator, n: int, d: int) -> NDArray:
    return noise(rng, 4, d)[np.arange(n) % 4] + 0.01 * noise(rng, n, d)


def identical(rng: Generator, n: int, d: int) -> NDArray:
    return np.repeat(noise(rng, 1, d), n, axis=0)


def duplicates(rng: Generator, n: int, d: int) -> NDArray:
    return noise(rng, 1 + n // 3, d)[rng.integers(1 + n // 3, size=n)]


def collinear(rng: Generator, n: int, d: int) -> NDArray:
    return noise(rng, 1, d) + np.outer(rng.permutation(n) / 4, noise(rng, 1, d))


def one_outlier(rng: Generator, n: int, d: int) -> NDArray:
    X = identical(rng, n, d)
    X[n // 2 : n // 2 + 1] *= -1
    return X


SHAPES = {
    shape.__name__: shape for shape in (noise, blobs, identical, duplicates, collinear, one_outlier)
}


def unit_vectors(shape: str, n: int, d: int, seed: int = 0) -> NDArray:
    """(n, d) rows of length 1."""
    X = SHAPES[shape](np.random.default_rng(seed), n, d)
    return read_only(X / np.linalg.norm(X, axis=1, keepdims=True))


def read_only(array: NDArray) -> NDArray:
    array.flags.writeable = False
    return array


def seeds() -> st.SearchStrategy[int]:
    return st.integers(0, 2**32 - 1)


@st.composite
def vectors(
    draw: st.DrawFn,
    least_rows: int = 0,
    most_rows: int = 200,
    least_dims: int = 1,
    shapes: Sequence[str] = tuple(SHAPES),
) -> NDArray:
    """(n_rows, n_dims) unit vectors, single or double precision."""
    shape = draw(st.sampled_from(shapes))
    n, d = draw(st.integers(least_rows, most_rows)), draw(st.integers(least_dims, 64))
    X = unit_vectors(shape, n, d, draw(seeds()))
    return read_only(X.astype(draw(st.sampled_from([np.float64, np.float32]))))


@st.composite
def documents(draw: st.DrawFn, n_rows: int) -> NDArray:
    """(n_rows,) numbers in no order, equal in one run of rows each."""
    rng = np.random.default_rng(draw(seeds()))
    run = np.cumsum(rng.random(n_rows) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])))
    return read_only(rng.permutation(n_rows + 1)[run])


@st.composite
def token_counts(draw: st.DrawFn, n_rows: int) -> NDArray:
    """(n_rows,), from empty texts to texts over any of the caps."""
    most = draw(st.sampled_from([1, 20, 200]))
    rng = np.random.default_rng(draw(seeds()))
    return read_only(rng.integers(most + 1, size=n_rows))


@st.composite
def leaves(draw: st.DrawFn, least_rows: int = 0, most_rows: int = 100) -> Rows:
    X = draw(vectors(least_rows, most_rows))
    heading = draw(headings(len(X)))
    return Rows(X, draw(token_counts(len(X))), draw(documents(len(X))), heading=heading)


@st.composite
def headings(draw: st.DrawFn, n_rows: int) -> NDArray:
    """(n_rows,), none or of up to three levels."""
    share = draw(st.sampled_from([0.0, 0.2, 0.7]))
    rng = np.random.default_rng(draw(seeds()))
    return read_only(np.where(rng.random(n_rows) < share, rng.integers(1, 4, size=n_rows), 0))


def caps() -> st.SearchStrategy[Caps]:
    return st.builds(Caps, max_tokens=st.integers(1, 250), max_children=st.integers(2, 9))


def rules() -> st.SearchStrategy[Rule]:
    percentile, amount = st.floats(0, 100), st.floats(-2, 4)
    return st.one_of(
        st.builds(TargetSize, st.integers(1, 9)),
        st.builds(Percentile, percentile),
        st.builds(StandardDeviation, amount),
        st.builds(Interquartile, amount),
        st.builds(Gradient, percentile),
        st.builds(Cosine, st.floats(-1, 1, exclude_min=True)),
        st.builds(Optimal, rows=st.integers(1, 9)),
    )


@st.composite
def memberships(draw: st.DrawFn, n_rows: int, most_parents: int = 3) -> Membership:
    """Each row in one to `most_parents` groups, of at most 8 groups; `n_rows` at least 1."""
    rng = np.random.default_rng(draw(seeds()))
    n_groups = draw(st.integers(1, 8))
    n_parents = rng.integers(1, min(n_groups, most_parents) + 1, size=n_rows)
    column = np.concatenate([rng.choice(n_groups, size=n, replace=False) for n in n_parents])
    _, column = np.unique(column, return_inverse=True)
    weight = rng.integers(1, 5, size=len(column)) / 4
    return normalised(csr_array((weight, (np.repeat(np.arange(n_rows), n_parents), column))))


def grown(
    leaves: Rows, groupers: Sequence[Grouper], *, max_levels: int | None = None
) -> tuple[Tree, list[Rows]]:
    """The tree over `leaves` and the rows of each level; a group's centroid is its summary."""
    levels = [leaves]

    def above(rows: Rows, M: Membership) -> Rows:
        levels.append(parents(rows, M))
        return levels[-1]

    return grow_tree(leaves, groupers, above, max_levels=max_levels), levels


def leaf_weights(leaves: Rows, tree: Tree, level: int) -> csr_array:
    """Share of each leaf in each node of a level; rows sum to 1."""
    weights = csr_array(eye_array(len(leaves)))
    for layer in tree[:level]:
        weights = csr_array(weights @ layer)
    return weights


def parents(rows: Rows, M: Membership) -> Rows:
    n_tokens, document = [], []
    for column, group in enumerate(groups_of(M)):
        total, of = int(rows.n_tokens[group].sum()), np.unique(rows.document[group])
        n_tokens.append(total if len(group) == 1 else min(total, SUMMARY_TOKENS))
        document.append(of[0] if len(of) == 1 and of[0] >= 0 else -1 - column)
    return Rows(
        read_only(centroids(M, rows.X)),
        read_only(np.array(n_tokens)),
        read_only(np.array(document)),
        rows.level + 1,
        read_only(np.array([rows.heading[group[0]] for group in groups_of(M)], dtype=np.int64)),
    )
