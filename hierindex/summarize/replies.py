"""Answers of a language model: titles, and checks that they are summaries."""

import re

from llama_index.core.base.llms.types import CompletionResponse
from llama_index.core.utils import get_tokenizer

from hierindex.core.titles import first_words
from hierindex.models.failures import Failure, RequestError
from hierindex.models.reasoning import TAG, answer_in
from hierindex.models.record import CUT, finish_reason
from hierindex.text.characters import SURROGATE
from hierindex.text.sentences import split_sentences

MAX_TITLE = 100  # characters
MIN_TEXT = 200  # characters of a line that is text rather than a title
MARKS = "*_#`~\"'“”„‘’«»‹›「」『』《》"  # noqa: RUF001
LABELS = "title|titel|titre|título|titulo|titolo|tytuł|название|заголовок|标题|標題|タイトル|제목"
TITLE = re.compile(
    rf"(?i)[\s{MARKS}]*(?:{LABELS})[ {MARKS}]*[:：]([^\n]*)"  # noqa: RUF001
    r"|\s*#{1,6}[ \t]+([^\n]+)(?=\n\s*\S)"
    r"|\s*\*\*([^*\n]+)\*\*[ \t]*(?=\n\s*\S)"
)
SUMMARIES = (
    "summary|paragraph|zusammenfassung|samenvatting|résumé|resumen|riassunto|resumo"
    "|摘要|总结|總結|要約|요약"
)
SUMMARY = re.compile(rf"(?i)(?:[\s*_#]*(?:{SUMMARIES})[ *_]*[:：][*_]*\s*)+")  # noqa: RUF001
INLINE = re.compile(rf"(?i)[ \t]+[*_]*(?:{SUMMARIES})[ *_]*[:：][*_]*[ \t]+")  # noqa: RUF001
FENCED = re.compile(r"(?s)\A```\w*\n(.*?)\n?```\Z")
COPIED = 0.8  # share of sentences from which a long answer is a copy
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


def split_title(answer: str) -> tuple[str, str]:
    r"""Split an answer into the title on its first line, "" if there is none, and the rest.

    The title line begins with "Title:", in one of several languages, or is a heading or bold text
    in Markdown. A title of more than `MAX_TITLE` characters is cut. A line of `MIN_TEXT` characters
    or more is text.

    >>> split_title('**Title:** "The ferry"\n\nIt was cancelled.')
    ('The ferry', 'It was cancelled.')
    >>> split_title("Title: The ferry Summary: It was cancelled.")
    ('The ferry', 'It was cancelled.')
    """
    rest = answer.strip()
    while found := TITLE.match(rest):
        line, *more = INLINE.split(next(filter(None, found.groups()), ""), maxsplit=1)
        line = line.strip(f" \t\r.{MARKS}")
        rest = "\n".join([*more, rest[found.end() :]]).strip()
        rest = rest[m.end() :] if (m := SUMMARY.match(rest)) else rest
        if not any(map(str.isalnum, line)):
            continue
        if len(line) >= MIN_TEXT or (len(line) > MAX_TITLE and not rest):
            return "", f"{line}\n{rest}".strip()
        return first_words(SURROGATE.sub("\ufffd", line), MAX_TITLE), rest
    return "", rest


def checked(
    response: CompletionResponse, prompt: str, source: str, max_tokens: int
) -> tuple[str, str]:
    """Return the title and the summary in a response, without the model's thoughts.

    Parameters
    ----------
    response : CompletionResponse
    prompt : str
    source : str
        The text in the prompt to summarise.
    max_tokens : int
        The length that the prompt asks for.

    Raises
    ------
    RequestError
        If the summary is cut off, empty, a refusal, an echo of the prompt or far too long.
    """
    finish = finish_reason(response)
    if finish in FILTERED:
        raise RequestError("The model", Failure("text", "it was refused"))
    if finish in CUT:
        raise _unusable("it was cut off (a reasoning model needs more completion tokens)")
    whole = response.text or ""
    text = answer_in(whole).strip()
    is_within = TAG.search(text) and not TAG.search(source)
    if is_within or (whole.strip() and not text):
        raise _unusable("it contained a thought and an empty or unfinished answer")
    title, text = split_title(HEADING.sub("", FENCED.sub(r"\1", text), count=1))
    own = re.split(r"\n|: ", prompt.replace(source, ""))
    if _normalized(title) in {_normalized(part).strip("= ") for part in own}:
        title = ""  # a fence, or what the instructions say of the form
    if not any(map(str.isalnum, text)):
        raise _unusable("it was empty")
    normalized = _normalized(text)
    refused = REFUSED.match(normalized)
    if refused and refused[1] not in _normalized(source):
        raise _unusable("it was refused")
    if any(line in normalized for line in _instructions(prompt, source)):
        raise _unusable("it repeated the instructions")
    n_tokens = len(get_tokenizer()(text))
    if n_tokens > max_tokens and _is_copy(text, source):
        raise _unusable("it repeated the passages")
    if n_tokens > FAR_OVER * max_tokens:
        raise _unusable("it was far too long")
    return title, text


def _unusable(reason: str) -> RequestError:
    return RequestError("The model", Failure("unusable", reason))


def _is_copy(text: str, source: str) -> bool:
    """Return whether most sentences occur in the source, ignoring punctuation and case."""
    said, letters = map(_letters, (s.text for s in split_sentences(text))), _letters(source)
    copied = [sentence in letters for sentence in said]
    return sum(copied) >= COPIED * len(copied)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def _normalized(text: str) -> str:
    """Return the text in lower case, with straight apostrophes and single blanks."""
    return " ".join(text.lower().replace("\u2019", "'").split())


def _instructions(prompt: str, source: str) -> list[str]:
    """Return the sentences of a prompt that are not from its source, except short ones."""
    lines, own = map(_normalized, re.split(r"\n|(?<=[.:])\s", prompt)), _normalized(source)
    return [line for line in lines if len(line) >= MIN_ECHO and line not in own]
