"""Words by language: abbreviations that do not end a sentence, stop words and stems."""

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from Stemmer import Stemmer, algorithms

LANGUAGE = "language"  # metadata key of the code of a document's language

LISTS = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
LAST = re.compile(r"(?:^|[\s(\"'\u00ab\u201e\u2019/])([^\W\d_][\w.]*)\.$")
UNIT = re.compile(r"\d\s*\w+\.$")
AROUND = 500  # characters of which the language is found


def _by_word(words_of: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Return the languages of each word, given the words of each language."""
    languages = defaultdict[str, set[str]](set)
    for language, words in words_of.items():
        for word in words:
            languages[word].add(language)
    return languages


ABBREVIATED_IN = _by_word({code: words.split() for code, words in LISTS["abbreviations"].items()})
LANGUAGE_NAMES: dict[str, str] = LISTS["names"]
"""English names of languages, by ISO 639 code."""
SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7af]"),
    "zh": re.compile("[\u4e00-\u9fff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "ar": re.compile("[\u0600-\u06ff]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "hi": re.compile("[\u0900-\u097f]"),
}
OF_SCRIPT = 0.1  # least share of characters
MIN_SHARE = 0.2  # of function words; 41 Swedish pages have, in the median, 0.06 Dutch ones

WORD = re.compile(r"\w+")
STOP_WORDS = {code: frozenset(words.split()) for code, words in LISTS["stop_words"].items()}
"""Function words, by language code."""
UNSEARCHED, QUESTION_WORDS, ENGLISH_WORDS, FILLERS = (
    frozenset(LISTS["english"][name].split())
    for name in ("unsearched", "questions", "meaningful", "fillers")
)
TELLING = {"en": STOP_WORDS["en"]}
TELLING |= {code: words - ENGLISH_WORDS for code, words in STOP_WORDS.items() if code != "en"}
"""Words by which a language is told."""
LANGUAGES_OF = _by_word(TELLING)
EVERY_STOP_WORD = frozenset[str]().union(*TELLING.values())
UNTITLED = EVERY_STOP_WORD | FILLERS
"""Words that are not part of a title."""
CHINESE_QUESTION_CHARACTERS = frozenset("什么麼怎哪谁誰何几幾吗嗎呢")
"""Characters of words that merely ask."""


def is_abbreviated(text: str, at: int) -> bool:
    """Return whether an abbreviation before an offset means that the sentence continues.

    After a number, an abbreviation may be a unit, which can end a sentence.

    >>> is_abbreviated("De brug is dicht, zei dhr. Jansen tegen de krant.", 27)
    True
    """
    before = text[max(0, at - 20) : at].rstrip()
    found = LAST.search(before)
    if found is None or UNIT.search(before):
        return False
    languages = ABBREVIATED_IN.get(found[1].lower())
    return (
        languages is not None and language_of(text[max(0, at - AROUND) : at + AROUND]) in languages
    )


def language_of(text: str) -> str:
    """Return the code of the most likely language of a text, or "en" by default.

    The most frequent function words decide. Without function words, the script decides if at least
    a tenth of the characters are in it.

    >>> language_of("De brug is dicht, zei dhr. Jansen gisteren tegen de krant.")
    'nl'
    >>> language_of("Price of van door?"), language_of("橋はいつ閉まりますか")
    ('en', 'ja')
    """
    return _identified(text)[0]


def known_language(text: str) -> str:
    """Return a text's language, or "" if neither function words nor script identify it.

    >>> known_language("Wann fährt das Schiff zur Insel?"), known_language("Los Angeles")
    ('de', '')
    """
    code, is_sure = _identified(text)
    return code if is_sure else ""


def _identified(text: str) -> tuple[str, bool]:
    """Return the most likely language of a text, and whether it is sure."""
    words = WORD.findall(text.lower())
    function_words = [(word, LANGUAGES_OF[word]) for word in words if word in LANGUAGES_OF]
    n = Counter(code for _, codes in function_words for code in codes)
    code = max(TELLING, key=lambda code: n[code])
    n_distinct = len({word for word, codes in function_words if code in codes})
    if n_distinct >= 2 and n[code] >= MIN_SHARE * len(words):
        return code, True
    for of_script, script in SCRIPTS.items():
        if len(script.findall(text)) > OF_SCRIPT * len(text):
            return of_script, True
    return code, False


def is_foreign(metadata: Mapping[str, Any], language: str) -> bool:
    """Return whether a node's language is another one; False if either language is unknown.

    >>> is_foreign({"language": "de-AT"}, "en"), is_foreign({"language": ["de", "en"]}, "en")
    (True, False)
    >>> is_foreign({"language": "java"}, "en"), is_foreign({"language": "de"}, "")
    (False, False)
    """
    given = metadata.get(LANGUAGE) or []
    codes = map(str, given if isinstance(given, list) else [given])
    known = {re.split("[-_]", code.lower())[0] for code in codes} & LANGUAGE_NAMES.keys()
    if "ja" in known:
        known |= {"zh"}  # as a question without kana is taken for
    return bool(language and known) and language not in known


def stemmer_of(language: str) -> Stemmer:
    """Return Snowball's stemmer for a language, or the English one by default."""
    name = LANGUAGE_NAMES.get(language, "").lower()
    return Stemmer(name if name in algorithms() else "english")


def without_question_words(text: str) -> str:
    """Remove "what", "how" and the like, unless a text has no other words to search for.

    Words in capitals or quotation marks stay, because they may be names.

    >>> without_question_words("What does the WHO advise?"), without_question_words("Who is it?")
    ('does the WHO advise?', 'Who is it?')
    """
    kept = " ".join(
        word
        for place, word in enumerate(text.split())
        if word.strip("?!.,:;").lower() not in QUESTION_WORDS
        or not (word.islower() or (place == 0 and word.istitle()))
    )
    return text if UNSEARCHED.issuperset(WORD.findall(kept.lower())) else kept
