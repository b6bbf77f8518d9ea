"""What is wrong with a summary that a language model wrote."""

import re

from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.utils import get_tokenizer

from hierindex.llm.checks import UnusableError, finish_reason

FAR_OVER = 4  # times what was asked for; what is over by less loses its last sentences
CUT = frozenset({"length", "max_tokens", "MAX_TOKENS"})  # as OpenAI, Anthropic, Google say
FILTERED = frozenset({"content_filter", "refusal", "SAFETY"})
THOUGHT = re.compile(r"(?is)\A\s*<(think|thinking|reasoning)>.*?</\1>")
UNOPENED = re.compile(  # by a chat template that opens the thought itself
    r"(?is)\A(?:(?!<(?:think|thinking|reasoning)>).)*</(?:think|thinking|reasoning)>"
)
THINKING = re.compile(r"(?i)</?(?:think|thinking|reasoning)>")
MIN_ECHO = 30  # characters of a line of the prompt; shorter ones are said by chance
REFUSED = re.compile(  # in what `_plain` gives
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


def checked(response: CompletionResponse, prompt: str, source: str, max_tokens: int) -> str:
    """The summary in a response, without what the model thought before it.

    Parameters
    ----------
    response : CompletionResponse
    prompt : str
        That was answered.
    source : str
        The text in it that was to be summarised.
    max_tokens : int
        That were asked for.

    Raises
    ------
    UnusableError
        If it was cut off, or is empty, a refusal, an echo of the prompt or far too long.
    """
    finish = finish_reason(response)
    if finish in FILTERED:
        raise UnusableError("it was refused", again=False)
    if finish in CUT:
        raise UnusableError("it was cut off (a model that thinks needs more completion tokens)")
    text = THOUGHT.sub("", response.text or "").strip()
    if not THINKING.search(source):
        text = UNOPENED.sub("", text).strip()
        if THINKING.search(text):
            raise UnusableError("it thought and did not answer")
    text = _without_heading(text, prompt)
    if not any(map(str.isalnum, text)):
        raise UnusableError("it was empty")
    said = _plain(text)
    refused = REFUSED.match(said)
    if refused and refused[1] not in _plain(source):
        raise UnusableError("it was refused")
    if any(line in said for line in _instructions(prompt, source)):
        raise UnusableError("it repeated the instructions")
    n_tokens = len(get_tokenizer()(text))
    if n_tokens > max_tokens and _plain(source).startswith(said):
        raise UnusableError("it repeated the passages")
    if n_tokens > FAR_OVER * max_tokens:
        raise UnusableError("it was far too long")
    return text


def _plain(text: str) -> str:
    """Lower-case, with straight apostrophes and single blanks."""
    return " ".join(text.lower().replace("\u2019", "'").split())


def _without_heading(text: str, prompt: str) -> str:
    """The text without the prompt's last line, and without "Here is a summary:" before it."""
    last = prompt.strip().splitlines()[-1].strip() if prompt.strip() else ""
    if last.endswith(":"):
        text = text.removeprefix(last).strip()
    return HEADING.sub("", text, count=1).strip()


def _instructions(prompt: str, source: str) -> list[str]:
    """The lines of a prompt that are not its source's own, nor said by chance."""
    lines, own = map(_plain, prompt.splitlines()), _plain(source)
    return [line for line in lines if len(line) >= MIN_ECHO and line not in own]
