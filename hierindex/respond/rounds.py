"""Rounds of prompts that condense texts along the tree until they fit one prompt."""

import math
from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np
from llama_index.core.indices.prompt_helper import DEFAULT_PADDING, PromptHelper
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from hierindex.core.arrays import Ints1d
from hierindex.core.packing import pack
from hierindex.errors import InputError, ModelError
from hierindex.respond.cited_text import cited_end, without_cut_citation
from hierindex.respond.numbered import ancestors, as_found, beside
from hierindex.store.snapshot import Snapshot
from hierindex.text.sentences import split_sentences
from hierindex.text_node import from_text_node, to_text_node

BETWEEN = "\n\n"  # separator in a prompt, as in LlamaIndex
LEAST_ROOM = 32  # tokens; fewer do not hold two answers
N_BETWEEN = 2  # maximum tokens between two passages
PAIR = 2  # minimum number of answers in a prompt


@dataclass(frozen=True)
class PlacedText:
    """A text with its position in the tree and in its document.

    `path` are the ids of its known ancestors from the root down; `place` is its document and
    its start there in characters.
    """

    text: str
    path: tuple[str, ...] = ()
    place: tuple[str, int] = ("", 0)

    @classmethod
    def of(cls, found: NodeWithScore) -> "PlacedText":
        """Convert a node, with the text that a language model is shown."""
        spans = from_text_node(found.node).citations
        return cls(
            _shown(found.node),
            tuple(reversed(ancestors(found))),
            (spans[0].document, spans[0].start) if spans else ("", 0),
        )


Rounds = Generator[list[PlacedText], list[str], str]
"""Yields the passages of each round, receives the answers, returns the text of the last prompt."""


def along_the_tree(texts: Sequence[PlacedText]) -> list[PlacedText]:
    """Sort texts depth first, so that texts under one parent are adjacent.

    Branches keep the order of their first text; under one parent, texts are in reading order.
    """
    first: dict[tuple[str, ...], int] = {}
    for rank, text in enumerate(texts):
        for depth in range(len(text.path)):
            first.setdefault(text.path[: depth + 1], rank)

    def turn(text: PlacedText) -> tuple[list[int], tuple[str, int]]:
        depths = range(len(text.path))
        return [first[text.path[: depth + 1]] for depth in depths], text.place

    return sorted(texts, key=turn)


def together(texts: Sequence[PlacedText]) -> Ints1d:
    """Count the common ancestors of each text and the next one, (n - 1,) int64."""
    return np.array([len(_shared(pair)) for pair in pairwise(texts)], dtype=np.int64)


def joined(texts: Sequence[PlacedText]) -> PlacedText:
    """Join texts into one, under their lowest common ancestor."""
    return PlacedText(BETWEEN.join(each.text for each in texts), _shared(texts), texts[0].place)


def _shared(texts: Sequence[PlacedText]) -> tuple[str, ...]:
    levels = zip(*(text.path for text in texts), strict=False)
    return tuple(ids[0] for ids in takewhile(lambda ids: len(set(ids)) == 1, levels))


def condensed(
    found: Sequence[NodeWithScore],
    snapshot: Snapshot,
    n_tokens: Callable[[BaseNode], int],
    room: int,
) -> list[NodeWithScore]:
    """Replace some nodes by their summaries in the index, to save prompts.

    A summary replaces its children if all of them were found, unchanged, and if it is shorter.
    Children of the lowest scores are replaced first, and only as many as save a prompt of `room`
    tokens. Nodes keep their order, a summary in the place of its first child. `n_tokens` is called
    once for each node.
    """
    nodes = {node.node_id: node for node in found}
    costs = {node_id: n_tokens(node.node) for node_id, node in nodes.items()}
    total = sum(costs.values())
    best, fewest = list(found), -(-total // room)
    if fewest <= 1:
        return best
    place, score = dict[str, int](), dict[str, float]()
    for i, node in enumerate(found):
        for node_id in (node.node_id, *ancestors(node)[:1]):
            place.setdefault(node_id, i)
            score[node_id] = max(score.get(node_id, -math.inf), node.get_score())
    parents = snapshot.nodes(sorted(place.keys() - nodes.keys()))
    stored = {node.id: node.llm_text for node in snapshot.nodes(sorted(nodes))}
    as_stored = {i for i, node in nodes.items() if stored.get(i) == _shown(as_found(node).node)}
    for parent in sorted(parents, key=lambda node: (score[node.id], -place[node.id])):
        children = parent.children
        if not children or not all(child in nodes and child in as_stored for child in children):
            continue
        best_score = max(nodes[child].get_score() for child in children)
        summary = beside(found, NodeWithScore(node=to_text_node(parent), score=best_score))
        cost, of_children = n_tokens(summary.node), sum(costs[child] for child in children)
        if cost >= of_children:
            continue
        for child in children:
            del nodes[child]
        nodes[parent.id] = summary
        costs[parent.id] = cost
        total += cost - of_children
        if -(-total // room) < fewest:
            best = sorted(nodes.values(), key=lambda node: place[node.node_id])
            fewest = -(-total // room)
        if fewest == 1:
            break
    return best


def _shown(node: BaseNode) -> str:
    return node.get_content(MetadataMode.LLM)


class Window(NamedTuple):
    """The part of a model's context window that a template leaves free.

    `room` is in tokens of the helper's tokenizer, by default LlamaIndex's global one; `padding`
    are tokens reserved for text outside the template.
    """

    helper: PromptHelper
    template: BasePromptTemplate
    llm: LLM
    room: int
    padding: int

    @classmethod
    def of(
        cls, helper: PromptHelper, template: BasePromptTemplate, llm: LLM, beside: str = ""
    ) -> "Window":
        """Compute the window of a model whose prompts also contain the text `beside`.

        Raises
        ------
        InputError
            If the template leaves fewer than `LEAST_ROOM` tokens.
        """
        try:
            padding = DEFAULT_PADDING + helper._token_counter.get_string_tokens(beside)
            splitter = helper.get_text_splitter_given_prompt(template, padding=padding, llm=llm)
            room = splitter.chunk_size
        except ValueError:  # negative
            room = 0
        if room < LEAST_ROOM:
            raise InputError(
                f"The prompt leaves no room for texts in the {helper.context_window:,} tokens of "
                f"the model's window, of which its answer takes {helper.num_output:,}; shorten "
                "the question or the template, or set context_window= and max_tokens= of the model."
            )
        return cls(helper, template, llm, room, padding)

    def packed(self, texts: Sequence[str]) -> list[str]:
        """Join texts and cut them wherever a prompt is full, as LlamaIndex does."""
        return self.helper.repack(self.template, texts, padding=self.padding, llm=self.llm)

    def length(self, text: str) -> int:
        """Count the tokens of a text, as the helper does when it packs."""
        return self.helper._token_counter.get_string_tokens(text)

    def n_tokens(self, node: BaseNode) -> int:
        """Count the tokens of a node as a language model is shown it."""
        return self.length(node.get_content(MetadataMode.LLM))

    def shortened(self, text: str) -> str:
        """Truncate a text so that two such texts fit one prompt.

        It ends with a sentence and its citations, or if the first is too long, within it.
        """
        most = self.room // PAIR - N_BETWEEN
        if self.length(text) <= most:
            return text
        ends = [cited_end(text, sentence.to) for sentence in split_sentences(text)]
        fitting = [*takewhile(lambda end: self.length(text[:end]) <= most, ends)]
        if fitting:
            return text[: fitting[-1]]
        lengths = range(len(text))  # of beginnings, in characters
        too_long = bisect_right(lengths, most, key=lambda n: self.length(text[:n]))
        return without_cut_citation(text[: too_long - 1])


def rounds(window: Window, passages: Sequence[PlacedText]) -> Rounds:
    """Condense passages to the text of the last prompt; see `BoundedTreeSummarize`.

    Raises
    ------
    ModelError
        If all answers in a round are empty.
    """
    while True:
        packed = window.packed([passage.text for passage in passages])
        if len(packed) == 1:
            return packed[0]
        groups = _groups(window, along_the_tree(passages), packed)
        answers = yield groups
        passages = [
            PlacedText(window.shortened(answer.strip()), group.path, group.place)
            for answer, group in zip(answers, groups, strict=True)
            if answer.strip()
        ]
        if not passages:
            raise ModelError(f"The model answered nothing to any of {len(groups)} prompts.")


def _groups(window: Window, passages: Sequence[PlacedText], packed: list[str]) -> list[PlacedText]:
    """Group whole passages along the tree, or fall back on `packed` if that is shorter."""
    n_tokens = np.array([window.length(passage.text) + N_BETWEEN for passage in passages])
    if n_tokens.max() <= window.room:
        starts = pack(n_tokens, together(passages), max_tokens=window.room)
        if len(starts) <= len(packed):
            cuts = pairwise([*starts, len(passages)])
            return [joined(passages[start:end]) for start, end in cuts]
    in_order = window.packed([passage.text for passage in passages])
    return list(map(PlacedText, in_order if len(in_order) <= len(packed) else packed))
