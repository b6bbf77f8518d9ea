"""How well texts answer a question, from 0 to 1, by their meaning and their words."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import exp
from typing import Self

import numpy as np
from Stemmer import Stemmer

from hierindex.core.calibration import Scale
from hierindex.core.ranking import cosines
from hierindex.embed.embedder import unit_vectors
from hierindex.embed.model import EmbedModel
from hierindex.node import MOST_DOCUMENTS, Node
from hierindex.retrieve.known_questions import about_the_whole, known_vectors
from hierindex.retrieve.question import UNSPACED, is_name
from hierindex.retrieve.retrieval import Retrieved
from hierindex.store.rows import matched_words
from hierindex.text.stop_words import (
    CHINESE_QUESTION_CHARACTERS,
    STOP_WORDS,
    language_of,
)

# A logistic regression on half of the pairs of tests/benchmarks/refusals.py.
LIKENESS, WORDS, NUMBER, NAMES, INTERCEPT = 4.6, 3.2, -4.1, -4.7, -4.4
NOUNS, PAIRS = -1.0, -4.0  # chosen by tests/benchmarks/refusals_in_languages.py
MOST_LIKE = 1.2  # calibrated similarity; a higher one says no more
LOOKED_UP = 0.9  # least score if the question is nothing but words that one text has
N_SAME = 3  # letters that forms of a word share at least
MOST_NAMES = 3  # words that may all be names
N_BEST = 5  # texts that are searched for numbers and names

QUOTED = re.compile(
    r"[\"\u201c\u201e\u00ab\u300c](\w[^\"\u201c\u201d\u00bb\u300d]*)[\"\u201c\u201d\u00bb\u300d]"
)
NUMBERED = re.compile(r"([^\W\d_]{2,})\W{1,2}(\d\w*(?:[.,:]\d+)*)")  # as "station 12"
NAME = re.compile(r"(?<=[^\s.?!:;]\s)[^\W\d_a-z]\w*")  # within a sentence; all but ASCII counts
CODE = re.compile(  # options, paths, variables, and manual pages as "tar(1)"
    r"(?<![\w-])--?[^\W\d]\w[\w-]*|/?\w+(?:[/_]\w+)+|[^\W\d_A-Z]+[A-Z]\w*|\w[\w-]*(?=\(\d\))"
)
HAN = r"\u3040-\u30ff\u3400-\u9fff"
WORD = re.compile(  # pairs of characters in scripts without blanks, and numbers such as "3.12"
    rf"(?=([{HAN}]{{2}}))|((?<![{HAN}])[{HAN}](?![{HAN}])|\d\w*(?:[.,:]\d+)+|[^\W{HAN}]+)"
)


@dataclass(frozen=True)
class Asked:
    """The words of a question.

    `words` are those that do not merely ask, `numbers` and `names`, which include what is in
    quotation marks, are among them, and so are `nouns`, the words with capitals of a question in
    German, where names look like any noun. `is_lookup` tells that there are no others, as in
    "Jack Ruby" or "chapter-3.md". `numbered` are numbers with the word before, as "station 12".
    """

    words: tuple[str, ...]
    numbers: frozenset[str]
    names: frozenset[str]
    nouns: frozenset[str]
    is_lookup: bool
    numbered: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, question: str) -> Self:
        """Read a question.

        In a script without blanks, words in another script are names.

        >>> asked = Asked.of("Where was Ada Lovelace in 1833?")
        >>> asked.words, sorted(asked.names), sorted(asked.numbers)
        (('ada', 'lovelace', '1833'), ['ada', 'lovelace'], ['1833'])
        """
        every = words_of(question)
        language = language_of(question)
        asking = STOP_WORDS[language]
        words = tuple(
            word
            for word in every
            if word not in asking and CHINESE_QUESTION_CHARACTERS.isdisjoint(word)
        )
        numbers = frozenset(word for word in words if any(map(str.isdigit, word)))
        found = ["".join(each) for each in QUOTED.findall(question)] + CODE.findall(question)
        names = frozenset(words).intersection(words_of(" ".join(found)))
        capital = " ".join(name for name in NAME.findall(question) if name[0].isupper())
        nouns = frozenset(words).intersection(words_of(capital))
        if len(words) > MOST_NAMES and len(nouns) + 1 >= len(words):
            nouns = frozenset()  # a title, or all in capitals
        if UNSPACED.search(question):
            names |= {word for word in words if not UNSPACED.search(word)}
        if language != "de":
            names, nouns = names | nouns, frozenset()
        names, nouns = names - numbers, nouns - names - numbers
        pairs = NUMBERED.findall(question.lower())
        numbered = frozenset(pair for pair in pairs if pair[0] not in asking)
        is_lookup = len(words) == len(every) or is_name(question)
        return cls(words or tuple(every), numbers, names, nouns, is_lookup, numbered)

    def lacks(self, told: Collection[str]) -> set[str]:
        """Return the numbers that are not among words, and the names and nouns in no form."""
        words = {word for word in self.names | self.nouns if not has_form_of(word, told)}
        return words | self.numbers.difference(told)

    def has_another_number(self, text: str) -> bool:
        """Return whether a text has another number where the question has one.

        >>> asked = Asked.of("Why did station 12 fail?")
        >>> asked.has_another_number("Station 15 failed at 12."), asked.has_another_number("Why?")
        (True, False)
        """
        pairs = {*NUMBERED.findall(text.lower())} if self.numbered else set[tuple[str, str]]()
        of_same = {pair for pair in pairs if pair[0] in dict(self.numbered)}
        return bool(of_same) and of_same.isdisjoint(self.numbered)

    def score(self, likeness: float, told: Sequence[set[str]]) -> float:
        """Return the probability that texts answer the question.

        Parameters
        ----------
        likeness : float
            Calibrated similarity of the question to the nearest sentence or text.
        told : sequence of set of str
            The words of each text, in lower case, the best text first.
        """
        if not self.words or not told:
            return 0.0
        covered = max(len(words.intersection(self.words)) for words in told) / len(self.words)
        best = set[str]().union(*told[:N_BEST])
        lacking, pairs = self.lacks(best), {*filter(UNSPACED.search, self.words)}
        logit = (
            INTERCEPT
            + LIKENESS * min(max(likeness, 0.0), MOST_LIKE)
            + WORDS * covered
            + NUMBER * (not self.numbers.isdisjoint(lacking))
            + NAMES * len(self.names & lacking) / max(len(self.names), 1)
            + NOUNS * len(self.nouns & lacking) / max(len(self.nouns), 1)
            + PAIRS * len(pairs - best) / max(len(pairs), 1)
        )
        score = 1 / (1 + exp(-logit))
        looked_up = self.is_lookup and any(
            all(has_form_of(word, words) for word in self.words) for words in told
        )
        return max(score, LOOKED_UP) if looked_up else score


def has_form_of(word: str, words: Collection[str]) -> bool:
    """Return whether a word, or another with the same English or German stem, is among words.

    The index finds words by the English stemmer.

    >>> has_form_of("obtainable", ["they", "obtained"]), has_form_of("firm", ["first"])
    (True, False)
    >>> has_form_of("passworts", ["die", "passwörter"])
    True
    """
    if word in words:
        return True
    alike = [each for each in words if each.startswith(word[:N_SAME])]
    return any(
        stemmer.stemWord(word) in stemmer.stemWords(alike)
        for stemmer in map(Stemmer, ("english", "german"))
    )


def words_of(text: str) -> dict[str, None]:
    """Return the distinct words of a text in lower case, in order; "_" is between words."""
    return words_in(text.lower())


def words_in(text: str) -> dict[str, None]:
    """Return the distinct words of a text as they are written, in order."""
    return dict.fromkeys(a or b for a, b in WORD.findall(text.replace("_", " ")))


def words_about(node: Node) -> set[str]:
    """Return the words of a node's text, titles, section, file names and documents."""
    words = matched_words(node.metadata, node.text)
    return {*words_of(" ".join([words, *node.documents[:MOST_DOCUMENTS]]))}


def scores(retrieved: Retrieved, model: EmbedModel) -> dict[str, float]:
    """Return how well each node alone answers, by id; one of an overview keeps its share.

    Vectors are read from the snapshot that the nodes were found in; without one the result is
    empty.
    """
    question, snapshot, found = retrieved.question, retrieved.snapshot, retrieved.found
    if snapshot is None or not found:
        return {}
    q = np.asarray(unit_vectors([question.embedding])[0], dtype=np.float64)
    if retrieved.shares or about_the_whole(q, model).decided:
        return {node.id: min(max(score, 0.0), 1.0) for node, score in found}
    rows = snapshot.rows([node.id for node, _ in found], columns=("id", "vector"))
    if not rows:
        return {}
    Q, A, _ = known_vectors(model)
    X = np.array([row["vector"] for row in rows], dtype=np.float64)  # (n_rows, n_dims)
    likeness = dict(
        zip((row["id"] for row in rows), Scale.of(Q @ A.T).shares(cosines(X, q)), strict=True)
    )
    asked = Asked.of(question.text)
    return {
        node.id: asked.score(float(likeness[node.id]), [words_about(node)])
        for node, _ in found
        if node.id in likeness
    }
