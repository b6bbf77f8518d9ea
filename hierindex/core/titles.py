"""Names of groups of documents, from the titles of their documents."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import log

from hierindex.text.words import UNTITLED

MAX_TITLE = 60  # characters
MAX_PHRASE = 3  # words
COVERED = 0.3  # weight of a title for each of its words that the name has already
MOSTLY = 0.6  # share of the titles with a word that must have a phrase around it
UNSEEN = 1.0  # titles of the siblings that are added to those with a word
PART = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[^\w\s'\u2019]|_")
OF_FILE = re.compile(r"[^\W_]+|--|[^\w\s]|_")  # of a name without blanks
MARKUP = re.compile(r"(?m)^[ \t]*(?:(?:[#>*+=|~-]+[ \t]+)+|[=~-]+$)|[`|]+|(?<!\w)[*_]+|[*_]+(?!\w)")
EDGE = re.compile(r".*[,:;](?:\s|$)", re.DOTALL)
EDGE_OF_FILE = re.compile(r".*[_,:;/.-]", re.DOTALL)
FILE = re.compile(r"[^\W\d_]+(?:[-_]+[^\W\d_]+)+")  # a name of words

GENERIC = frozenset(  # words that name nothing alone, as by `_folded`
    """
    appendix approach book chapter code data document example faq feature file general guide index
    information intro introduction issue item making manual method minute model module name new note
    number overview package page paper part project release report review section set setting
    system task test text tool topic tutorial update use user value version work
    abschnitt anhang anleitung artikel bericht buch datei dokument einführung einleitung handbuch
    kapitel protokoll seite teil thema überblick apéndice artículo capítulo documento guía informe
    introducción libro página parte sección tema
    """.split()
)

Words = tuple[str, ...]
"""The words of a phrase, in lower case and without the ending of the plural."""


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

    If the group has few and short titles, the name lists them. Otherwise it consists of words and
    short phrases that are frequent in the group's titles and rare in those of its siblings.

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
    The weight of a word is the number of titles that contain it, times log(its share of the group's
    titles / its share of the siblings' titles). Titles that the name already covers count less.
    Titles without words, such as numbers, are added if most titles are of this kind.

    Examples
    --------
    >>> group_names([["The mill", "The sails of the mill"], ["The harbour", "Ferries"]])
    ['The mill, The sails of the mill', 'The harbour, Ferries']
    """
    groups = [[*filter(None, titles)] for titles in groups]
    phrases = [[dict(_phrases(title)) for title in titles] for titles in groups]
    having = [Counter(words for of in titles for words in of) for titles in phrases]
    in_all, n_all = sum(having, Counter[Words]()), sum(map(len, groups))
    wholes = [", ".join(dict.fromkeys(without_shared_prefix(titles))) for titles in groups]
    names = []
    for titles, of, own, whole in zip(groups, phrases, having, wholes, strict=True):
        n = len(titles)
        beside = n_all - n or n  # without siblings, a word is as likely as one that none has
        others = {words: (in_all[words] - own[words] + UNSEEN) / (beside + UNSEEN) for words in own}
        contrast = {words: max(0.0, log(own[words] / n / others[words])) for words in own}
        is_short = (len(whole) <= MAX_TITLE and wholes.count(whole) == 1) or n == 1
        bare = [title for title, words in zip(titles, of, strict=True) if not words]
        if is_short:
            names.append(first_words(whole).rstrip(" ,:;"))
        else:
            names.append(listed([_name(of, own, contrast), *bare * (2 * len(bare) > n)]))
    return [name or listed(titles) for name, titles in zip(names, groups, strict=True)]


def _name(
    titles: Sequence[Mapping[Words, str]], own: Counter[Words], contrast: Mapping[Words, float]
) -> str:
    """Choose words one by one, each with the phrase in which it occurs most often."""
    forms = defaultdict[Words, Counter[str]](Counter)
    for title in titles:
        for words, form in title.items():
            forms[words][form] += 1
    weight, name, used = [1.0] * len(titles), "", set[str]()
    free = sorted(words for words in own if len(words) == 1)
    while free:
        gain = dict.fromkeys(free, 0.0)
        for title, left in zip(titles, weight, strict=True):
            for words in gain.keys() & title.keys():
                gain[words] += left * contrast[words]
        best = max(free, key=lambda words: round(gain[words], 9))
        if gain[best] <= 0:
            break
        around = [
            words
            for words in own
            if best[0] in words and own[words] >= MOSTLY * own[best] and used.isdisjoint(words)
        ]
        phrase = max(around, key=lambda words: (own[words] * len(words) ** 0.5, words))
        free.remove(best)
        if phrase == best and best[0] in GENERIC:
            continue
        form = max(forms[phrase], key=lambda form: (forms[phrase][form], form))
        longer = f"{name}, {form}" if name else form
        if len(longer) <= MAX_TITLE:
            name, used = longer, used.union(phrase)
            weight = [w * COVERED if best in t else w for w, t in zip(weight, titles, strict=True)]
        free = [words for words in free if words[0] not in used]
    return name


def _phrases(title: str) -> Iterator[tuple[Words, str]]:
    """Yield the phrases between the stop words, numbers and punctuation of a title."""
    run = list[str]()
    pattern = PART if " " in title.strip() else OF_FILE
    for part in [*pattern.findall(title), ""]:
        is_word = len(part) > 1 and part[0].isalpha() and not any(map(str.isdigit, part))
        if is_word and part.lower() not in UNTITLED:
            run.append(part)
            continue
        for n in range(1, MAX_PHRASE + 1):
            for words in zip(*(run[i:] for i in range(n)), strict=False):
                yield tuple(map(_folded, words)), " ".join(words)
        if part not in "-_":  # between words of a file's name
            run = []


def _folded(word: str) -> str:
    """Return a word in lower case and, roughly, without the ending of an English plural.

    >>> [_folded(word) for word in ("Mills", "glass", "analysis", "bus")]
    ['mill', 'glass', 'analysis', 'bus']
    """
    word = word.lower()
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "siu" else word
