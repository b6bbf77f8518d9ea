"""The algorithm that grows a tree over chunks, as a generator of model requests.

The generator yields texts to embed or groups to summarise and receives the results, so the
sync and the async driver run the same code.
"""

from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode, TextNode

from hierindex.cache.texts import TextCache
from hierindex.core.membership import Floats2d, Membership, centroids, groups_of
from hierindex.core.rows import Rows
from hierindex.core.statistics import LevelStatistics, level_statistics
from hierindex.core.tree import Grouper, grow_tree
from hierindex.embed.embedder import Embedder, unit_vectors
from hierindex.embed.model_identity import identity
from hierindex.hierarchy.earlier import EarlierTree
from hierindex.hierarchy.level_rows import headings_between, level_rows
from hierindex.hierarchy.nodes import Draft, make_leaves
from hierindex.hierarchy.parents import parents_of
from hierindex.hierarchy.recipe import Embed, Recipe, Work
from hierindex.hierarchy.titles import note_titles
from hierindex.hierarchy.whole_documents import leaves_of_one_document, note_whole_documents
from hierindex.llm.usage import Usage
from hierindex.timing import Stopwatch, Timing


@dataclass(frozen=True)
class Grown:
    """A finished tree, or what an update changes of it.

    `nodes` are embedded, level by level, and `gone` are the ids of the earlier nodes that the tree
    no longer has. `statistics` are of the nodes that were grouped.
    """

    nodes: list[TextNode]
    gone: frozenset[str]
    usage: Usage
    statistics: list[LevelStatistics]
    timings: list[Timing]


Growth = Generator[Work, Any, Grown]
Level = tuple[Sequence[Draft], Rows]


def grow_nodes(
    chunks: Sequence[BaseNode],
    recipe: Recipe,
    memory: TextCache | None,
    earlier: EarlierTree | None = None,
) -> Growth:
    """Grow a tree over chunks, which are not modified.

    Parameters
    ----------
    chunks : Sequence[BaseNode]
        Of all documents; to change an earlier tree, of those that are new or have changed.
    recipe : Recipe
    memory : TextCache or None
        Cache that summaries are read from and written to.
    earlier : EarlierTree, optional
        The tree to change.
    """
    growing = _Growing(recipe, memory)
    nodes, rows = yield from growing.leaves(chunks)
    nodes, rows = yield from growing.levels_above(nodes, rows, recipe.within)
    nodes, rows = growing.with_other_documents(nodes, rows, earlier)
    yield from growing.levels_above(nodes, rows, recipe.across)
    return growing.finished()


class _Growing:
    """A tree while it grows."""

    def __init__(self, recipe: Recipe, memory: TextCache | None) -> None:
        self._recipe, self._memory = recipe, memory
        self._made: list[Draft] = []
        self._earlier: EarlierTree | None = None  # what the levels above documents are part of
        self._document_levels = 0
        self._layers: list[Membership] = []
        self._levels: list[Rows] = []
        self._usage = Usage()
        self._watch = Stopwatch()

    def leaves(self, chunks: Sequence[BaseNode]) -> Generator[Work, Any, Level]:
        """Return leaves made of chunks, after embedding those without a vector."""
        with self._watch("link", 0):
            leaves = make_leaves(chunks, self._recipe.namespace)
        self._recipe.embedder.warn_of_summaries(self._recipe.summary_tokens)
        X: Floats2d = np.zeros((0, 1))
        if leaves:
            with self._watch("embed", 0):
                X = yield from _embedded(leaves, self._recipe.embedder)
        rows = level_rows(leaves, X, 0, headings_between([leaf.node for leaf in leaves]))
        self._made += leaves
        self._levels.append(rows)
        return leaves, rows

    def levels_above(
        self, nodes: Sequence[Draft], rows: Rows, groupers: Sequence[Grouper]
    ) -> Generator[Work, Any, Level]:
        """Grow levels above one until the groupers are done, and return the highest."""
        most = self._recipe.max_levels
        growth = grow_tree(rows, groupers, max_levels=None if most is None else most - rows.level)
        with suppress(StopIteration):
            with self._watch("cluster", rows.level + 1):
                M = next(growth)
            while True:
                nodes, rows = yield from self._level_above(nodes, rows, M)
                self._layers.append(M)
                self._levels.append(rows)
                with self._watch("cluster", rows.level + 1):
                    M = growth.send(rows)
        return nodes, rows

    def with_other_documents(
        self, nodes: Sequence[Draft], rows: Rows, earlier: EarlierTree | None
    ) -> Level:
        """Return the highest nodes of documents, with those of an earlier tree to group with."""
        self._earlier, self._document_levels = earlier, rows.level
        if earlier is not None:
            with self._watch("link", None):
                is_grouped = bool(self._recipe.within)
                self._document_levels = earlier.replace_documents(
                    self._made, rows.level, is_grouped=is_grouped
                )
                for draft in nodes:
                    draft.note(level_max=self._document_levels)
                if self._recipe.across:
                    nodes, rows = earlier.around(nodes, rows.X, self._document_levels)
                    self._levels[-1] = rows
        return nodes, rows

    def _level_above(
        self, nodes: Sequence[Draft], rows: Rows, M: Membership
    ) -> Generator[Work, Any, Level]:
        """Return the parents of nodes with their rows; a group of one passes up unchanged."""
        earlier, level, groups = self._earlier, rows.level + 1, groups_of(M)
        kept = earlier.kept(nodes, M) if earlier else {}
        alone = self._recipe.summarize_single_documents and rows.level == 0
        new = [g for g, of in enumerate(groups) if g not in kept and (len(of) > 1 or alone)]
        made, X_new, usage = yield from parents_of(
            [[nodes[row] for row in groups[g]] for g in new],
            centroids(M, rows.X)[new],
            level,
            self._recipe,
            self._memory,
            self._watch,
        )
        self._made += made
        self._usage += usage
        with self._watch("link", level):
            first = np.array([group[0] for group in groups], dtype=np.int64)
            X = rows.X[first]
            X[new] = X_new
            parents: list[Draft | str] = [nodes[row] for row in first]  # passing up
            for g, parent in zip(new, made, strict=True):
                parents[g] = parent
            for g, node_id in kept.items():
                parents[g] = node_id
            _link(nodes, parents, M, level, earlier)
            if earlier:
                return earlier.rise(nodes, M, parents, X)
            current = [draft for draft in parents if isinstance(draft, Draft)]
            return current, level_rows(current, X, level, rows.heading[first])

    def finished(self) -> Grown:
        """Return the tree, after noting what depends on all of it."""
        recipe, earlier = self._recipe, self._earlier
        with self._watch("cluster", None):
            statistics = level_statistics(self._layers, self._levels)
        with self._watch("link", None):
            drafts, documents = self._made, _of_one_document(self._made)
            if earlier:
                earlier.finish(self._made)
                documents |= _of_one_document(
                    d for d in earlier.changed if d.record.level > self._document_levels
                )
                drafts = earlier.among_related(self._made, documents)
            leaves_of = leaves_of_one_document(drafts, documents)
            note_whole_documents(drafts, leaves_of)
            note_titles(drafts, leaves_of)
            for draft in self._made:
                draft.note(
                    method=recipe.method,
                    embed_model=recipe.embedder.name,
                    embed_settings=identity(recipe.embedder.embed_model),
                    summarizer=recipe.summarizer,
                )
            changed = [*self._made, *(earlier.changed if earlier else ())]
            nodes = [draft.finished() for draft in changed]
        return Grown(
            nodes,
            frozenset(earlier.gone if earlier else ()),
            self._usage,
            statistics,
            self._watch.timings,
        )


def _embedded(leaves: Sequence[Draft], embedder: Embedder) -> Generator[Work, Any, Floats2d]:
    """Count the tokens of leaves, embed those without a vector and return all unit vectors."""
    nodes = [leaf.node for leaf in leaves]
    texts = [node.get_content(MetadataMode.EMBED) for node in nodes]
    n_tokens = embedder.count_tokens(texts)
    embedder.warn_of_cut(n_tokens, "chunks")
    for leaf, n in zip(leaves, n_tokens.tolist(), strict=True):
        leaf.note(n_tokens=n)
    new = [i for i, node in enumerate(nodes) if node.embedding is None]
    vectors = (yield Embed([texts[i] for i in new], "embed chunks")) if new else []
    for i, vector in zip(new, vectors, strict=True):
        nodes[i].embedding = vector.tolist()
    return unit_vectors([node.get_embedding() for node in nodes])


def _link(
    nodes: Sequence[Draft],
    parents: list[Draft | str],
    M: Membership,
    level: int,
    earlier: EarlierTree | None,
) -> None:
    """Note each node's parents, strongest first, or the level that it passes up to.

    A node that would pass up, but has parents beside these groups, stays with those parents.
    """
    for i, draft in enumerate(nodes):
        row = slice(M.indptr[i], M.indptr[i + 1])
        columns, weights = M.indices[row], M.data[row]
        beside = earlier.parents_beside(draft) if earlier else {}
        passes = parents[columns[0]] is draft
        if passes and not beside:
            draft.note(level_max=level)
            continue
        total = sum(beside.values())
        if passes:
            parents[columns[0]] = next(iter(beside))
            weight_of = {parent: weight / total for parent, weight in beside.items()}
        else:
            weight_of = defaultdict(float, beside)
            for g, share in zip(columns, ((1 - total) * weights).tolist(), strict=True):
                weight_of[_id(parents[g])] += share
        pairs = sorted(weight_of.items(), key=lambda pair: -pair[1])
        known = {parent for parent, _ in draft.record.parents}
        if known != {parent for parent, _ in pairs}:
            draft.note(parents=tuple(pairs))
        draft.note(level_max=level - 1)


def _id(parent: Draft | str) -> str:
    return parent if isinstance(parent, str) else parent.id


def _of_one_document(drafts: Iterable[Draft]) -> set[str]:
    """Return the documents of the nodes that have text of one document only."""
    return {d.record.documents[0] for d in drafts if len(d.record.documents) == 1}
