"""Rounds of prompts that condense texts along the tree until they fit one prompt."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np
from llama_index.core.indices.prompt_helper import DEFAULT_PADDING, PromptHelper
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import MetadataMode, NodeWithScore

from hierindex.core.arrays import Ints1d
from hierindex.core.packing import pack
from hierindex.errors import InputError, ModelError
from hierindex.respond.cited_text import cited_end
from hierindex.respond.numbered import ancestors
from hierindex.text.sentences import split_sentences
from hierindex.text_node import from_text_node

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
            found.get_content(MetadataMode.LLM),
            tuple(reversed(ancestors(found))),
            (spans[0].document, spans[0].start) if spans else ("", 0),
        )


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
        return text[: too_long - 1]


def prompts(window: Window, passages: Sequence[PlacedText]) -> list[PlacedText]:
    """Join passages to the texts of as many prompts as LlamaIndex makes, or fewer.

    Texts that do not fit one prompt are grouped along the tree, unless one is too long.
    """
    packed = window.packed([passage.text for passage in passages])
    if len(packed) == 1:
        return [PlacedText(packed[0])]
    walk = along_the_tree(passages)
    n_tokens = np.array([window.length(passage.text) + N_BETWEEN for passage in walk])
    if n_tokens.max() <= window.room:
        starts = pack(n_tokens, together(walk), max_tokens=window.room)
        if len(starts) <= len(packed):
            return [joined(walk[a:b]) for a, b in pairwise([*starts, len(walk)])]
    return list(map(PlacedText, packed))


def read_on(
    window: Window, asked: Sequence[PlacedText], answers: Sequence[str]
) -> list[PlacedText]:
    """Return the texts of the prompts that read the answers to others.

    Raises
    ------
    ModelError
        If all answers are empty.
    """
    passages = [
        PlacedText(window.shortened(answer.strip()), prompt.path, prompt.place)
        for answer, prompt in zip(answers, asked, strict=True)
        if answer.strip()
    ]
    if not passages:
        raise ModelError(f"The model answered nothing to any of {len(asked)} prompts.")
    return prompts(window, passages)
