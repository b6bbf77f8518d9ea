"""The algorithm that grows a tree over chunks, as a generator of model requests.

The generator yields texts to embed or groups to summarise and receives the results, so the
sync and the async driver run the same code.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
from llama_index.core.schema import BaseNode, TextNode

from hierindex.cache.texts import TextCache
from hierindex.core.membership import Floats2d, Membership, centroids, groups_of
from hierindex.core.rows import Rows
from hierindex.core.statistics import LevelStatistics, Tally, added, tallies
from hierindex.core.tree import Grouper, grow_tree
from hierindex.embed.model_identity import identity
from hierindex.errors import InputError
from hierindex.hierarchy.earlier import EarlierTree
from hierindex.hierarchy.leaves import embedded_leaves
from hierindex.hierarchy.level_rows import headings_between, level_rows
from hierindex.hierarchy.links import link
from hierindex.hierarchy.nodes import Draft
from hierindex.hierarchy.parents import parents_of
from hierindex.hierarchy.recipe import Recipe, Work
from hierindex.hierarchy.titles import note_given_titles, note_phrases
from hierindex.hierarchy.whole_documents import (
    documents_alone,
    leaves_of_one_document,
    note_whole_documents,
)
from hierindex.llm.usage import Usage
from hierindex.timing import Stopwatch, Timing


@dataclass(frozen=True)
class Grown:
    """A finished tree, or what an update changes of it.

    `nodes` are embedded, without those that were set aside; if none was, they are level by level.
    `gone` are the ids of the earlier nodes that the tree no longer has. `made` are the ids of all
    nodes that were grown in place of earlier ones, also of those that were there before.
    `grounding` is the mean of the summaries that a model wrote, None if it wrote none. `statistics`
    are of the nodes that were grouped.
    """

    nodes: list[TextNode]
    gone: frozenset[str]
    made: frozenset[str]
    usage: Usage
    grounding: float | None
    statistics: list[LevelStatistics]
    timings: list[Timing]


Growth = Generator[Work, Any, Grown]
Level = tuple[Sequence[Draft], Rows]
Parts = Iterable[Sequence[BaseNode]]
"""Chunks of all documents, those of one document in one part."""
Aside = Callable[[Sequence[TextNode]], None]
"""Takes finished nodes of documents, which the growth does not need any more."""


def grow_nodes(
    parts: Parts,
    recipe: Recipe,
    memory: TextCache | None,
    earlier: EarlierTree | None = None,
    aside: Aside | None = None,
) -> Growth:
    """Grow a tree over chunks, which are not modified.

    The trees of documents are grown part by part, and then the levels above all of them. So if
    finished nodes are set aside, memory is needed for one part and for the roots of documents, and
    for all nodes of documents without one root, such as those whose chunks are grouped with others.

    Parameters
    ----------
    parts : Parts
        To change an earlier tree, of the documents that are new or have changed. The tree does not
        depend on the parts.
    recipe : Recipe
    memory : TextCache or None
        Cache that summaries are read from and written to.
    earlier : EarlierTree, optional
        The tree to change.
    aside : Aside, optional
        By default, no nodes are set aside.
    """
    growing = _Growing(recipe, memory, earlier, aside)
    for chunks in parts:
        yield from growing.documents(chunks)
    yield from growing.above_documents()
    return growing.finished()


class _Growing:
    """A tree while it grows."""

    def __init__(
        self,
        recipe: Recipe,
        memory: TextCache | None,
        earlier: EarlierTree | None,
        aside: Aside | None,
    ) -> None:
        self._recipe, self._memory = recipe, memory
        self._earlier, self._aside = earlier, aside
        self._made: list[Draft] = []  # without those that are set aside
        self._ids: set[str] = set()  # also of those, if there is an earlier tree
        self._done: set[str] = set()  # documents of the nodes that are set aside
        self._tops: list[Draft] = []  # of the trees of documents
        self._vectors: list[Floats2d] = []  # theirs, by part
        self._document_levels = 0
        self._tallies: list[list[Tally]] = []  # of the trees of documents, by part
        self._layers: list[Membership] = []
        self._levels: list[Rows] = []
        self._usage = Usage()
        self._shares: list[float] = []  # grounding of each summary that a model wrote
        self._watch = Stopwatch()

    def documents(self, chunks: Sequence[BaseNode]) -> Generator[Work, Any, None]:
        """Grow the trees of documents over their chunks."""
        first = len(self._made)
        leaves, X = yield from embedded_leaves(chunks, self._recipe, self._watch)
        rows = level_rows(leaves, X, 0, headings_between([leaf.node for leaf in leaves]))
        self._made += leaves
        self._levels.append(rows)
        nodes, rows = yield from self._levels_above(leaves, rows, self._recipe.within)
        with self._watch("cluster", None):
            self._tallies.append(tallies(self._layers, self._levels))
            self._layers, self._levels = [], []
        with self._watch("link", None):
            self._tops += nodes
            if nodes:
                self._vectors.append(rows.X)
            if len(widths := {X.shape[1] for X in self._vectors}) > 1:
                raise InputError(f"Embeddings must have one dimension, got {sorted(widths)}.")
            if self._earlier:
                self._ids.update(draft.id for draft in self._made[first:])
            finished = self._finished_from(first) if self._aside else []
        if self._aside:
            with self._watch("write", None):
                self._aside(finished)

    def above_documents(self) -> Generator[Work, Any, None]:
        """Grow the levels above the trees of documents, of an earlier tree among them."""
        earlier, recipe, tops = self._earlier, self._recipe, self._tops
        X = np.concatenate(self._vectors) if self._vectors else np.zeros((0, 1))
        with self._watch("link", None):
            level = max(map(len, self._tallies), default=1) - 1
            if earlier:
                is_grouped = bool(recipe.within)
                level = earlier.replace_documents(tops, self._ids, level, is_grouped=is_grouped)
            self._document_levels = level
            for draft in tops:
                draft.note(level_max=level)
            if earlier and recipe.across:
                nodes, rows = earlier.around(tops, X, level)
            else:
                nodes, rows = tops, level_rows(tops, X, level)
            self._levels.append(rows)
        yield from self._levels_above(nodes, rows, recipe.across, earlier)

    def _levels_above(
        self,
        nodes: Sequence[Draft],
        rows: Rows,
        groupers: Sequence[Grouper],
        earlier: EarlierTree | None = None,
    ) -> Generator[Work, Any, Level]:
        """Grow levels above one until the groupers are done, and return the highest."""
        most = self._recipe.max_levels
        growth = grow_tree(rows, groupers, max_levels=None if most is None else most - rows.level)
        with suppress(StopIteration):
            with self._watch("cluster", rows.level + 1):
                M = next(growth)
            while True:
                nodes, rows = yield from self._level_above(nodes, rows, M, earlier)
                self._layers.append(M)
                self._levels.append(rows)
                with self._watch("cluster", rows.level + 1):
                    M = growth.send(rows)
        return nodes, rows

    def _finished_from(self, first: int) -> list[TextNode]:
        """Finish the nodes below the roots of those last documents that have one root."""
        drafts = self._made[first:]
        n_roots = Counter(d.record.documents[0] for d in drafts if not d.record.parents)
        done = {document for document, n in n_roots.items() if n == 1}
        whole = [draft for draft in drafts if draft.record.documents[0] in done]
        _note_documents(whole, done)
        below = [draft for draft in whole if draft.record.parents]
        note_phrases(below)
        self._done |= done
        self._made[first:] = [
            d for d in drafts if d.record.documents[0] not in done or not d.record.parents
        ]
        self._note_models(below)
        return [draft.finished() for draft in below]

    def _level_above(
        self, nodes: Sequence[Draft], rows: Rows, M: Membership, earlier: EarlierTree | None
    ) -> Generator[Work, Any, Level]:
        """Return the parents of nodes with their rows; a group of one passes up unchanged."""
        level, groups = rows.level + 1, groups_of(M)
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
        self._shares += [
            draft.record.grounding
            for draft in made
            if draft.record.kind == "abstractive" and draft.record.grounding is not None
        ]
        with self._watch("link", level):
            first = np.array([group[0] for group in groups], dtype=np.int64)
            X = rows.X[first]
            X[new] = X_new
            parents: list[Draft | str] = [nodes[row] for row in first]  # passing up
            for g, parent in zip(new, made, strict=True):
                parents[g] = parent
            for g, node_id in kept.items():
                parents[g] = node_id
            link(nodes, parents, M, level, earlier)
            if earlier:
                return earlier.rise(nodes, M, parents, X)
            current = [draft for draft in parents if isinstance(draft, Draft)]
            return current, level_rows(current, X, level, rows.heading[first])

    def finished(self) -> Grown:
        """Return the tree, after noting what depends on all of it."""
        earlier, made = self._earlier, self._made
        with self._watch("cluster", None):
            statistics = [tally.statistics() for tally in self._all_tallies()]
        with self._watch("link", None):
            drafts, documents = made, documents_alone(made)
            if earlier:
                self._ids.update(draft.id for draft in made)
                earlier.finish(self._ids)
                documents |= documents_alone(
                    d for d in earlier.changed if d.record.level > self._document_levels
                )
                drafts = earlier.among_related(made, documents - self._done)
            _note_documents(drafts, documents - self._done)
            note_phrases(sorted(drafts, key=lambda draft: draft.record.level))
            self._note_models(made)
            changed = [*made, *(earlier.changed if earlier else ())]
            nodes = [draft.finished() for draft in changed]
        return Grown(
            nodes,
            frozenset(earlier.gone if earlier else ()),
            frozenset(self._ids),
            self._usage,
            round(fmean(self._shares), 3) if self._shares else None,
            statistics,
            self._watch.timings,
        )

    def _all_tallies(self) -> list[Tally]:
        """Return the tallies of all levels; of a tree that is changed, of what was grouped."""
        within, across = added(self._tallies), tallies(self._layers, self._levels)
        if within:  # the highest nodes of documents stand among those that they are grouped with
            top = replace(within.pop(), level=across[0].level)
            across[0] = replace(top, nodes=across[0].nodes, tokens=across[0].tokens)
        return [*within, *across]

    def _note_models(self, drafts: Iterable[Draft]) -> None:
        """Note what the nodes were made by."""
        recipe = self._recipe
        settings = identity(recipe.embedder.embed_model)
        for draft in drafts:
            draft.note(
                method=recipe.method,
                embed_model=recipe.embedder.name,
                embed_settings=settings,
                summarizer=recipe.summarizer,
            )


def _note_documents(drafts: Sequence[Draft], documents: Set[str]) -> None:
    """Note which nodes are whole documents, and the titles that documents give them."""
    leaves = leaves_of_one_document(drafts, documents)
    note_whole_documents(drafts, leaves)
    note_given_titles(drafts, leaves)
