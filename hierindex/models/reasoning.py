"""Removal of the thoughts in replies of language models."""

import re
from dataclasses import dataclass
from typing import TypeVar

from llama_index.core.base.llms.types import ChatResponse, CompletionResponse, TextBlock

R = TypeVar("R", bound=CompletionResponse | ChatResponse)

NAMES = "think|thinking|thought|reasoning"
TAG = re.compile(rf"(?i)</?(?:{NAMES})>")
UNQUOTED = re.compile(rf"(?i)(?<![`'\"\u201c])<(?P<slash>/?)(?:{NAMES})>")
THOUGHTS = rf"(?:<({NAMES})>.*?(?:</\1>|\Z)\s*)+"
AT_LINES = re.compile(rf"(?ims)(?:\A\s*|^){THOUGHTS}")
AT_START = re.compile(rf"(?is)\A\s*{THOUGHTS}")
CHANNELS = re.compile(  # of gpt-oss
    r"(?s)(?=<\|(?:start|channel|end|return|call)\|>)"
    r".*?(?:<\|channel\|>\s*final[^\n]{,40}?<\|message\|>|\Z)"
    r"|\Aanalysis.*?assistantfinal"  # without the special tokens
)
UNCERTAIN = re.compile(r"(?:\A\s*)?(?:<[/|\w]{,12})?\Z")  # may be the beginning of a tag
THINKS = re.compile(r"(?i)think|reason|\br1\b|qwq|magistral")  # in the names of models
# Of thoughts whose first tag a chat template has written.
BEGINNINGS = (
    "okay|ok,|alright|hmm|well,|let me|let's|let us|the user|the question|we |i |i'|so,|so the"
    "|first,|now,|looking at|to answer|analysis|好|嗯|首先|用户|我们"
).split("|")


def answer_in(reply: str, prompt: str = "") -> str:
    r"""Return a model's reply without its thoughts.

    Thoughts are at the beginning of a reply or of a line, between `<think>` and `</think>` (or
    another of `NAMES`), or in the channels of gpt-oss before "final". If the first tag is a
    `</think>`, the chat template began a thought before the reply. Tags inside a sentence and
    quoted tags are text. If the prompt contains tags too, a passage may be about them. Then only
    thoughts at the beginning count, and a first `</think>` only at the beginning of a line.

    >>> answer_in("<think>Vik or Dal?</think>\n\nIn Vik."), answer_in("Or Dal?\n</think>\nIn Vik.")
    ('In Vik.', 'In Vik.')
    >>> answer_in("A thought stands between <think> and </think>.")
    'A thought stands between <think> and </think>.'
    """
    if CHANNELS.match(reply.lstrip()):
        return CHANNELS.sub("", reply.lstrip())
    if end := _bare_end(reply, prompt):
        return reply[end.end() :].lstrip()
    return (AT_START if TAG.search(prompt) else AT_LINES).sub("", reply)


def begins_within(reply: str, prompt: str = "") -> bool:
    """Return whether the reply continues a thought that the chat template began."""
    return not CHANNELS.match(reply.lstrip()) and _bare_end(reply, prompt) is not None


def _bare_end(reply: str, prompt: str) -> re.Match[str] | None:
    end = UNQUOTED.search(reply)
    if end is None or not end["slash"]:
        return None
    begins_line = not reply[: end.start()].rpartition("\n")[2].strip()
    return end if begins_line or not TAG.search(prompt) else None


@dataclass
class Stream:
    """A streamed reply of which only the answer is passed on.

    A reply may continue a thought that the chat template began. Then it is held back until a tag
    comes or the reply ends. This is the case if the model is known to do so (`begins_within`), or
    if that is unknown (None) and the reply begins like a thought, for example with "Okay".
    """

    prompt: str
    begins_within: bool | None
    reply: str = ""
    answer: str = ""

    def read(self, chunk: R, delta: str) -> R:
        """Return a chunk whose delta is the text that it adds to the answer."""
        self.reply += delta
        answer = UNCERTAIN.sub("", answer_in(self.reply, self.prompt))
        if self.reply.startswith(answer) and self._may_think(answer.lstrip()[:20].lower()):
            return self._with(chunk, "")
        return self._with(chunk, answer)

    def end(self, chunk: R) -> R:
        """Return the last chunk with the rest of the answer."""
        return self._with(chunk, answer_in(self.reply, self.prompt))

    def _may_think(self, start: str) -> bool:
        if self.begins_within is not None:
            return self.begins_within or "analysis".startswith(start[:8])
        return any(start.startswith(each) or each.startswith(start) for each in BEGINNINGS)

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
