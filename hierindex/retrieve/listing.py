"""Questions that count or list, and all documents that have their words."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from hierindex.retrieve.named import ORDINARY, names_of_documents
from hierindex.retrieve.question import Search, cuts
from hierindex.store.search import having
from hierindex.store.snapshot import Snapshot
from hierindex.text.stop_words import EVERY_STOP_WORD, UNTITLED

if TYPE_CHECKING:
    import pyarrow as pa

MOST = 10  # documents that the text of a listing names
MOST_WORDS = 12  # each is searched for alone if no chunk has all
NAMES = (  # nouns that name any document
    "(?:articles?|books?|chapters?|documents?|e-?mails?|files?|letters?|mails?|meetings?|messages?|"
    "notes?|pages?|papers?|passages?|reports?|sources?|texts?|transcripts?|"
    "artikeln?|berichten?|besprechung(?:en)?|briefen?|büchern?|datei(?:en)?|dokumente?n?|"
    "kapiteln?|nachricht(?:en)?|notiz(?:en)?|quellen?|seiten?|sitzung(?:en)?|stellen?|texten?)"
)
SAYS = (  # verbs whose subject may be a document
    "(?:about|cite[sd]?|describe[sd]?|(?:contain|cover|deal|discuss|mention|refer|talk)(?:e?d|e?s)?|"
    "behandeln|beschreiben|besprechen|besprochen|enthalten|erwähnen|erwähnt|geht|genannt|"
    "handeln|kommen|kommt|nennen|stehen|steht)"
)
PLURAL = r"(?:(?!(?:does|has|was)\b)[\w-]*[^\Wisu]s|children|men|people|women)"
START = r"(?:^|[.:;?!])\W{0,3}(?:bitte\s+|please\s+)?"
ASKS = re.compile(
    rf"\b(?:in\s+)?(?:how\s+many|wie\s?viele[nr]?)\b"
    rf"|{START}(?:count|list)\s+(?:all|any|each|every|me|my|our|the|(?={PLURAL}\b))"
    rf"|{START}(?:find|get|give|name|show)\s+(?:me\s+|us\s+)?(?:a\s+list|all|any|each|every)\b"
    rf"|{START}(?:from\s+|in\s+)?what\s+(?={NAMES}\s)"
    rf"|{START}(?:from\s+|in\s+)?which\s+(?:of\s+(?:my|our|the|these|those)\s+)?"
    rf"(?=(?:[\w-]+\s+)?{NAMES}\s|{PLURAL}\s)"
    rf"|{START}(?:liste|zähle?)\s"
    rf"|{START}(?:finde|gib|nenne?|suche?|zeige?)\s+(?:mir\s|uns\s)?(?:alle|jede[ns]?|sämtliche)\b"
    rf"|{START}(?:aus\s+|in\s+)?welche[mnrs]?\s+(?=(?:[\w-]+\s+)?{NAMES}\s)"
    rf"|{START}(?:aus|in)\s+welchen\s+(?=[\w-]*n\s)"
    rf"|{START}welche\s+(?=(?:[\w-]+\s+)?[\w-]*[enrs]\s+(?:\w+en|sind)\b)",
    re.IGNORECASE,
)
"""The words of a question that say that it counts or lists, in English and German."""

WITHIN = re.compile(r"\W*(?:aus|from|in)\b", re.IGNORECASE)
IS_NAME, IS_SAYING = (re.compile(pattern, re.IGNORECASE) for pattern in (NAMES, SAYS))
SUBJECT = re.compile(
    rf"\W*([\w-]+)(?=\s+(?:(?:do|that|which)\s+)?(?:are\s+about|{SAYS})\b)", re.IGNORECASE
)
FIRST = re.compile(r"\W*([\w-]+)")
WORD = re.compile(r"[^\W_]+(?:['\u2019.-][^\W_]+)*")


class Asked(NamedTuple):
    """The words that a question counts or lists, and whether it asks for the documents with them.

    There are no words if the question does neither, or has none that say something.
    """

    words: list[str]
    for_documents: bool


@dataclass(frozen=True)
class Listing:
    """The documents with chunks that have the words of a question.

    Parameters
    ----------
    text : str
        What was found in a sentence, which names ten documents.
    words : list of str
        Words that each of the chunks has, in any form that the index matches.
    lacking : list of str
        Other words of the question; no chunk that passes the filters has one beside `words`.
    chunks : int
        Number of chunks with all `words`.
    documents : dict of str to int
        Number of these chunks by document, the most first.
    """

    text: str
    words: list[str]
    lacking: list[str]
    chunks: int
    documents: dict[str, int]


def listing(search: Search) -> Listing | None:
    """List the documents that have the words of a question that counts or lists.

    If no chunk has all words, the chunks with the rarest are listed, and with those of the other
    words that stand beside it.

    Parameters
    ----------
    search : Search
        Its filters are evaluated on each chunk; its snapshot exists.

    Returns
    -------
    Listing or None
        None if the question does not count or list, or has no words beside those that ask.
    """
    asked = asked_of(search.question, search.snapshot).words
    if not asked:
        return None
    words, absent, rows = asked, list[str](), _chunks(search, asked)
    if not rows.num_rows:
        alone = {word: _chunks(search, [word]).num_rows for word in asked}
        words, absent = [], [word for word in asked if not alone[word]]
        for word in sorted(asked, key=alone.__getitem__):
            if (found := _chunks(search, [*words, word])).num_rows:
                words, rows = [*words, word], found
    counts = Counter(each for of in rows["documents"].to_pylist() for each in of)
    documents = dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
    beside = [word for word in asked if word not in (*words, *absent)]
    parts = [f"no chunk has {_joined(absent, 'or')}"] if absent else []
    if words:
        of = f"{_counted(rows.num_rows, 'chunk')} of {_counted(len(documents), 'document')}"
        has = f"{'has' if rows.num_rows == 1 else 'have'}{' all of' if len(words) > 1 else ''}"
        but = f", but not {_joined(beside, 'or')}" if beside else ""
        parts.append(f"{of} {has} {_joined(words, 'and')}{but}: {_named(documents)}")
    text = f"{'with the filters, ' if search.filters else ''}{'; '.join(parts)}."
    return Listing(text[0].upper() + text[1:], words, [*absent, *beside], rows.num_rows, documents)


def asked_of(question: str, snapshot: Snapshot) -> Asked:
    """Return what a question that counts or lists asks for, without the words that ask.

    Unless no others are left, words are dropped that name any document, or what says something
    if no document has such a name, verbs such as "mention", and words that say little.
    """
    asks = ASKS.search(question)
    if not asks:
        return Asked([], False)
    rest = question[asks.end() :]
    subject = (FIRST if WITHIN.match(asks[0]) else SUBJECT).match(rest)
    noun = subject[1] if subject and not _is_in_a_name(subject[1], snapshot) else ""
    names = {word for word in WORD.findall(rest)[:3] if IS_NAME.fullmatch(word)}
    words = [word for word in WORD.findall(rest) if word not in names]
    words = [*{w.lower(): w for w in words if w.lower() not in EVERY_STOP_WORD}.values()]
    for dropped in ({noun}, {*filter(IS_SAYING.fullmatch, words)}, UNTITLED):
        words = [word for word in words if word not in dropped] or words  # "US" is not "us"
    if len(words) > MOST_WORDS or {*map(str.lower, words)} <= ORDINARY:
        return Asked([], False)
    return Asked(words, bool(names or subject))


def _is_in_a_name(noun: str, snapshot: Snapshot) -> bool:
    """Return whether a document's name has a word that begins with a noun's singular."""
    import pyarrow.compute as pc

    singular = rf"\b{re.escape(noun.lower().removesuffix('s'))}"
    names = names_of_documents(snapshot)["name"]
    return bool(pc.any(pc.match_substring_regex(names, singular)).as_py())


def _chunks(search: Search, words: Sequence[str]) -> "pa.Table":
    """Return the chunks that have all words."""
    filters = search.filters_within(cuts([0]))
    return having(search.snapshot.scope(filters, columns=("documents",)), words)


def _named(documents: Mapping[str, int]) -> str:
    named = ", ".join(f"{document} ({n:,})" for document, n in islice(documents.items(), MOST))
    return named + (f" and {len(documents) - MOST:,} more" if len(documents) > MOST else "")


def _joined(words: Sequence[str], last: str) -> str:
    *others, word = (f'"{word}"' for word in words)
    return f"{', '.join(others)} {last} {word}" if others else word


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
