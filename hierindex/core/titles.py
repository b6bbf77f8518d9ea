"""Phrases that tell texts from their siblings, by class-based TF-IDF."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from math import log

from hierindex.text.stop_words import BEFORE_VERBS, UNTITLED

MAX_TITLE = 60  # characters
MAX_PHRASE = 3  # words
MAX_WORD = 25  # characters; longer ones are names of code, or clauses without blanks
SECOND = 0.3  # least weight of a second phrase, relative to the first
SHORTNESS = 0.3  # between the sum of the words' weights (0) and their mean (1)

# Fenced code, formulas, links and citations.
NO_PROSE = re.compile(r"(?s)```.*?```|\$\$.*?\$\$|https?://\S+|\[[^\]\s]*\](?:\([^)\s]*\))?")
UNSPACED = re.compile("([\u30a0-\u30ff]+|[\u3400-\u9fff]+)")  # katakana, Chinese characters
HAS_UNSPACED = re.compile("[\u30a0-\u30ff\u3400-\u9fff]")  # several times as fast
BETWEEN = re.compile("(?<=[\u30a0-\u30ff\u3400-\u9fff]) (?=[\u30a0-\u30ff\u3400-\u9fff])")
WORD = re.compile(r"[^\W\d_\u3040-\u309f][^\W_\u3040-\u309f]*(?:['\u2019-][^\W_\u3040-\u309f]+)*")
LABEL = re.compile("(?:[A-ZÀ-Þ][^ |]* )*\1")  # a name before a colon, as of who speaks
VERB = re.compile("\2(?: [a-z][^ |]*)?")
OPENING = "([{<\"'“‘«„*¿¡「『"  # noqa: RUF001
CLOSING = ")]}>\"'”’»*.,;:!?…」』。、，：；！？"  # noqa: RUF001

Words = tuple[str, ...]
"""The words of a phrase, in lower case and without the ending of the plural."""

Phrases = list[tuple[Words, str]]
"""The phrases of a text, each as often as it occurs, with its form there."""


def distinctive_phrases(texts: Sequence[str]) -> list[str]:
    """Return for each text the one or two phrases that tell it best from the others.

    Phrases are one to three words between stop words and punctuation, spelled as the text spells
    them most often. Code, formulas and names before a colon, such as those of speakers, are
    ignored. A text without phrases gets its first words.

    Parameters
    ----------
    texts : sequence of str

    Returns
    -------
    list[str]
        Of at most 60 characters each, two phrases separated by a comma. No two texts get the
        same phrase.

    Notes
    -----
    A word t of a text c weighs tf(t, c) · log(1 + A / f(t)), where f(t) is its frequency in all
    texts and A the mean number of words per text (Grootendorst, BERTopic: Neural topic modeling
    with a class-based TF-IDF procedure, 2022, eq. 3). A phrase of k words that occurs n times
    weighs (1 + log n) / k^0.3 times their sum. Candidates are those of RAKE (Rose et al., Automatic
    keyword extraction from individual documents, 2010).

    Examples
    --------
    >>> distinctive_phrases(["The mill needs new sails.", "The harbour needs a crane."])
    ['new sails, mill', 'crane, harbour']
    """
    found = [_phrases(text) for text in texts]
    return [
        ", ".join(_form(phrases, words) for words in chosen) or first_words(text)
        for text, phrases, chosen in zip(texts, found, _chosen(found), strict=True)
    ]


def first_words(text: str, most: int = MAX_TITLE) -> str:
    r"""Return the first words of a text on one line, of at most `most` characters together.

    >>> first_words("Aims and\n means", 11)
    'Aims and'
    """
    words = " ".join(text[: 8 * most].split())
    if len(words) <= most:
        return words
    return words[: most + 1].rpartition(" ")[0] or words[:most]


def _chosen(found: Sequence[Phrases]) -> list[list[Words]]:
    """Choose at most two phrases for each text; of several texts, the heaviest gets a phrase."""
    chosen: list[list[Words]] = [[] for _ in found]
    best, taken = [0.0] * len(found), set[Words]()
    for weight, i, words in sorted(_weighted(found)):
        own = chosen[i]
        if len(own) > 1 or words in taken or weight > SECOND * best[i]:
            continue
        if own and ({*own[0]} & {*words} or _length(found[i], [*own, words]) > MAX_TITLE):
            continue
        best[i] = best[i] or weight
        own.append(words)
        taken.add(words)
    return chosen


def _weighted(found: Sequence[Phrases]) -> Iterator[tuple[float, int, Words]]:
    """Yield the negative weight of each phrase of each text."""
    found_words = [[words for words, _ in phrases] for phrases in found]  # by text
    tf = [Counter(chain.from_iterable(phrases)) for phrases in found_words]
    f = Counter(chain.from_iterable(chain.from_iterable(found_words)))
    mean = f.total() / max(1, len(found))
    idf = {word: log(1 + mean / n) for word, n in f.items()}
    for i, (count, phrases) in enumerate(zip(tf, found_words, strict=True)):
        weights = {word: n * idf[word] for word, n in count.items()}
        for words, n in Counter(phrases).items():
            weight = 0.0
            for word in words:
                weight += weights[word]
            yield -(1 + log(n)) * weight / len(words) ** SHORTNESS, i, words


def _phrases(text: str) -> Phrases:
    text = NO_PROSE.sub(" ; ", text)
    if not text.isascii() and HAS_UNSPACED.search(text):
        text = UNSPACED.sub(r" \1 ", text)
    parts = text.split()
    marked = " ".join(map(_marked, parts))
    if "\1" in marked:  # in few texts, and looking for labels takes long
        marked = LABEL.sub("|", marked)
    marked = VERB.sub("|", marked)
    runs = filter(str.strip, marked.split("|"))
    return [
        phrase
        for run in runs
        for phrase in (_known_phrases_of(run) if len(run) <= MAX_TITLE else _phrases_of(run))
    ]


def _phrases_of(run: str) -> Phrases:
    """Return the phrases of words that follow each other, each with its form."""
    words = _without_repetitions(run.split())
    if _is_participle(words[-1]):  # "value estimated"
        words.pop()
    is_one = len(words) <= MAX_PHRASE + 1  # else the stop words may not be known
    phrases = [words[-MAX_PHRASE:]] if is_one else [[word] for word in words]
    forms = map(" ".join, phrases)
    return [
        (tuple(map(_folded, phrase)), form)
        for phrase, form in zip(phrases, forms, strict=True)
        if 0 < len(form) <= MAX_TITLE
    ]


_known_phrases_of = lru_cache(maxsize=2**15)(_phrases_of)  # short ones are repeated


@lru_cache(maxsize=2**16)
def _marked(part: str) -> str:
    """Return a word with bars where a phrase must begin or end, or a bar instead of other parts.

    What is before a colon in capitals, and what is before a verb, has marks of its own.
    """
    word = part.lstrip(OPENING).rstrip(CLOSING)
    opens, closes = not part.startswith(word), not part.endswith(word)
    lower = word.lower().replace("\u2019", "'")
    if lower.endswith("'s"):
        word, lower = word[:-2], lower[:-2]
    if part.endswith(":") and word[:1].isupper():
        return "\1"
    if lower in BEFORE_VERBS and not closes:
        return "\2"
    is_short = len({*lower}) < 2 or (len(word) == 2 and not word.isupper())  # "mmm", "uh"
    if (
        lower in UNTITLED
        or (is_short and not UNSPACED.match(word))
        or len(word) > MAX_WORD
        or not WORD.fullmatch(word)
        or "'" in lower  # "they'd"
        or (lower.endswith("ly") and len(word) > 5)
    ):
        return "|"
    return "|" * opens + word + "|" * closes


def _without_repetitions(words: list[str]) -> list[str]:
    """Remove words that the next one repeats or completes.

    >>> _without_repetitions(["mill", "mill", "cra", "crane"])
    ['mill', 'crane']
    """
    beside = zip(words, [*words[1:], ""], strict=True)
    return [word for word, after in beside if not _folded(after).startswith(_folded(word))]


@lru_cache(maxsize=2**16)
def _folded(word: str) -> str:
    """Return a word in lower case and, roughly, without the ending of an English plural.

    >>> [_folded(word) for word in ("Mills", "glass", "analysis", "bus")]
    ['mill', 'glass', 'analysis', 'bus']
    """
    word = word.lower()
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "siu" else word


def _is_participle(word: str) -> bool:
    """Return whether a word may be an English participle.

    >>> [_is_participle(word) for word in ("estimated", "speed", "bed")]
    [True, False, False]
    """
    return word.endswith("ed") and len(word) > 4 and word[-3] != "e"


def _form(phrases: Phrases, words: Words) -> str:
    """Return the most frequent form of a phrase, of several the one in lower case."""
    counts = Counter(form for each, form in phrases if each == words)
    return BETWEEN.sub("", max(counts, key=lambda form: (counts[form], form)))


def _length(phrases: Phrases, chosen: Sequence[Words]) -> int:
    return len(", ".join(_form(phrases, words) for words in chosen))
