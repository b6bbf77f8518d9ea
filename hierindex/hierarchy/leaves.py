"""Leaves of chunks, with their vectors."""

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode

from hierindex.core.membership import Floats2d
from hierindex.hierarchy.nodes import Draft, make_leaves
from hierindex.hierarchy.recipe import Embed, Recipe, Work
from hierindex.hierarchy.similar import vectors_of
from hierindex.timing import Stopwatch


def embedded_leaves(
    chunks: Sequence[BaseNode], recipe: Recipe, watch: Stopwatch
) -> Generator[Work, Any, tuple[list[Draft], Floats2d]]:
    """Return leaves made of chunks with their unit vectors, (n_leaves, n_dims).

    Those without a vector are embedded.
    """
    embedder = recipe.embedder
    with watch("link", 0):
        leaves = make_leaves(chunks, recipe.namespace)
    embedder.warn_of_summaries(recipe.summary_tokens)
    if not leaves:
        return [], np.zeros((0, 1))
    with watch("embed", 0):
        texts = [leaf.node.get_content(MetadataMode.EMBED) for leaf in leaves]
        n_tokens = embedder.count_tokens(texts)
        embedder.warn_of_cut(n_tokens, "chunks")
        for leaf, n in zip(leaves, n_tokens.tolist(), strict=True):
            leaf.note(n_tokens=n)
        new = [i for i, leaf in enumerate(leaves) if leaf.vector is None]
        vectors = (yield Embed([texts[i] for i in new], "embed chunks")) if new else []
        for i, vector in zip(new, vectors, strict=True):
            leaves[i].vector = vector.copy()  # not all of them
        return leaves, vectors_of(leaves)
