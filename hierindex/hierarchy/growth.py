"""The algorithm that grows a tree over chunks, as a generator of model requests.

The generator yields texts to embed or groups to summarise and receives the results, so the
sync and the async driver run the same code.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode, TextNode

from hierindex.cache.texts import TextCache
from hierindex.core.identity import digest
from hierindex.core.membership import Floats2d, Membership, centroids, groups_of
from hierindex.core.rows import Rows
from hierindex.core.statistics import LevelStatistics, level_statistics
from hierindex.core.tree import Grouper, grow_tree
from hierindex.embed.embedder import Embedder, unit_vectors
from hierindex.embed.model_identity import identity
from hierindex.errors import InputError
from hierindex.hierarchy.earlier import EarlierTree
from hierindex.hierarchy.level_rows import headings_between, level_rows
from hierindex.hierarchy.metadata import Merge
from hierindex.hierarchy.nodes import Draft, make_leaves, make_parent
from hierindex.hierarchy.titles import note_titles
from hierindex.hierarchy.whole_documents import leaves_of_one_document, note_whole_documents
from hierindex.llm.usage import Usage
from hierindex.summarize.sentences import split_all
from hierindex.summarize.summary import Budget, Group, Summary
from hierindex.timing import Stopwatch, Timing

ParentEmbedding = Literal["text", "mean"]


@dataclass(frozen=True)
class Embed:
    """A request for the unit vectors of texts, (n_texts, n_dims)."""

    texts: list[str]
    stage: str


@dataclass(frozen=True)
class Summarize:
    """A request for a list with one `Summary` per group."""

    groups: list[Group]
    budget: Budget
    stage: str


Work = Embed | Summarize


@dataclass(frozen=True)
class Recipe:
    """Everything that determines a tree, apart from its chunks."""

    method: str
    groupers: Sequence[Grouper]
    embedder: Embedder
    summarizer: str  # name only
    shaped_by: str  # JSON of everything that determines a summary, apart from group and budget
    summary_tokens: int
    parent_embedding: ParentEmbedding
    max_levels: int | None
    summarize_single_documents: bool
    namespace: str
    metadata_rules: Mapping[str, Merge]
    earlier: EarlierTree
    is_rehearsal: bool  # an estimate: summaries are placeholders and are not cached


@dataclass(frozen=True)
class Grown:
    """A finished tree: its embedded nodes level by level, with usage, statistics and timings."""

    nodes: list[TextNode]
    usage: Usage
    statistics: list[LevelStatistics]
    timings: list[Timing]


Growth = Generator[Work, Any, Grown]


def grow_nodes(chunks: Sequence[BaseNode], recipe: Recipe, memory: TextCache | None) -> Growth:
    """Grow a tree over chunks, which are not modified.

    Parameters
    ----------
    chunks : Sequence[BaseNode]
    recipe : Recipe
    memory : TextCache or None
        Cache that summaries are read from and written to.
    """
    watch = Stopwatch()
    with watch("link", 0):
        leaves = make_leaves(chunks, recipe.namespace)
    if not leaves:
        return Grown([], Usage(), [], [])
    recipe.embedder.warn_of_summaries(recipe.summary_tokens)
    with watch("embed", 0):
        rows = yield from _embedded(leaves, recipe)
    current, drafts, usage, levels = leaves, list(leaves), Usage(), [rows]
    growth = grow_tree(rows, recipe.groupers, max_levels=recipe.max_levels)
    try:
        with watch("cluster", 1):
            M = next(growth)
        while True:
            level = rows.level + 1
            parents, X, cost = yield from _parents(current, rows, M, recipe, memory, watch)
            with watch("link", level):
                _link(current, parents, M, level)
                drafts += [parent for parent in parents if parent.record.level == level]
                usage += cost
                first = [group[0] for group in groups_of(M)]
                before = recipe.earlier.continued(M, rows.before, current, parents)
                current, rows = parents, level_rows(parents, X, level, rows.heading[first], before)
                levels.append(rows)
            with watch("cluster", level + 1):
                M = growth.send(rows)
    except StopIteration as end:
        with watch("cluster", None):
            statistics = level_statistics(end.value, levels)
    with watch("link", None):
        leaves_of = leaves_of_one_document(drafts)
        note_whole_documents(drafts, leaves_of)
        note_titles(drafts, leaves_of)
        for draft in drafts:
            draft.note(
                method=recipe.method,
                embed_model=recipe.embedder.name,
                embed_settings=identity(recipe.embedder.embed_model),
                summarizer=recipe.summarizer,
            )
        nodes = [draft.finished() for draft in drafts]
    return Grown(nodes, usage, statistics, watch.timings)


def _embedded(leaves: Sequence[Draft], recipe: Recipe) -> Generator[Work, Any, Rows]:
    """Count the tokens of leaves, embed those without a vector and return them as rows."""
    nodes = [leaf.node for leaf in leaves]
    texts = [node.get_content(MetadataMode.EMBED) for node in nodes]
    n_tokens = recipe.embedder.count_tokens(texts)
    recipe.embedder.warn_of_cut(n_tokens, "chunks")
    for leaf, n in zip(leaves, n_tokens.tolist(), strict=True):
        leaf.note(n_tokens=n)
    new = [i for i, node in enumerate(nodes) if node.embedding is None]
    vectors = (yield Embed([texts[i] for i in new], "embed chunks")) if new else []
    for i, vector in zip(new, vectors, strict=True):
        nodes[i].embedding = vector.tolist()
    X = unit_vectors([node.get_embedding() for node in nodes])
    return level_rows(leaves, X, 0, headings_between(nodes), recipe.earlier.before(leaves))


def _parents(
    current: Sequence[Draft],
    rows: Rows,
    M: Membership,
    recipe: Recipe,
    memory: TextCache | None,
    watch: Stopwatch,
) -> Generator[Work, Any, tuple[list[Draft], Floats2d, Usage]]:
    """Return the next level with its unit vectors and usage; a group of one passes up unchanged."""
    groups, level = groups_of(M), rows.level + 1
    alone = recipe.summarize_single_documents and rows.level == 0
    written = [g for g, group in enumerate(groups) if len(group) > 1 or alone]
    children = [[current[row] for row in groups[g]] for g in written]
    with watch("summarize", level):
        keys = [_key(c, recipe) for c in children]
        summaries = yield from _summaries(keys, children, recipe, memory, level)
    with watch("link", level):
        made = [
            make_parent(key, c, summary, level=level, rules=recipe.metadata_rules)
            for key, c, summary in zip(keys, children, summaries, strict=True)
        ]
    with watch("embed", level):
        X = np.array([rows.X[group[0]] for group in groups])  # (n_groups, n_dims)
        texts = [parent.node.text for parent in made]
        if recipe.parent_embedding == "mean":
            X[written] = centroids(M, rows.X)[written]
        elif texts:
            X[written] = yield from _embedded_texts(texts, rows.X.shape[1], level)
        n_tokens = recipe.embedder.count_tokens(texts)
    parents = [current[group[0]] for group in groups]
    for g, parent, n in zip(written, made, n_tokens.tolist(), strict=True):
        parent.node.embedding = X[g].tolist()
        parent.note(n_tokens=n)
        parents[g] = parent
    usage = sum((summary.usage for summary in summaries), Usage())
    return parents, X, usage


def _key(children: Sequence[Draft], recipe: Recipe) -> str:
    """Digest everything that determines a group's summary."""
    number: dict[str | None, int] = {}  # documents by order: renaming one keeps the cache hit
    fields = []
    for child in children:
        parts = [
            (q.at, q.to, number.setdefault(q.source and q.source.document, len(number)))
            for q in child.record.quotes
        ]
        fields += [child.node.text, json.dumps(parts)]
    return digest("summary", recipe.shaped_by, str(_budget(recipe).max_tokens), *fields)


def _summaries(
    keys: Sequence[str],
    children: Sequence[Sequence[Draft]],
    recipe: Recipe,
    memory: TextCache | None,
    level: int,
) -> Generator[Work, Any, list[Summary]]:
    """Return one summary per group, from the cache where it has one."""
    known = {} if memory is None else memory.recall_summaries(keys)
    first: dict[str, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)  # equal groups, as of copies, share a summary
    new = [i for key, i in first.items() if key not in known]
    wanted: list[Group] = [
        split_all((c.node.text, c.record.quotes) for c in children[i]) for i in new
    ]
    written: Sequence[Summary] = (
        (yield Summarize(wanted, _budget(recipe), f"summarize level {level}")) if new else []
    )
    fresh = dict(zip(new, written, strict=True))
    if memory is not None and not recipe.is_rehearsal:
        lasting = {i: s for i, s in fresh.items() if s.kind != "extractive_fallback"}
        memory.keep_summaries({keys[i]: (s.text, s.details) for i, s in lasting.items()})
    known |= {keys[i]: (summary.text, summary.details) for i, summary in fresh.items()}
    return [fresh[i] if i in fresh else Summary.recalled(*known[key]) for i, key in enumerate(keys)]


def _budget(recipe: Recipe) -> Budget:
    """Return the token budget of a summary, capped by the embedding model's window."""
    embedder = recipe.embedder
    return Budget(min(recipe.summary_tokens, embedder.room), embedder.count_text_tokens)


def _embedded_texts(texts: list[str], n_dims: int, level: int) -> Generator[Work, Any, Floats2d]:
    """Embed summaries and check their dimension."""
    X: Floats2d = yield Embed(texts, f"embed level {level}")
    if X.shape[1] != n_dims:
        raise InputError(
            f"Chunks have embeddings of {n_dims} dimensions, summaries of {X.shape[1]}; "
            "pass the embedding model that embedded the chunks as embed_model=."
        )
    return X


def _link(current: Sequence[Draft], parents: Sequence[Draft], M: Membership, level: int) -> None:
    """Record each node's parents, strongest first, or the level that it passes up to."""
    for i, draft in enumerate(current):
        row = slice(M.indptr[i], M.indptr[i + 1])
        columns, weights = M.indices[row], M.data[row]
        if parents[columns[0]] is draft:
            draft.note(level_max=level)
            continue
        order = np.lexsort((columns, -weights))
        pairs = zip(columns[order], weights[order], strict=True)
        draft.note(parents=tuple((parents[g].node.node_id, float(w)) for g, w in pairs))
