"""Extractive summaries: verbatim sentences of the children."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from hierindex.core.arguments import Floats1d, require
from hierindex.core.ranking import numbered
from hierindex.core.salience import lexrank, opening, select_sentences, topicality
from hierindex.node import titles_of
from hierindex.summarize.summary import (
    Budget,
    Group,
    Resources,
    Summary,
    join_sentences,
    joined,
    names_of,
)
from hierindex.text.characters import UNSPACED
from hierindex.text.sentences import Sentence, tokens
from hierindex.text.words import UNTITLED

if TYPE_CHECKING:
    from scipy.sparse import csr_array


MIN_WORDS = 4  # of a sentence that says something
FULL = 12  # words; shorter sentences weigh less
PART, STUB, NO_CONTENT = 0.2, 0.03, 0.001  # weights, beside 1 of a sentence that stands alone
TITLED, PLACED = 0.5, 1.5  # of a sentence with all words of a title, and of an opening
DEFINED = 2.0  # of a definition of what a title names
OPENS = 2.0  # of a sentence near the beginning of a document, unless it is speech
BEGINNING = 300  # characters
N_LEADS = 2  # sentences at the beginning of a section, which weigh as much as an opening
INFORMATIVE_SHARE = 0.35  # of the words of a sentence that stands alone
DEPENDENT_WEIGHT = 0.4  # of one that needs what stands before it or elsewhere
FALTERING = 0.8  # for each time
SPOKEN_SHARE = 0.1  # of the sentences of speech
LEAST = 0.1  # of the best sentence's weight, that others need
PROSE = frozenset({"paragraph", "item", "quotation"})
STRUCTURE = frozenset({"front matter", "reference", "contents", "furniture", "code"})
SPEAKER = re.compile(r"(?m)^[^\W\d_a-z][\w.'\u2019]*(?: [\w.'\u2019]+){,4}:[ \t]+")
END = re.compile(r"[.!\u2026\u0964\u3002\uff01][\"'*_`)\]\u00bb\u2019\u201d]*$")
DEPENDS = re.compile(  # on the sentence before it
    r"\W*(?:th(?:is|ese|ose|at|ey|ere|us|en|erefore)|it|its|he|she|his|her|their|such|hence|here"
    r"|however|instead|also|both|another|otherwise|similarly|likewise|finally|now"
    r"|moreover|furthermore|consequently|accordingly|in (?:addition|contrast|th(?:is|ese|at|ose))"
    r"|in such|for (?:example|instance)|as a (?:result|consequence)|the (?:previous|former|latter)"
    r"|(?:first|second|third|next|last)(?:ly)?,"
    r"|dies\w*|er|es|sie|deshalb|daher|dabei|dazu|damit|dann|auch|au\u00dferdem|dadurch|danach|dort"
    r"|hier|jedoch|jetzt|nun|es[aeo]s?|est[aeo]s?|aquel\w*|ellos?|adem\u00e1s|ahora|as\u00ed|luego"
    r"|sin embargo|tambi\u00e9n|tampoco)\b"
    "|[\u8fd9\u5b83\u4ed6\u5979\u6b64\u4f46]|\u90a3[\u4e2a\u4e9b\u4e48\u6837\u79cd]|\u5176[\u4e2d\u6b21]"
    "|\u56e0\u6b64|\u6240\u4ee5|\u7136\u800c|\u73b0\u5728|\u540c\u65f6|\u53e6\u5916|\u7136\u540e|\u8fd8\u6709",
    re.IGNORECASE,
)
POINTS = re.compile(  # to what stands elsewhere
    r"\b(?:fig(?:ures?|s?\.)|tab(?:les?|elle|\.)|sections?|chapters?|eqs?\.|equations?|listing|lemma"
    r"|theorem|abb(?:ildung|\.)|kapitel|abschnitt)\s+\(?(?-i:\d|[A-Z]\b)"
    r"|\b(?:as follows|the following|shown (?:above|below|in|here)|see (?:also|the)|refer to"
    r"|(?:above|below|follows?)[.,:]|wie folgt|siehe)|\[[\w:.,;\s-]+\]|\b\d+\)\s*$"
    r"|\bin this (?:section|chapter)\b",
    re.IGNORECASE,
)
LICENCE = re.compile(  # of the document itself
    r"\u00a9 ?\d{4}|\ball rights reserved\b|\bpermission is hereby granted\b"
    r"|\bwarrant(?:y|ies)(?: or conditions)? of any kind\b|\bimplied warrant(?:y|ies) of merchant"
    r"|\badditionally licensed\b|\bredistribute it and/or modify\b"
    r"|\bthis (?:book|code|document\w*|file|package|page|program|project|repository|site|software"
    r"|text|work)\b.{,60}?\b(?:(?:licen[sc]ed|released|distributed) under|public domain)\b",
    re.IGNORECASE,
)
BOILERPLATE = re.compile(
    r"\u00a9|\bcopyright\b|\blicen[sc]ed? under\b|\bIS[BS]N\b|\bdoi\b|\w@\w+\.|https?://|\bwww\."
    r"|\bclick here\b|\bcookies?\b|\bunsubscribe\b",
    re.IGNORECASE,
)
OPENINGS = re.compile(  # sections that tell what a document is about
    r"(?:(?:chapter|section|part|kapitel|abschnitt|cap\u00edtulo|secci\u00f3n) )?[\d.#\s]*"
    r"(?:abstract|summary|introduction|overview|about|conclusions?|description|discussion|highlights"
    r"|purpose|zusammenfassung|einleitung|\u00fcberblick|fazit|r\u00e9sum\u00e9|introducci\u00f3n|resumen)\b",
    re.IGNORECASE,
)
DEFINES = re.compile(  # says what a thing is
    r"(?:(?:an?|the) )?(\w[\w.+-]*(?: [\w.+-]+){,3}?)(?: \([^)]*\))?"
    r" (?:is|are) (?:an?|the|one of) ",
    re.IGNORECASE,
)
CONTINUES = re.compile(r"\W*(?:and|but|so|or|because|well|okay|yeah|i mean|you know)\b", re.I)
SPOKEN = re.compile(rf"{SPEAKER.pattern}|(?i:\b(?:u[hm]+|mm+|yeah)\b)")
FALTERS = re.compile(  # also words that are said twice, or begun twice: "we don't we", "th the"
    r"\b(?:u[hm]+|e[hr]+|hmm+|mm+|yeah|(\w+),?(?: [\w']+)? \1"
    r"|(?<!['\u2019])([b-df-hj-np-tv-z]{1,3}) \2\w*)\b",
    re.IGNORECASE,
)
PERSONAL = re.compile(  # about the speaker or the listener
    r"\W*(?:(?:and|but|so|or|because|well|ok(?:ay)?|yeah|no|although|see|right|now|um+|uh+|oh"
    r"|i mean|you know|anyway)\b[\s,.]*)*(?:i|you|let)\b",
    re.IGNORECASE,
)
FORMULA = re.compile(r"[$\\{}=<>|]")

REDUNDANCY = 0.4  # weight of the similarity to chosen sentences, see `select_sentences`
FORM = 5  # fewest words without content that stock sentences have in common
MOST_ALIKE = 3  # such sentences of a document; if there are more, they are stock sentences
CENTRAL = 1.2  # weight of LexRank beside the topics
FEWEST = 6  # words that a sentence counts as having at least


def weight_of(sentence: Sentence, is_spoken: bool = False) -> float:
    """Return how suitable a sentence is for a summary, above 0; 1 for most complete sentences.

    Complete sentences of prose that can be understood alone weigh most. Sentences that refer to
    other text, questions, and sentences with few words of their own weigh less. Rows, captions and
    stubs weigh less again, and front matter, reference lists, contents, code and notices of a
    licence almost nothing. Sentences of an abstract or introduction, with words of the titles above
    them, or that define what a title names, weigh more. Of speech, sentences that
    falter or are about the speaker weigh less.

    Notes
    -----
    Edmundson, New Methods in Automatic Extracting (1969): cue, title and location.
    """
    text = SPEAKER.sub("", sentence.text, count=1)
    words = tokens(text)
    if sentence.kind in STRUCTURE:
        return NO_CONTENT
    numbers = sum(word[0].isdigit() for word in words)
    n_words = len(words) - len(UNSPACED.findall(text)) / 2  # a word has about two characters
    if n_words < MIN_WORDS or 3 * numbers > len(words) or sentence.kind == "heading":
        return STUB
    if LICENCE.search(text):
        return STUB
    if sentence.kind not in PROSE:
        return PART
    weight = min(1.0, n_words / FULL)
    if END.search(text) is None:
        weight *= 0.4 if sentence.kind == "item" and text[-1] not in ":," else PART
    if text[0].islower() or not any(word.lower() not in UNTITLED for word in words):
        weight *= 0.5
    if DEPENDS.match(text):
        weight *= 0.7
    if POINTS.search(text):
        weight *= 0.5
    if is_spoken:
        weight *= FALTERING ** len(FALTERS.findall(text)) * (0.5 if PERSONAL.match(text) else 1)
    if BOILERPLATE.search(text):
        weight *= PART
    if 20 * len(FORMULA.findall(text)) > len(text):
        weight *= PART
    return weight * _of_titles(sentence, words)


def _alone(sentence: Sentence, is_spoken: bool) -> float:
    """Return how well a sentence is understood without its neighbours."""
    text = SPEAKER.sub("", sentence.text, count=1)
    words = tokens(text)
    share = sum(word.lower() not in UNTITLED for word in words) / max(1, len(words))
    continues = not is_spoken and CONTINUES.match(text)  # speakers begin so anyway
    n_hints = bool(DEPENDS.match(text) or continues) + bool(POINTS.search(text))
    return min(1.0, share / INFORMATIVE_SHARE) * DEPENDENT_WEIGHT**n_hints


def _of_titles(sentence: Sentence, words: Sequence[str]) -> float:
    """Return a sentence's weight from the titles above it, at least 1."""
    section = _section(sentence)
    titles = {*map(str.lower, tokens(f"{sentence.name} {section}"))} - UNTITLED
    weight = 1 + TITLED * len(titles.intersection(map(str.lower, words))) / max(1, len(titles))
    if defines := DEFINES.match(sentence.text):
        weight *= 1 if titles.isdisjoint(tokens(defines[1].lower())) else DEFINED
    return weight * (PLACED if any(map(OPENINGS.match, titles_of(section))) else 1)


def _is_near_beginning(sentence: Sentence) -> bool:
    """Return whether a sentence is complete and among the first of its document."""
    span = sentence.within.source
    place = None if span is None else span.start + sentence.at - sentence.within.at
    return place is not None and place < BEGINNING and END.search(sentence.text) is not None


def _section(sentence: Sentence) -> str:
    return sentence.within.source.section if sentence.within.source else ""


def informative(sentences: Sequence[Sentence]) -> tuple[list[Sentence], list[float]]:
    """Drop repeated sentences, and sentences that say little compared to others of their child.

    The remaining sentences are returned with their weights.

    >>> from hierindex.text.sentences import split_sentences
    >>> [s.text for s in informative(split_sentences("Chapter 2. The host was not at home."))[0]]
    ['The host was not at home.']
    """
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.text, sentence)
    distinct = [*first.values()]
    spoken = _spoken(distinct)
    weights = [
        weight_of(s, s.document in spoken)
        * (PLACED if is_lead else 1)
        * (OPENS if s.document not in spoken and _is_near_beginning(s) else 1)
        for s, is_lead in zip(distinct, _leads(distinct), strict=True)
    ]
    best = dict[int, float]()  # by child
    for sentence, weight in zip(distinct, weights, strict=True):
        best[sentence.child] = max(weight, best.get(sentence.child, 0.0))
    kept = [i for i, s in enumerate(distinct) if weights[i] >= LEAST * best[s.child]]
    return [distinct[i] for i in kept], [weights[i] for i in kept]


def _spoken(sentences: Sequence[Sentence]) -> set[str | None]:
    """Return the documents that are speech: many sentences name a speaker or have a filler."""
    every = Counter(sentence.document for sentence in sentences)
    hits = Counter(s.document for s in sentences if SPOKEN.search(s.text))
    return {document for document, n in every.items() if hits[document] >= SPOKEN_SHARE * n}


def _leads(sentences: Sequence[Sentence]) -> Iterator[bool]:
    """Yield whether a sentence is one of the first of prose in its section."""
    for (_, section), group in groupby(sentences, lambda s: (s.document, _section(s))):
        n = 0
        for sentence in group:
            n += sentence.kind in PROSE
            yield bool(section) and sentence.kind in PROSE and n <= N_LEADS


def _are_stock(sentences: Sequence[Sentence]) -> list[bool]:
    """Return whether each is a stock sentence: others of its document differ in content words only.

    >>> from hierindex.text.sentences import split_sentences
    >>> options = "key", "cert", "proxy", "limit"
    >>> said = [f"If --{option} is given twice, the last one counts." for option in options]
    >>> _are_stock(split_sentences(" ".join(said)))
    [True, True, True, True]
    """
    forms = [
        (s.document, *(word for word in tokens(s.text.lower()) if not _is_content(word)))
        for s in sentences
    ]
    n = Counter(forms)
    return [len(form) > FORM and n[form] > MOST_ALIKE for form in forms]


def _is_content(word: str) -> bool:
    return word not in UNTITLED


def _may_be_topic(word: str) -> bool:
    is_letter = len(word) == 1 and word.isascii()
    return word.isalpha() and not is_letter and _is_content(word)


def tf_idf(texts: Sequence[str], counts: Callable[[str], bool] = bool) -> "csr_array":
    """Compute TF-IDF weights, with the texts themselves as corpus.

    The weights are (1 + log tf) * (1 + log((1 + n_texts) / (1 + df))), as in scikit-learn's
    TfidfVectorizer with `sublinear_tf`, which is much slower for a few dozen texts. Only words
    for which `counts` is true are counted.

    Returns
    -------
    (n_texts, n_words) csr_array
        Rows have length 1, or 0 if the text has no words.

    Examples
    --------
    >>> S = tf_idf(["A letter.", "a LETTER!", "? ?"])
    >>> (S @ S.T).toarray().round(3).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    from scipy.sparse import csr_array

    tokens_of = [[w for w in tokens(text.lower()) if counts(w)] for text in texts]
    words = [*chain.from_iterable(tokens_of)]
    column = {word: i for i, word in enumerate(dict.fromkeys(words))}
    cells = np.repeat(np.arange(len(texts)), [*map(len, tokens_of)]), [column[w] for w in words]
    X = csr_array((np.ones(len(words)), cells), shape=(len(texts), len(column)))
    df = np.bincount(X.indices, minlength=len(column))
    X.data = (1 + np.log(X.data)) * (1 + np.log((1 + len(texts)) / (1 + df)))[X.indices]
    row = np.repeat(np.arange(len(texts)), np.diff(X.indptr))
    X.data /= np.sqrt(np.bincount(row, weights=X.data**2, minlength=len(texts)))[row]
    return X


class Extractor(Protocol):
    """Protocol for choosing verbatim sentences from each group within a budget."""

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine which sentences are chosen."""

    def extract(self, groups: Sequence[Group], budget: Budget) -> list[list[Sentence]]:
        """Return at least one sentence of each group, within the budget and in reading order."""


class SalientSentences:
    """The default extractor: salient sentences of all children, more from larger ones.

    Sentences without content are left out if the child that they come from has better ones.
    Sentences that cannot be understood alone weigh less. If more than three sentences of a document
    differ only in their content words, they hardly count. Definitions of title words, and the
    beginnings of documents, are preferred. Sentences are compared by TF-IDF weights, with the group
    as corpus. The method and its constants were tuned in `tests/benchmarks/extractive.py`.

    Parameters
    ----------
    by : {"topics", "lexrank"}
        How relevance is scored. "lexrank": LexRank, with restarts at the beginnings of documents.
        "topics" (the default): LexRank plus the share of topic words. A word that occurs in several
        sentences of a child is a topic word of that child. It has more weight the fewer children it
        is a topic word of.

    Raises
    ------
    InputError
        If `by` has another value.
    """

    def __init__(self, by: Literal["topics", "lexrank"] = "topics") -> None:
        require(by in ("topics", "lexrank"), "by", "'topics' or 'lexrank'", by)
        self.by = by

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine which sentences are chosen."""
        return {"method": self.by, "redundancy": REDUNDANCY}

    def extract(self, groups: Sequence[Group], budget: Budget) -> list[list[Sentence]]:
        """Return at least one sentence of each group, within the budget and in reading order."""
        return [self._extract(group, budget.without(names_of(group))) for group in groups]

    def _extract(self, group: Group, budget: Budget) -> list[Sentence]:
        chosen = self.select(group, budget)
        return chosen or [beginning(each, budget) for each in informative(group)[0][:1]]

    def select(self, group: Group, budget: Budget) -> list[Sentence]:
        """Select whole sentences of a group; empty if none fits."""
        pool, weights = informative(group)
        p = self._relevance(pool, np.array(weights))
        part = numbered([sentence.child for sentence in pool])
        size = np.zeros(part.max(initial=-1) + 1)
        size[part] = [sentence.size for sentence in pool]
        chosen = select_sentences(
            tf_idf([sentence.text for sentence in pool], _is_content),
            budget.costs(pool),
            p / p.max(initial=1e-300),  # at most 1, like a cosine
            budget=budget.max_tokens,
            redundancy=REDUNDANCY,
            part=part,
            size=size,
        )
        return [pool[i] for i in chosen]

    def ranked(self, group: Group) -> dict[int, list[Sentence]]:
        """Return the informative sentences of each child (`Sentence.child`), the best first."""
        pool, weights = informative(group)
        spoken = _spoken(pool)
        alone = [_alone(sentence, sentence.document in spoken) for sentence in pool]
        p = self._relevance(pool, np.array(weights) * np.array(alone))
        ranked = defaultdict[int, list[Sentence]](list)
        for i in np.argsort(-p, kind="stable").tolist():
            ranked[pool[i].child].append(pool[i])
        return dict(ranked)

    def _relevance(self, pool: Sequence[Sentence], weights: Floats1d) -> Floats1d:
        """Return the relevance of sentences, (n_sentences,), in proportion to their weights.

        Stock sentences say almost nothing.
        """
        texts = [SPEAKER.sub("", sentence.text, count=1) for sentence in pool]
        p = lexrank(tf_idf(texts), opening(numbered([sentence.document for sentence in pool])))
        if self.by == "topics":
            n_words = np.maximum([len(tokens(text)) for text in texts], FEWEST)
            part = numbered([sentence.child for sentence in pool])
            topics = topicality(tf_idf(texts, _may_be_topic), part, n_words)
            p = CENTRAL * p / p.max(initial=1e-300) + topics / topics.max(initial=1e-300)
        return p * weights * np.where(_are_stock(pool), STUB, 1.0)


class ExtractiveSummarizer:
    """A summariser that joins the sentences an extractor chooses.

    Parameters
    ----------
    extractor : Extractor, optional
        `SalientSentences` by default; `BertExtractor` is another.
    """

    name = "extractive"

    def __init__(self, extractor: Extractor | None = None) -> None:
        self.extractor: Extractor = SalientSentences() if extractor is None else extractor

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine a summary's text."""
        return {"type": self.name, "extractor": self.extractor.to_dict()}

    def summarize(
        self, groups: Sequence[Group], budget: Budget, resources: Resources | None = None
    ) -> list[Summary]:
        """Return one summary for each group, in order, each within the budget."""
        extracts = self.extractor.extract(groups, budget)
        if resources is not None:
            resources.progress("summarize", len(groups), len(groups))
        names = [*map(names_of, groups)]
        kept = [budget.trimmed(*each) for each in zip(extracts, names, strict=True)]
        return [
            join_sentences(each, of if budget.fits(joined(each, of)[0]) else ())
            for each, of in zip(kept, names, strict=True)
        ]


def beginning(sentence: Sentence, budget: Budget) -> Sentence:
    """Return as much of a sentence as fits a budget; see `Budget.beginning`."""
    text = budget.beginning(sentence.text).rstrip() or sentence.text[:1]
    return replace(sentence, text=text, to=sentence.at + len(text))
