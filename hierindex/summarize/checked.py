"""Checks of the summaries that a language model writes."""

import re
from collections.abc import Callable

from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.utils import get_tokenizer

from hierindex.llm.record import CUT, UnusableError, finish_reason
from hierindex.llm.thoughts import TAG, answer_in
from hierindex.summarize.titled import untitled

FAR_OVER = 4  # times max_tokens; a shorter summary over the budget is trimmed instead
FILTERED = frozenset({"content_filter", "refusal", "SAFETY"})
MIN_ECHO = 30  # characters of a line of the prompt; shorter ones may occur by chance
REFUSED = re.compile(  # in the output of `_normalized`
    r"\W*((?:i'm|i am|we're|we are) (?:very |so |truly )?sorry|sorry,|sorry i\b|i apologi[sz]e"
    r"|as an ai\b|unfortunately, i\b|(?:i'm|i am) afraid (?:that )?i\b"
    r"|(?:(?:i|we) (?:can't|cannot|can not|won't|will not|must decline to)"
    r"|(?:i'm|i am|we're|we are) (?:unable|not able) to)"
    r" (?:help|assist|comply|fulfill?|provide|summari[sz]e|do|process|access|answer|generate|create"
    r"|continue|discuss|respond|write|produce|engage|be able to)\b"
    r"|(?:es )?tut mir leid|leider kann ich|je suis désolé|désolé|lo siento|mi dispiace|lamento"
    r"|desculpe|sinto muito|het spijt me|przykro mi|извините|к сожалению, я\b|죄송"
    r"|抱歉|对不起|很抱歉|我无法|申し訳)"
)
HEADING = re.compile(
    r"(?i)\A(?:sure|certainly|of course|okay|here(?: is|'s|\u2019s)|summary)\b"
    r"[^\n]{0,100}:[ *]*(?=\n)"
)


Split = Callable[[str], tuple[str, str]]
"""A function that separates the title of an answer from its text, as `split_title` does."""


def checked(
    response: CompletionResponse, prompt: str, source: str, max_tokens: int, split: Split = untitled
) -> tuple[str, str]:
    """Return the title and the summary in a response, without the model's thoughts before them.

    Parameters
    ----------
    response : CompletionResponse
    prompt : str
    source : str
        The text in the prompt to summarise.
    max_tokens : int
        The length that the prompt asks for.
    split : Split
        `split_title` if the prompt asks for a title.

    Raises
    ------
    UnusableError
        If it is cut off, empty, a refusal, an echo of the prompt or far too long.
    """
    finish = finish_reason(response)
    if finish in FILTERED:
        raise UnusableError("it was refused", again=False)
    if finish in CUT:
        raise UnusableError("it was cut off (a reasoning model needs more completion tokens)")
    whole = response.text or ""
    text = answer_in(whole, prompt).strip()
    is_within = text not in whole or (TAG.search(text) and not TAG.search(source))
    if is_within or (whole.strip() and not text):
        raise UnusableError("it contained a thought and an empty or unfinished answer")
    title, text = split(_without_heading(text, prompt))
    if not any(map(str.isalnum, text)):
        raise UnusableError("it was empty")
    normalized = _normalized(text)
    refused = REFUSED.match(normalized)
    if refused and refused[1] not in _normalized(source):
        raise UnusableError("it was refused")
    if any(line in normalized for line in _instructions(prompt, source)):
        raise UnusableError("it repeated the instructions")
    n_tokens = len(get_tokenizer()(text))
    if n_tokens > max_tokens and _normalized(source).startswith(normalized):
        raise UnusableError("it repeated the passages")
    if n_tokens > FAR_OVER * max_tokens:
        raise UnusableError("it was far too long")
    return title, text


def _normalized(text: str) -> str:
    """Return the text in lower case, with straight apostrophes and single blanks."""
    return " ".join(text.lower().replace("\u2019", "'").split())


def _without_heading(text: str, prompt: str) -> str:
    """Remove a repeated last line of the prompt, or a heading like "Here is a summary:"."""
    last = prompt.strip().splitlines()[-1].strip() if prompt.strip() else ""
    if last.endswith(":"):
        text = text.removeprefix(last).strip()
    return HEADING.sub("", text, count=1).strip()


def _instructions(prompt: str, source: str) -> list[str]:
    """Return the lines of a prompt that are not from its source, except short ones."""
    lines, own = map(_normalized, prompt.splitlines()), _normalized(source)
    return [line for line in lines if len(line) >= MIN_ECHO and line not in own]
