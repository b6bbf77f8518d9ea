"""Removal of the thoughts in replies of language models."""

import re
from dataclasses import dataclass
from typing import TypeVar

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse, TextBlock

R = TypeVar("R", bound=CompletionResponse | ChatResponse)

NAMES = "think|thinking|thought|reasoning"
TAG = re.compile(rf"(?i)</?(?:{NAMES})>")
CHANNELS = re.compile(  # of gpt-oss
    r"(?s)\s*(?=<\|(?:start|channel|end|return|call)\|>)"
    r".*?(?:<\|channel\|>\s*final[^\n]{,40}?<\|message\|>|\Z)"
    r"|\s*analysis.*?assistantfinal"  # without the special tokens
)
OPENED = re.compile(rf"(?is)\s*(?:<({NAMES})>.*?(?:</\1>|\Z)\s*)+")
BEGUN = re.compile(
    rf"(?ims)(?:(?!<(?:{NAMES})>).)*?(?:^[ \t]*|(?<=[\w.!?\u2026\u3002]))</(?:{NAMES})>\s*"
)
"""A thought whose first tag the chat template has written."""
UNCERTAIN = re.compile(r"(?:\A\s*)?(?:<[/|\w]{,12})?\Z")  # may be the beginning of a tag
THINKS = re.compile(r"(?i)think|reason|\br1\b|qwq|magistral")  # in the names of models


def answer_in(reply: str) -> str:
    r"""Return a model's reply without its thoughts.

    Thoughts are at the beginning of a reply, between `<think>` and `</think>` (or another of
    `NAMES`), or in the channels of gpt-oss before "final". If the first tag is a `</think>` that
    begins a line or directly follows a word, the chat template began a thought before the reply.
    Other tags are text.

    >>> answer_in("<think>Vik or Dal?</think>\n\nIn Vik."), answer_in("Or Dal?\n</think>\nIn Vik.")
    ('In Vik.', 'In Vik.')
    >>> answer_in("A thought stands between <think> and </think>.")
    'A thought stands between <think> and </think>.'
    """
    thought = CHANNELS.match(reply) or OPENED.match(reply) or BEGUN.match(reply)
    return reply[thought.end() :] if thought else reply


def begins_within(reply: str) -> bool:
    """Return whether the reply continues a thought that the chat template began."""
    return BEGUN.match(reply) is not None


@dataclass
class Stream:
    """A streamed reply of which only the answer is passed on.

    If `may_think`, the reply may continue a thought that the chat template began, and is held back
    until a tag comes or the reply ends.
    """

    may_think: bool
    reply: str = ""
    answer: str = ""

    def read(self, chunk: R, delta: str) -> R:
        """Return a chunk whose delta is the text that it adds to the answer."""
        self.reply += delta
        answer = UNCERTAIN.sub("", answer_in(self.reply))
        is_held = self.may_think and self.reply.startswith(answer)
        return self._with(chunk, "" if is_held else answer)

    def end(self, chunk: R) -> R:
        """Return the last chunk with the rest of the answer."""
        return self._with(chunk, answer_in(self.reply))

    def _with(self, chunk: R, answer: str) -> R:
        said = self.answer
        if not said.startswith(answer):
            self.answer = answer
        added = self.answer[len(said) :] if self.answer.startswith(said) else answer
        return with_answer(chunk, self.answer, added)


def with_answer(response: R, answer: str, delta: str | None = None) -> R:
    """Return a copy of a response with another text, and for a chunk with another delta."""
    if isinstance(response, CompletionResponse):
        return response.model_copy(update={"text": answer, "delta": delta})
    others = [each for each in response.message.blocks if not isinstance(each, TextBlock)]
    blocks = [TextBlock(text=answer), *others] if answer else others
    message = response.message.model_copy(update={"blocks": blocks})
    return response.model_copy(update={"message": message, "delta": delta})
