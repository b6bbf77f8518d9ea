"""Names of groups of documents, from their titles, and of parts of a text, from its phrases."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from math import log

from hierindex.text.words import EVERY_STOP_WORD, UNTITLED, stemmer_of

MAX_TITLE = 60  # characters
CUT = " \u2026"  # at the end of a title of first words
FEW = 24  # titles; in larger groups, a phrase of one title has less weight
CONTRAST = 1.5  # least ratio of a word's share of the group's titles to its share of the siblings'
COVERED = 0.3  # weight of a title that the name covers already
LEAST = 10  # characters that are added to the length of each phrase
BREAK = re.compile(  # punctuation and numbers
    r"[^\w\s.,'\u2019&+#/*`-]|\.{3}|\s[-/]\s|(?<!\S)(?:\d\S*|\S*\d\S*\.|[IVX]+\.|\w\.)(?!\S)"
)
BREAK_OF_FILE = re.compile(r"--+|__+|[^\w-]+|[^\W_]*\d[^\W_]*")  # of a name without blanks
WORD = re.compile(r"\w*[^\W\d_](?:'?\w)*")
RUN = re.compile(  # words with only a blank between two
    r"(?<![\w'\u2019-])[^\W\d_]{2,}(?:[ \n][^\W\d_]{2,})+(?![\w'\u2019-])"
)
AROUND = ".,'\u2018\u2019`*-"  # a word
MARKUP = re.compile(r"(?m)^[ \t]*(?:(?:[#>*+=|~-]+[ \t]+)+|[=~-]+$)|[`|]+|(?<!\w)[*_]+|[*_]+(?!\w)")
EDGE = re.compile(r".*[,:;](?:\s|$)", re.DOTALL)
EDGE_OF_FILE = re.compile(r".*[_,:;/.-]", re.DOTALL)
FILE = re.compile(r"[^\W\d_]+(?:[-_]+[^\W\d_]+)+")  # a name of words

GENERIC = """
    advanced appendix book chapter code conclusion content data document faq feature file foreword
    guide index information introduction issue item manual method new overview package page paper
    preface project reference release report review rst summary system task test text tool topic
    tutorial txt update user value version abschnitt anhang artikel bericht einführung handbuch teil
    kapitel thema überblick apéndice artículo capítulo guía informe introducción sección tema
""".split()
GENERIC_STEMS = frozenset(stemmer_of("en").stemWords(GENERIC))  # which are no name, also together

Words = tuple[str, ...]
"""The stems of the different words of a phrase, without stop words."""

Title = tuple[set[str], dict[Words, tuple[float, str]]]
"""The stems in a title, and its phrases: their weight if only one title has them, and text."""


def first_words(text: str, most: int = MAX_TITLE) -> str:
    r"""Return the first words of a text on one line, at most `most` characters in all.

    >>> first_words("Aims and\n means", 11)
    'Aims and'
    """
    words = " ".join(text[: 8 * most].split())
    if len(words) <= most:
        return words
    return words[: most + 1].rpartition(" ")[0] or words[:most]


def without_markup(text: str) -> str:
    """Remove Markdown marks at the start of lines and around words.

    >>> without_markup("## **Aims** of it")
    'Aims of it'
    """
    return MARKUP.sub("", text)


def listed(names: Sequence[str], most: int = MAX_TITLE) -> str:
    """Join as many different names with commas as fit `most` characters.

    >>> listed(["Sails", "Stones", "Sails", "Wheels and gears"], 15)
    'Sails, Stones'
    """
    chosen = ""
    for name in dict.fromkeys(filter(None, names)):
        longer = f"{chosen}, {name}" if chosen else first_words(name, most)
        if len(longer) > most:
            break
        chosen = longer
    return chosen


def without_shared_prefix(names: Sequence[str]) -> list[str]:
    """Remove the beginning that all names share, as file names in a folder often do.

    >>> without_shared_prefix(["book--ch1-old-mills", "book--ch1-sails"])
    ['old mills', 'sails']
    """
    known = {*filter(None, names)}
    if len(known) < 2:
        return [*names]
    first, last = min(known), max(known)
    n = next((i for i, c in enumerate(first) if c != last[i]), len(first))
    has_blanks = any(" " in name for name in known)
    shared = (EDGE if has_blanks else EDGE_OF_FILE).match(first, 0, n)
    cut = [name[shared.end() :].strip() if shared else name for name in names]
    if all(name[:1].isdigit() for name in cut if name):
        cut = [*names]  # which numbers distinguish
    cut = [short or name for short, name in zip(cut, names, strict=True)]
    return [re.sub("[-_]+", " ", name) if FILE.fullmatch(name) else name for name in cut]


def group_names(groups: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each group of documents, made from the titles of the documents.

    If the group has few and short titles, the name lists them. Otherwise it lists phrases, written
    as in the titles, whose words are frequent in the group's titles and rare in those of its
    siblings. So what all titles share, such as the name of a site, is not in the name.

    Parameters
    ----------
    groups : sequence of sequence of str
        The titles of the documents of each group.

    Returns
    -------
    list[str]
        Of at most 60 characters each; empty for a group without titles.

    Notes
    -----
    A phrase is a part of a title between punctuation and numbers, or some words up to the next stop
    word. A word alone must be a whole part of a title, or in three titles and a third of all. The
    weight of a word is the number of titles that contain it, times log(its share of the group's
    titles / 1.5 times its share of the siblings' titles). The phrase with most weight for its
    length is chosen first, then those without the words that the name already has, as long as there
    is room. Titles that the name covers count less for the next phrase.

    Examples
    --------
    >>> group_names([["The mill", "The sails of the mill"], ["The harbour", "Ferries"]])
    ['The mill, The sails of the mill', 'The harbour, Ferries']
    """
    stem = stemmer_of("en").stemWord
    groups = [[*filter(None, titles)] for titles in groups]
    parsed = [[_phrases(title, stem) for title in titles] for titles in groups]
    having = [Counter(word for stems, _ in of for word in stems) for of in parsed]
    in_all, n_all = sum(having, Counter[str]()), sum(map(len, groups))
    wholes = [", ".join(dict.fromkeys(without_shared_prefix(titles))) for titles in groups]
    names = []
    for titles, of, own, whole in zip(groups, parsed, having, wholes, strict=True):
        n = len(titles)
        beside = n_all - n or 3 * n  # without siblings, as if three had none of the words
        # Half a title is added to those with a word, because siblings may have none.
        others = {word: (in_all[word] - own[word] + 0.5) / (beside + 0.5) for word in own}
        contrast = {word: max(0.0, log(own[word] / n / others[word] / CONTRAST)) for word in own}
        is_short = (len(whole) <= MAX_TITLE and wholes.count(whole) == 1) or n == 1
        name = first_words(whole).rstrip(" ,:;") if is_short else _name(of, own, contrast)
        names.append(name or listed(titles))
    return names


def topic_names(texts: Sequence[str], parts: Sequence[Sequence[int]]) -> list[str]:
    """Return a name for each part of a document, made from phrases that it repeats.

    A phrase is two adjacent words, neither of which is a stop word. Its weight is log(the number of
    its occurrences in the part) * log(its share of the part's phrases / its share of the
    document's), or the first factor alone if the part is the whole document. The phrases with most
    weight are listed, no two with the same word.

    Parameters
    ----------
    texts : sequence of str
        The chunks of the document.
    parts : sequence of sequence of int
        The positions of each part's chunks.

    Returns
    -------
    list[str]
        Of at most 60 characters each; empty for a part without such phrases.

    Examples
    --------
    >>> texts = ["A solar cell. The solar cell is cheap.", "The rubber case, a rubber case."]
    >>> topic_names(texts, [[0], [1], [0, 1]])
    ['solar cell', 'rubber case', 'rubber case, solar cell']
    """
    stem = stemmer_of("en").stemWord
    of_texts = [[*_pairs(text)] for text in texts]
    of_all = Counter(chain.from_iterable(of_texts))
    names = []
    for part in parts:
        of_part = Counter(chain.from_iterable(of_texts[i] for i in part))
        share = of_part.total() / max(1, of_all.total())
        weight = {
            pair: log(n) * (max(0.0, log(n / of_all[pair] / share)) if share < 1 else 1)
            for pair, n in of_part.items()
            if n > 1
        }
        chosen, said = list[str](), set[str]()
        for pair in sorted(filter(weight.get, weight), key=lambda pair: (-weight[pair], pair)):
            stems = {stem(word.lower()) for word in pair}
            if stems.isdisjoint(said) and len(", ".join([*chosen, " ".join(pair)])) <= MAX_TITLE:
                chosen.append(" ".join(pair))
                said |= stems
        names.append(", ".join(chosen))
    return names


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for run in RUN.findall(text):
        for pair in pairwise(run.split()):
            if pair[0] != pair[1] and UNTITLED.isdisjoint(word.lower() for word in pair):
                yield pair


def _name(titles: Sequence[Title], having: Counter[str], contrast: Mapping[str, float]) -> str:
    """Choose phrases one by one, each by how much it says of the titles not covered so far."""
    texts, weight = defaultdict[Words, Counter[str]](Counter), dict[Words, float]()
    for _, phrases in titles:
        for phrase, (rare, text) in phrases.items():
            texts[phrase][text] += 1
            weight[phrase] = max(rare, weight.get(phrase, 0.0))
    free = {phrase: min(of, key=lambda text: (-of[text], text)) for phrase, of in texts.items()}
    for phrase, text in free.items():
        n = texts[phrase].total() if len(phrase) > 1 else having[phrase[0]]
        if n == 1:
            weight[phrase] *= min(1.0, FEW / len(titles))
        elif len(phrase) > 1 or n >= max(3, len(titles) / 3):
            weight[phrase] = 1.0
        weight[phrase] *= (len(text) <= MAX_TITLE) / (len(text) + LEAST)
    name, left = "", [stems for stems, _ in titles]
    while free:
        n_left = Counter(word for stems in left for word in stems)
        gain = {w: contrast[w] * (n_left[w] + COVERED * having[w]) for w in having}
        cost, best = min((-round(weight[p] * sum(gain[w] for w in p), 9), p) for p in free)
        if not cost:
            break
        name = listed([name, free[best]])
        left = [stems for stems in left if 2 * len(stems.intersection(best)) < len(best)]
        fits = {p: text for p, text in free.items() if len(f"{name}, {text}") <= MAX_TITLE}
        free = {p: text for p, text in fits.items() if {*best}.isdisjoint(p)}
    return name


def _phrases(title: str, stem: Callable[[str], str]) -> Title:
    """Return the stems and the phrases of a title, which may be the name of a file."""
    is_file = " " not in title.strip()
    parts = (BREAK_OF_FILE if is_file else BREAK).split(title)
    parts = [re.sub("[-_]+", " ", part) if is_file else part for part in parts]
    stems, phrases = set[str](), dict[Words, tuple[float, str]]()
    for words in filter(None, (part.replace(",", " ,").split() for part in parts)):
        of = [_stems(word, stem) for word in words]
        runs = [run.span() for run in re.finditer("x+", "".join("x" if s else " " for s in of))]
        whole = runs[-1][1] if runs and words[-1] in EVERY_STOP_WORD else len(words)
        spans = [(0, whole, 1.0)] if of[0] or not stems else []
        for start, end in runs:
            spans += [(i, end, float(i == start < end - 1)) for i in range(start, end)]
        for i, j, weight in spans:
            phrase = tuple(dict.fromkeys(chain(*of[i:j])))
            if not GENERIC_STEMS.issuperset(phrase) and weight >= phrases.get(phrase, (0.0,))[0]:
                phrases[phrase] = weight, " ".join(words[i:j]).replace(" ,", ",").strip(AROUND)
        stems.update(*of)
    is_bare = is_file and not stems  # such as "ES2011a"
    return ({title}, {(title,): (1.0, title)}) if is_bare else (stems, phrases)


def _stems(word: str, stem: Callable[[str], str]) -> list[str]:
    """Return the stems of the parts of a word, without stop words.

    >>> _stems("Self-Attention", str), _stems("doesn't", str), _stems("(the", str)
    (['attention'], [], [])
    """
    parts = WORD.findall(word.lower().replace("\u2019", "'"))
    return [stem(part) for part in parts if len(part) > 1 and part not in UNTITLED]
