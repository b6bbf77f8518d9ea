"""How well a sentence can stand in a summary."""

import re
from collections.abc import Sequence

from hierindex.node import titles_of
from hierindex.text.sentences import Sentence, tokens
from hierindex.text.stop_words import UNTITLED

MIN_WORDS = 4  # of a sentence that says something
FULL = 12  # words; shorter sentences weigh less
PART, STUB, NO_CONTENT = 0.2, 0.03, 0.001  # weights, beside 1 of a sentence that stands alone
TITLED, PLACED = 0.5, 1.5  # of a sentence with all words of a title, and of an opening
FALTERING = 0.9  # for each time
LEAST = 0.1  # of the best sentence's weight, that others need
PROSE = frozenset({"paragraph", "item", "quotation"})
STRUCTURE = frozenset({"front matter", "reference", "contents", "furniture", "code"})
SPEAKER = re.compile(r"(?m)^[^\W\d_a-z][\w.'\u2019]*(?: [\w.'\u2019]+){,4}:[ \t]+")
END = re.compile(r"[.!\u2026\u0964\u3002\uff01][\"'*_`)\]\u00bb\u2019\u201d]*$")
LEANS = re.compile(  # on the sentence before it
    r"\W*(?:th(?:is|ese|ose|at|ey|ere|us|en|erefore)|it|its|he|she|his|her|their|such|hence|here"
    r"|however|instead|also|both|another|otherwise|similarly|finally|now|dies\w*|er|es|sie|deshalb"
    r"|daher|dabei|dazu|damit|dann)\b",
    re.IGNORECASE,
)
POINTS = re.compile(  # to what stands elsewhere
    r"\b(?:fig(?:ures?|s?\.)|tab(?:les?|elle|\.)|sections?|chapters?|eqs?\.|equations?|listing|lemma"
    r"|theorem|abb(?:ildung|\.)|kapitel|abschnitt)\s+\(?(?-i:\d|[A-Z]\b)"
    r"|\b(?:as follows|the following|shown (?:above|below|in|here)|see (?:also|the)|refer to"
    r"|(?:above|below)[.,:]|wie folgt|siehe)|\[[\w:.,;\s-]+\]|\b\d+\)\s*$"
    r"|\bin this (?:section|chapter)\b",
    re.IGNORECASE,
)
BOILERPLATE = re.compile(
    r"\u00a9|\bcopyright\b|all rights reserved|\blicen[sc]ed? under\b|\bIS[BS]N\b|\bdoi\b|\w@\w+\."
    r"|https?://|\bwww\.|\bclick here\b|\bcookies?\b|\bunsubscribe\b",
    re.IGNORECASE,
)
OPENINGS = re.compile(  # sections that tell what a document is about
    r"(?:abstract|summary|introduction|overview|about|conclusions?|discussion|highlights|purpose"
    r"|zusammenfassung|einleitung|\u00fcberblick|fazit|r\u00e9sum\u00e9|introducci\u00f3n|resumen)\b",
    re.IGNORECASE,
)
FALTERS = re.compile(r"\b(?:u[hm]+|hmm+|mm|yeah|(\w+) \1)\b", re.IGNORECASE)
FORMULA = re.compile(r"[$\\{}=<>|]")


def weight_of(sentence: Sentence) -> float:
    """Return how well a sentence can stand in a summary, above 0; 1 for most whole sentences.

    Whole sentences of prose that need no other weigh most. Those that lean on what stands before
    or elsewhere, that ask, or that have few words of their own weigh less; rows, captions and
    stubs less again; and front matter, lists of references, contents and code next to nothing.
    Those of an abstract, an introduction or the like, and those with words of the titles above
    them, weigh more.

    Notes
    -----
    Edmundson, New Methods in Automatic Extracting (1969): cue, title and location.
    """
    text = SPEAKER.sub("", sentence.text, count=1)
    words = tokens(text)
    if sentence.kind in STRUCTURE:
        return NO_CONTENT
    numbers = sum(word[0].isdigit() for word in words)
    if len(words) < MIN_WORDS or 3 * numbers > len(words) or sentence.kind == "heading":
        return STUB
    if sentence.kind not in PROSE:
        return PART
    weight = min(1.0, len(words) / FULL)
    if END.search(text) is None:
        weight *= 0.4 if sentence.kind == "item" and text[-1] not in ":," else PART
    if text[0].islower() or not any(word.lower() not in UNTITLED for word in words):
        weight *= 0.5
    if LEANS.match(text):
        weight *= 0.7
    if POINTS.search(text):
        weight *= 0.5
    if BOILERPLATE.search(text):
        weight *= PART
    weight *= FALTERING ** len(FALTERS.findall(text))
    if 20 * len(FORMULA.findall(text)) > len(text):
        weight *= PART
    return weight * _of_titles(sentence, words)


def _of_titles(sentence: Sentence, words: Sequence[str]) -> float:
    """Return the weight of a sentence by the titles above it, at least 1."""
    section = _section(sentence)
    titles = {*map(str.lower, tokens(f"{sentence.name} {section}"))} - UNTITLED
    weight = 1 + TITLED * len(titles.intersection(map(str.lower, words))) / max(1, len(titles))
    numbered = (title.lstrip("0123456789.# ") for title in titles_of(section))
    return weight * (PLACED if any(map(OPENINGS.match, numbered)) else 1)


def _section(sentence: Sentence) -> str:
    return sentence.within.source.section if sentence.within.source else ""


def informative(sentences: Sequence[Sentence]) -> tuple[list[Sentence], list[float]]:
    """Drop repeated sentences, and those that say little beside others of their child.

    The others are returned with their weights. What stands before the first section of a document
    is taken for its introduction.

    >>> from hierindex.text.sentences import split_sentences
    >>> [s.text for s in informative(split_sentences("Chapter 2. The host was not at home."))[0]]
    ['The host was not at home.']
    """
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.text, sentence)
    distinct = [*first.values()]
    divided = {sentence.document for sentence in distinct if _section(sentence)}
    weights = [
        weight_of(s) * (PLACED if s.document in divided and not _section(s) else 1)
        for s in distinct
    ]
    best = dict[int, float]()  # by child
    for sentence, weight in zip(distinct, weights, strict=True):
        best[sentence.child] = max(weight, best.get(sentence.child, 0.0))
    kept = [i for i, s in enumerate(distinct) if weights[i] >= LEAST * best[s.child]]
    return [distinct[i] for i in kept], [weights[i] for i in kept]
