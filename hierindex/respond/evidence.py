"""Scores in [0, 1] of how well texts answer a question, by meaning and by words."""

import re
from collections.abc import Collection, Set
from dataclasses import dataclass, field
from math import exp
from typing import Self

import numpy as np
from Stemmer import Stemmer

from hierindex.core.ranking import Scale, cosines
from hierindex.models.embedder import EmbedModel, unit_vectors
from hierindex.node import MOST_DOCUMENTS, Node
from hierindex.retrieve.known_questions import PART, about_the_whole, known_vectors
from hierindex.retrieve.retrieval import Retrieved
from hierindex.retrieve.search import is_name
from hierindex.store.rows import matched_words
from hierindex.text.characters import UNSPACED, folded
from hierindex.text.words import (
    CHINESE_QUESTION_CHARACTERS,
    STOP_WORDS,
    is_foreign,
    known_language,
    language_of,
    stemmer_of,
)

# A logistic regression on half of the pairs of tests/benchmarks/refusals.py.
LIKENESS, WORDS, LACKING, INTERCEPT = 4.6, 3.2, -4.4, -4.4
# The same of a text in another language, whose words say little; tests/benchmarks/languages.py.
LIKENESS_ACROSS, INTERCEPT_ACROSS = 9.4, -7.8
PAIR = 0.75  # weight of a missing name in Chinese and Japanese, where any two characters are one
MOST_LIKE = 1.2  # calibrated similarity; a higher one says no more
LOOKED_UP = 0.9  # least score if the question is nothing but words that one text has
MOST_NAMES = 3  # words that may all be names
N_BEST = 5  # texts that are searched for numbers and names

QUOTED = re.compile(
    r"[\"\u201c\u201e\u00ab\u300c](\w[^\"\u201c\u201d\u00bb\u300d]*)[\"\u201c\u201d\u00bb\u300d]"
)
NAME = re.compile(r"(?<=[^\s.?!:;]\s)[^\W\d_a-z]\w*")  # within a sentence; all but ASCII counts
CODE = re.compile(  # options, paths, variables, and manual pages as "tar(1)"
    r"(?<![\w-])--?[^\W\d][\w-]*|/?\w+(?:[/_]\w+)+|[^\W\d_A-Z]+[A-Z]\w*|\w[\w-]*(?=\(\d\))"
)
ASKING = re.compile(  # what texts seldom say: commands, what their parts are called, and "'s"
    r"^\W*(?:please\s+)?(?:describe|explain|summari[sz]e)\b|(?<=\w)['\u2019]s\b"
    rf"|{PART.pattern}|(?:(?<=\.\d)|(?<=\.\d\d))\s+(?:says?|states?|means?)\b",
    re.IGNORECASE,
)
HAN = r"\u3040-\u30ff\u3400-\u9fff"
WORD = re.compile(  # pairs of characters in scripts without blanks, "3.12", and options as "-k"
    rf"(?=([{HAN}]{{2}}))|((?<![{HAN}])[{HAN}](?![{HAN}])|\d\w*(?:[.,:]\d+)+"
    rf"|(?<![\w-])-[A-Za-z](?![\w-])|[^\W{HAN}]+)"
)


@dataclass(frozen=True)
class QuestionWords:
    """The words of a question, reduced to stems.

    `words` are the words with content, without question words. `numbers` and `names` are among
    them. A name is a capitalised word within a sentence (except in German), a quoted word, a word
    in another script, one that looks like code, or one with digits. `parts` are the numbers of
    parts of a text, as in "clause 3". `is_lookup` is true if there are no other words, as in "Jack
    Ruby" or "chapter-3.md". `language` is "" if unknown.
    """

    words: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    parts: frozenset[str]
    is_lookup: bool
    language: str
    stemmer: Stemmer = field(compare=False, repr=False)

    @classmethod
    def of(cls, question: str) -> Self:
        """Parse a question.

        >>> asked = QuestionWords.of("Where was Ada Lovelace in 1833?")
        >>> [sorted(words) for words in (asked.words, asked.names, asked.numbers)]
        [['1833', 'ada', 'lovelac'], ['ada', 'lovelac'], ['1833']]
        """
        language = language_of(question)
        stemmer = stemmer_of(language)
        every = words_of(ASKING.sub(" ", question))
        asking = STOP_WORDS.get(language, frozenset())
        words = [
            word
            for word in every
            if word not in asking and CHINESE_QUESTION_CHARACTERS.isdisjoint(word)
        ]
        numbers = {word for word in words if any(map(str.isdigit, word))}
        dotted = {number for number in numbers if "." in number}
        is_part = numbers == {*words} == dotted
        parts = dotted.union(re.findall(rf"{PART.pattern}(\d+)(?![\w.]*\w)", question, re.I))
        is_lookup = len(words) == len(every) or is_name(question) or (bool(words) and is_part)
        found = ["".join(each) for each in QUOTED.findall(question)] + CODE.findall(question)
        names = set(words_of(" ".join(found)))
        if UNSPACED.search(question):
            names |= {*words}
        elif language != "de":
            capitals = (name for name in NAME.findall(question) if name[0].isupper())
            capital = {*words_of(" ".join(capitals))}.intersection(words)
            is_title = len(words) > MOST_NAMES and len(capital) + 1 >= len(words)
            names |= set() if is_title else capital  # or all words are in capitals
        words = words or [*every]

        def stems(group: Collection[str]) -> frozenset[str]:
            return frozenset(map(folded, map(stemmer.stemWord, group)))

        products = {word for word in numbers if word[0].isalpha()}  # as "bzip2" and "sha256"
        names = names.intersection(words) - numbers | products
        known = known_language(question)
        stemmed = stems(words), stems(numbers), stems(names), stems(parts)
        return cls(*stemmed, is_lookup, known, stemmer)

    def stem(self, word: str) -> str:
        """Return the stem of a word."""
        return folded(self.stemmer.stemWord(_lower(word)))

    def stems(self, text: str) -> set[str]:
        """Return the stems of the words of a text, with and without accents."""
        stems = {*map(folded, self.stemmer.stemWords([*words_of(text)]))}
        if not text.isascii():
            stems.update(self.stemmer.stemWords([*words_of(folded(text))]))
        return stems

    def across(self, node: Node) -> bool:
        """Return whether a node is in another language than the question."""
        return is_foreign(node.metadata, self.language)

    def lacks(self, stems: Set[str]) -> frozenset[str]:
        """Return the numbers and names that are missing from some stems."""
        return (self.numbers | self.names) - stems

    def score(self, likeness: float, texts: list[set[str]], *, across: bool = False) -> float:
        """Return the probability that texts answer the question.

        Parameters
        ----------
        likeness : float
            Calibrated similarity of the question to the nearest sentence or text.
        texts : list of set of str
            The stems of each text, the best text first.
        across : bool
            Whether the best text is in another language, so that shared words mean little.
        """
        if not self.words or not texts:
            return 0.0
        covered = max(len(self.words & stems) for stems in texts) / len(self.words)
        lacking = self.lacks(set().union(*texts[:N_BEST]))
        lacks_number = not self.numbers.isdisjoint(lacking)
        sure = PAIR if self.language in ("ja", "zh") else 1.0
        lacks = max(lacks_number, sure * len(self.names & lacking) / max(len(self.names), 1))
        likeness = min(max(likeness, 0.0), MOST_LIKE)
        if across:
            logit = INTERCEPT_ACROSS + LIKENESS_ACROSS * likeness
        else:
            logit = INTERCEPT + LIKENESS * likeness + WORDS * covered + LACKING * lacks
        score = 1 / (1 + exp(-logit))
        return max(score, LOOKED_UP) if self.is_lookup and covered == 1 else score


def words_of(text: str) -> dict[str, None]:
    """Return the distinct words of a text in lower case, in order; "_" is between words."""
    return dict.fromkeys(map(_lower, words_in(text)))


def _lower(word: str) -> str:
    """Return a word in lower case; an option of one letter, as "-K", as it is."""
    return word if word.startswith("-") else word.lower()


def words_in(text: str) -> dict[str, None]:
    """Return the distinct words of a text in their original case, in order."""
    return dict.fromkeys(a or b for a, b in WORD.findall(text.replace("_", " ")))


def text_about(node: Node) -> str:
    """Return a node's text with its titles, section, file names and document ids."""
    words = matched_words(node.metadata, node.text)
    return " ".join([words, *node.documents[:MOST_DOCUMENTS]])


def source_scores(retrieved: Retrieved, model: EmbedModel) -> dict[str, float]:
    """Return, by node id, how well each node answers the question by itself.

    For an overview, it is the node's share of the text. Vectors are read from the snapshot in which
    the nodes were found. Without a snapshot, the result is empty.
    """
    question, snapshot, found = retrieved.question, retrieved.snapshot, retrieved.found
    if snapshot is None or not found:
        return {}
    if retrieved.shares or about_the_whole(question.text, question.embedding, model):
        return {node.id: min(max(score, 0.0), 1.0) for node, score in found}
    rows = snapshot.rows([node.id for node, _ in found], columns=("id", "vector"))
    vectors = {row["id"]: row["vector"] for row in rows}
    nodes = [node for node, _ in found if node.id in vectors]
    if not nodes:
        return {}
    q = unit_vectors([question.embedding])[0].astype(np.float64)
    Q, A, _ = known_vectors(model)
    X = np.array([vectors[node.id] for node in nodes], dtype=np.float64)  # (n_nodes, n_dims)
    likeness = Scale.of(Q @ A.T).shares(cosines(X, q))
    asked = QuestionWords.of(question.text)
    return {
        node.id: asked.score(share, [asked.stems(text_about(node))], across=asked.across(node))
        for node, share in zip(nodes, likeness.tolist(), strict=True)
    }
