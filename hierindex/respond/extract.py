"""Passages of nodes that answer a question, without a language model."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hierindex.core.arrays import Floats1d, Ints1d
from hierindex.core.calibration import Scale
from hierindex.core.passages import relevance, word_weights, words_around
from hierindex.embed.embedder import Embedder, unit_vectors
from hierindex.node import Node
from hierindex.respond.evidence import Asked, has_form_of, words_about, words_in, words_of
from hierindex.respond.legible import Pool
from hierindex.respond.overview import overview
from hierindex.respond.quoted import NOTHING, Extract, passages_of, select_runs
from hierindex.retrieve.known_questions import about_the_whole, known_vectors
from hierindex.retrieve.retrieval import Retrieved
from hierindex.store.rows import matched_words
from hierindex.summarize.extractive import fitting_sentences
from hierindex.summarize.summary import Budget
from hierindex.text.sentences import Sentence

MOST_EMBEDDED = 12  # sentences; each takes about as long as a search
NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve hundred thousand million half "
    "third quarter dozen ein eine zwei drei vier f\u00fcnf sechs sieben acht neun zehn elf "
    "zw\u00f6lf hundert tausend"
)
MONTHS = (
    "January February March April May June July August September October November December "
    "Januar Februar M\u00e4rz Mai Juni Juli Oktober Dezember"
)
ASKED = {
    "number": re.compile(
        r"\bhow (?:many|much|far|long|old|fast|tall|large|big|high|often|deep|wide|heavy)\b"
        r"|\bpercentage\b|\bnumber of\b|\bwie ?(?:viele?|weit|lange|alt|schnell|gro\u00df|hoch)\b"
        r"|[\u51e0\u5e7e]|\u591a\u5c11",
        re.IGNORECASE,
    ),
    "time": re.compile(
        r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|century)\b|\bwann\b"
        r"|\bwelche[mnrs]? (?:Jahr|Tag|Monat)\b|\u4f55\u65f6|\u4ec0\u4e48\u65f6\u5019|\u54ea\u5e74",
        re.IGNORECASE,
    ),
    "person": re.compile(r"\bwho(?:se|m)?\b|\bwe(?:r|m|n|ssen)\b|\u8c01|\u8ab0", re.IGNORECASE),
}
HAS = {
    "number": re.compile(rf"\d|\b(?:{NUMBERS.replace(' ', '|')})\b", re.IGNORECASE),
    "time": re.compile(
        rf"\d{{4}}|\d\d?[.:]\d\d|\d0s\b|\bcentury\b|\b(?:{MONTHS.replace(' ', '|')})\b"
    ),
    "person": re.compile(r"(?<=[\w,;'\u2019\")] )[A-Z]\w+|\b[A-Z]\w+ [A-Z]\w+"),
}


def extract(retrieved: Retrieved, embedder: Embedder, budget: Budget) -> Extract:
    """Find the passages of nodes that answer a question, or an `overview` if it asks for one.

    Parameters
    ----------
    retrieved : Retrieved
        A sentence counts for a little more the higher the score of its node.
    embedder : Embedder
        Of the question and the sentences.
    budget : Budget
        Of all passages.
    """
    question, nodes = retrieved.question, [node for node, _ in retrieved.found]
    pool = Pool.of((node.text, node.quotes) for node in nodes)
    n_tokens = budget.costs(pool.sentences)
    if not (pool.own & (n_tokens <= budget.max_tokens)).any():
        pool = pool.in_pieces(fitting_sentences(pool.sentences, budget))
        n_tokens = budget.costs(pool.sentences)
    if not pool.sentences:
        return NOTHING
    model, asked = embedder.embed_model, Asked.of(question.text)
    q = np.asarray(unit_vectors([question.embedding])[0], dtype=np.float64)
    if retrieved.shares or about_the_whole(q, model).decided:
        return overview(retrieved, pool, n_tokens, embedder, budget)
    about = _about(pool, nodes)
    texts = [s.text for s in pool.sentences]
    if asked.is_lookup:  # also of titles and file names
        texts = [about[i] for i in pool.paragraph]
    has = _has(asked.words, texts, asked.is_lookup)
    words = words_around(has, pool.node) @ word_weights(has)
    has_another = {i: asked.has_another_number(text) for i, text in about.items()}
    another = np.array([has_another[i] for i in pool.paragraph])
    of_type = np.array([has_what_is_asked_for(question.text, s.text) for s in pool.sentences])
    best_first = np.argsort([-score for _, score in retrieved.found], kind="stable")
    place = np.argsort(best_first)[pool.node]
    says = pool.own & (n_tokens <= budget.max_tokens) & _is_first(pool.sentences, place)

    def scored(likeness: Floats1d) -> Floats1d:
        scores = relevance(likeness, words, of_type, another, place, pool.node)
        return np.where(says, scores, -np.inf)

    near = np.sort(np.argsort(-scored(np.zeros(len(place))), kind="stable")[:MOST_EMBEDDED])
    S = embedder.embed([pool.sentences[i].text for i in near])  # (n_near, n_dims)
    Q, A, _ = known_vectors(model)
    shares = Scale.of(Q @ A.T).shares(S @ q)
    likeness = np.full(len(place), shares.min())
    likeness[near] = shares
    scores = scored(likeness)
    runs = select_runs(pool, scores, has, n_tokens, budget)
    if not runs:
        return NOTHING
    chosen = [i for first, last in runs for i in range(first, last + 1)]
    best = [scores[pool.node == i].max(initial=-np.inf) for i in range(len(nodes))]
    told = [words_about(nodes[i]) for i in np.argsort(best, kind="stable")[::-1]]
    lacking = asked.lacks(words_of("\n".join(about[pool.paragraph[i]] for i in chosen)))
    return Extract(
        passages_of(pool, runs, scores),
        pool.sentences[max(chosen, key=lambda i: scores[i])].text,
        asked.score(float(shares.max()), told),
        missing=tuple(word for word in words_in(question.text) if word.lower() in lacking),
    )


def _about(pool: Pool, nodes: Sequence[Node]) -> dict[int, str]:
    """Return the text of each paragraph with the titles and file names above it."""
    about = dict[int, str]()
    for paragraph, sentence in zip(pool.paragraph, pool.sentences, strict=True):
        above = about.get(paragraph) or matched_words(nodes[sentence.child].metadata, "")
        about[paragraph] = f"{above}\n{sentence.text}"
    return about


def _has(words: Sequence[str], texts: Sequence[str], in_any_form: bool) -> NDArray[np.bool_]:
    told = [*map(words_of, texts)]
    has = [
        [word in each or (in_any_form and has_form_of(word, each)) for word in words]
        for each in told
    ]
    return np.array(has, dtype=bool).reshape(len(texts), len(words))


def _is_first(sentences: Sequence[Sentence], place: Ints1d) -> NDArray[np.bool_]:
    """Return which sentences stand in no better node, and not before in the same, too."""
    first: dict[str, int] = {}
    for i in np.argsort(place, kind="stable"):
        first.setdefault(sentences[i].text, int(i))
    return np.isin(np.arange(len(sentences)), [*first.values()])


def has_what_is_asked_for(question: str, text: str) -> bool:
    """Return whether a text has a number, a time or a name, if the question asks for one.

    A name in the question does not count. English and German are read, and Chinese questions.

    Examples
    --------
    >>> has_what_is_asked_for("How many pumps failed?", "Two pumps failed.")
    True
    >>> has_what_is_asked_for("Who won, Ada?", "The prize went to Ada.")
    False
    """
    asked = next((kind for kind, words in ASKED.items() if words.search(question)), None)
    if asked is None:
        return False
    if asked != "person":
        return HAS[asked].search(text) is not None
    known = set(re.findall(r"\w+", question.lower()))
    names = HAS[asked].findall(text)
    return any(word.lower() not in known for name in names for word in name.split())
