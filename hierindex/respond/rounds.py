"""Rounds of prompts that condense passages until they fit one prompt."""

from bisect import bisect_right
from collections.abc import Generator, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

import numpy as np
from llama_index.core.indices.prompt_helper import DEFAULT_PADDING, PromptHelper
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode, MetadataMode

from hierindex.core.packing import pack
from hierindex.errors import InputError, ModelError
from hierindex.respond.cited_text import cited_end, without_cut_citation
from hierindex.respond.placed_texts import PlacedText, along_the_tree, joined, together
from hierindex.summarize.sentences import split_sentences

LEAST_ROOM = 32  # tokens; fewer do not hold two answers
N_BETWEEN = 2  # maximum tokens between two passages
PAIR = 2  # minimum number of answers in a prompt

Rounds = Generator[list[PlacedText], list[str], str]
"""Yields the passages of each round, receives the answers, returns the text of the last prompt."""


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
