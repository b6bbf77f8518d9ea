"""What a tree will be, by arithmetic: from the chunks' numbers and tokens, without a vector."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from llama_index.core.schema import BaseNode, MetadataMode
from llama_index.core.utils import get_tokenizer

from hierindex.core.crossing import crossing_costs
from hierindex.core.groupers import ByMixture, BySegment
from hierindex.core.membership import Floats1d, Ints1d
from hierindex.core.optimal import STRETCH, WORTH_A_SEGMENT, Optimal
from hierindex.core.tree import Grouper
from hierindex.hierarchy.level_rows import headings_between
from hierindex.hierarchy.recipe import Recipe
from hierindex.llm.usage import Usage
from hierindex.summarize.summary import Summarizer

# At least and at most, so that what the builds of tests/benchmarks/estimate.py took is between.
SPREAD = 3  # a mixture's groups have a third of the rows that they are meant to have, or more
SHARED = 1, 1.5  # groups that a row joins
READ = 0.6, 1.1  # of the tokens that an extract may have
WRITTEN = 0.25, 1  # of the tokens that a summary may have
SAMPLE = 100  # texts whose tokens are counted as a language model counts them


class Expected(NamedTuple):
    """The nodes of each cut, from the chunks up, and what the summaries would cost."""

    nodes: list[int]
    usage: Usage


def expected_trees(
    chunks: Sequence[BaseNode], recipe: Recipe, summarizer: Summarizer
) -> tuple[Expected, Expected]:
    """The smallest and the largest tree that there may be over chunks.

    Parameters
    ----------
    chunks : Sequence[BaseNode]
        One at least.
    recipe : Recipe
    summarizer : Summarizer
        One that `rehearsed` gave: its rewrites say what they would cost.
    """
    texts = [chunk.get_content(MetadataMode.EMBED) for chunk in chunks]
    n_tokens = recipe.embedder.count_text_tokens(texts)
    sample = slice(None, None, len(texts) // SAMPLE + 1)
    counted = sum(len(get_tokenizer()(text)) for text in texts[sample])
    ratio = counted / max(1, int(n_tokens[sample].sum()))  # of an LLM's tokens to those
    _, document = np.unique([c.ref_doc_id or c.node_id for c in chunks], return_inverse=True)
    rows, tokens = (np.bincount(document, w).astype(float) for w in (None, n_tokens))
    heading, order = headings_between(chunks), np.argsort(document, kind="stable")
    parts = np.split(heading[order], np.cumsum(rows[:-1]).astype(int))
    sections = np.array([_n_sections(part) for part in parts])
    summary_tokens = min(recipe.summary_tokens, recipe.embedder.room)
    rewriter = getattr(summarizer, "rewriter", None)
    call = rewriter.rewrite([""], max_tokens=summary_tokens)[0].usage if rewriter else Usage()
    extract_tokens = getattr(summarizer, "extract_tokens", None) or np.inf

    def expected(most: int) -> Expected:
        written = WRITTEN[most] * summary_tokens
        nodes, n_calls, n_read = _grown(
            rows, tokens, sections, recipe, extract_tokens, written, most
        )
        n_calls *= call.llm_calls
        prompt = n_calls and n_calls * call.prompt_tokens + READ[most] * ratio * n_read
        return Expected(nodes, Usage(n_calls, int(prompt), n_calls * call.completion_tokens))

    return expected(0), expected(1)


def _n_sections(heading: Ints1d) -> int:
    """How many segments a document's headings ask for; 0 if it has none."""
    costs = crossing_costs(heading)
    return int(costs.any() and 1 + np.count_nonzero(costs > WORTH_A_SEGMENT))


def _grown(
    rows: Floats1d,
    tokens: Floats1d,
    sections: Floats1d,
    recipe: Recipe,
    extract_tokens: float,
    summary_tokens: float,
    most: int,
) -> tuple[list[int], int, float]:
    """The nodes of each cut, the number of summaries, and the tokens of their extracts.

    `rows` and `tokens`, (n_documents,), are those of each document's chunks, and `sections` are the
    segments that its headings ask for. Those of higher levels depend on the cuts below.
    """
    nodes, n_written, n_read = [int(rows.sum())], 0, 0.0
    groupers: list[Grouper] = [*recipe.within, *recipe.across]
    for grouper in groupers:
        if isinstance(grouper, ByMixture) and not grouper.per_document:
            rows, tokens = rows.sum(keepdims=True), tokens.sum(keepdims=True)
        while len(nodes) <= (recipe.max_levels or np.inf):
            most_sections = np.sign(sections) * ((2 * rows + 1) // 5)  # of two and three rows
            is_known = (len(nodes) == 1) & (rows <= STRETCH)
            asked = np.where(is_known, sections, most * most_sections)
            groups = _n_groups(grouper, rows, tokens, asked, most)
            alone = recipe.summarize_single_documents and len(nodes) == 1
            if groups.sum() >= rows.sum() and not alone:
                break
            new = (rows > 1) | alone
            n_written += int(groups[new].sum())
            n_read += np.minimum(SHARED[most] * tokens, groups * extract_tokens)[new].sum()
            nodes.append(int(groups.sum()))
            rows, tokens = groups, np.where(new, groups * summary_tokens, tokens)
    return nodes, n_written, float(n_read)


def _n_groups(
    grouper: Grouper, rows: Floats1d, tokens: Floats1d, sections: Floats1d, most: int
) -> Floats1d:
    """How many groups the rows of each part have, (n_parts,)."""
    size: float
    needed = np.zeros_like(rows)
    match grouper:
        case BySegment(rule=Optimal(rows=size), caps=caps) if size > 2:
            size, needed = min(size, caps.max_children), sections
        case BySegment(caps=caps):
            size = (caps.max_children, 1.5)[most]  # `bounded`: two groups of three rows at most
        case ByMixture(caps=caps, model=model):
            meant = min(caps.max_children, model.target_size or caps.max_children)
            size = (caps.max_children, max(2, meant / SPREAD))[most]
        case _:
            return np.ones_like(rows)
    crowded = tokens > caps.max_tokens
    # Of groups that are filled one after the other, two neighbours together are over the cap.
    by_tokens = crowded * (1 + most) * tokens / caps.max_tokens
    groups = np.ceil(np.maximum(np.maximum(rows / size, by_tokens), needed))
    if isinstance(grouper, ByMixture):
        groups[~crowded & (rows <= caps.max_children)] = 1
    return np.minimum(groups + most * (rows // STRETCH), rows)
