"""Questions that count or list, and the documents that contain their words."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hierindex.core.identity import name_of
from hierindex.retrieve.named import NAMES, ORDINARY, documents_of, kind_of, titles_of_documents
from hierindex.retrieve.search import Search
from hierindex.store.filters import CHUNKS, Scope, of_documents
from hierindex.store.search import having
from hierindex.text.display import counted, shortened
from hierindex.text.words import EVERY_STOP_WORD, UNTITLED

if TYPE_CHECKING:
    import pyarrow as pa

MAX_TITLES = 40  # of a listing of all documents
MOST_WORDS = 12  # each is searched for alone if no chunk has all
DOCUMENT = re.compile(r"documents?|files?|dokumente?n?|datei(?:en)?|archivos?|documentos?", re.I)
EVERY = frozenset(  # words of questions for all documents
    "a all alle are available collection contain contains da contiene contienen der die do does "
    "diese dieser diesem el en es existen exist folder gibt has hat have hay here hier hold holds "
    "im in index indexed indice \u00edndice is la list los my of on sind the there this you".split()
)
SAYING = frozenset(  # what documents do, beside English fillers
    "cite cited cites cover covers deal deals refer refers behandeln beschreiben enthalten "
    "erwähnen erwähnt genannt handeln nennen stehen steht aparece aparecen hablan mencionan "
    "tratan".split()
)
ASKS = re.compile(
    r"\bhow\s+many\b|\bwie\s?viele[nr]?\b|\bcu[a\u00e1]nt[ao]s\b"
    r"|(?:^|[.:?!]\s)\W*(?:(?:aus|bitte|from|in|please)\s+)?(?:"
    r"(?:count|list|liste|zähle?)\s"
    r"|(?:find|finde|get|gib|give|name|nenne?|show|suche?|zeige?)(?:\s+(?:me|mir|uns|us))?"
    r"\s+(?:a\s+list|all|alle|every|jede[ns]?|sämtliche)\b"
    rf"|(?:what|which|welche[mnrs]?|qu[e\u00e9])\s+(?=(?:[\w-]+\s+)?{NAMES}\s)"
    r"|which\s+(?:of\s+\w+\s+)?(?=[\w-]*[^\Wisu]s\s)"
    r"|welchen?\s+(?=\S+\s+(?:\w+en|sind|steht|wird)\s))",
    re.IGNORECASE,
)
"""The words of a question that say that it counts or lists, in English, German and Spanish."""

LACKS = re.compile(  # of documents that do not have the words
    rf"\b{NAMES}\s+(?:that\s+)?(?:do(?:es)?\s+not|don['\u2019]t)\s+(?:cite|contain|cover|discuss"
    r"|include|mention|name|refer\s+to)\b(?!.*\b(?:but|except)\b)"
    rf"|\b{NAMES}\s+(?:contain|mention|name)\s+(?:neither|no)\b"
    r"|\b(?:behandeln|enthalten|erwähnen|nennen)\b(?!.*\baber\b).*\bnicht\W*$",
    re.IGNORECASE,
)
OR = re.compile(r"\b(?:n?or|oder)\b", re.IGNORECASE)
IS_NAME = re.compile(NAMES, re.IGNORECASE)
PLURAL = "s", "en", "te"  # of a noun in `NAMES`
WORD = re.compile(r"(?i:e-mails?)|(?<![\w-])-[A-Za-z](?![\w-])|[^\W_]+(?:['\u2019.][^\W_]+)*")


class Asked(NamedTuple):
    """The words that a question counts or lists, and whether it asks for documents with them.

    There are no words if the question does neither, or has only words without content, or asks for
    all documents: then `for_documents` is true. `for_several` is true if the documents are asked
    for in the plural, so that a list of them is an answer, and `without` if they lack the words.
    `kind` is that of the files if only one is asked for, as in "which e-mails".
    """

    words: list[str]
    for_documents: bool
    for_several: bool
    without: bool = False
    kind: str | None = None

    @property
    def is_for_all(self) -> bool:
        """Whether the question asks for all documents."""
        return self.for_documents and not self.words

    @property
    def is_list(self) -> bool:
        """Whether a list is the answer: of all documents, or of those without some words."""
        return self.is_for_all or self.without


@dataclass(frozen=True)
class Listing:
    """The documents that contain the words of a question, or that lack them if it asks so.

    Parameters
    ----------
    text : str
        A sentence on the result that names up to ten documents.
    words : list of str
        Words that each of the chunks has, in any form that the index matches; or that the documents
        lack.
    lacking : list of str
        The other words of the question: no chunk that passes the filters contains all of `words`
        and one of these.
    chunks : int
        Number of chunks with all `words`, or of the documents that lack them.
    documents : dict of str to int
        Number of these chunks by document, in the order of `text`.
    """

    text: str
    words: list[str]
    lacking: list[str]
    chunks: int
    documents: dict[str, int]


def listing(search: Search) -> Listing | None:
    """List the documents that contain the words of a question that counts or lists, or lack them.

    If no chunk contains all words, the chunks with the rarest word are listed, narrowed by the
    other words that occur together with it.

    Parameters
    ----------
    search : Search
        Its filters are evaluated on each chunk; its snapshot exists.

    Returns
    -------
    Listing or None
        None if the question does not count or list, or has no words but question words and does
        not ask for all documents.
    """
    asked, for_documents, _, without, kind = asked_of(search.question)
    if not (asked or for_documents):
        return None
    of = documents_of(kind, search.snapshot) if kind else []
    if kind and (of or not asked):
        noun, where = kind, CHUNKS & of_documents(of)
    else:
        noun, where = "document", CHUNKS  # where no file is an e-mail, texts may be
    scope = search.snapshot.scope(search.filters, where, columns=("documents",))
    passing = " with the filters" * bool(search.filters)
    if not asked:
        return _every_document(scope, noun, passing)
    if for_documents and without:
        last = "or" if OR.search(search.question) else "and"
        return _documents_without(scope, asked, last, noun, passing)
    words, absent, rows = asked, list[str](), _chunks(scope, asked)
    if not rows.num_rows:
        alone = {word: _chunks(scope, [word]).num_rows for word in asked}
        words, absent = [], [word for word in asked if not alone[word]]
        for word in sorted(asked, key=alone.__getitem__):
            if (found := _chunks(scope, [*words, word])).num_rows:
                words, rows = [*words, word], found
    documents = dict(_numbers(rows).most_common())
    beside = [word for word in asked if word not in (*words, *absent)]
    of_kind = "" if noun == "document" else f" of the {noun}s"
    parts = [f"no chunk{of_kind} has {_joined(absent, 'or')}"] if absent else []
    if words:
        chunks = f"{counted(rows.num_rows, 'chunk')}, titles and authors included"
        held_by = f"{counted(len(documents), noun)} ({chunks})"
        has = "has" if len(documents) == 1 else "have"
        together = " in one chunk" if len(words) > 1 else ""
        but = f", but not {_joined(beside, 'or')}" if beside else ""
        named = shortened([f"{document} ({n:,})" for document, n in documents.items()])
        parts.append(f"{held_by} {has} {_joined(words, 'and')}{together}{but}: {named}")
    text = f"{'with the filters, ' if passing else ''}{'; '.join(parts)}."
    return Listing(text[0].upper() + text[1:], words, [*absent, *beside], rows.num_rows, documents)


def asked_of(question: str) -> Asked:
    """Parse a question that counts or lists, without its question words.

    Nouns for any document, verbs such as "mention", and words with little content are dropped,
    unless no others are left.
    """
    asks = ASKS.search(question)
    rest = WORD.findall(question[asks.end() :]) if asks else []
    names = [*filter(IS_NAME.fullmatch, rest[:3])]
    of_kind = [*filter(kind_of, rest[:3])] if names else []
    kind = kind_of(of_kind[0]) if of_kind else None
    words = {word.lower(): word for word in rest if word not in (*names, *of_kind)}
    if names and words.keys() <= EVERY and (kind or DOCUMENT.fullmatch(names[0])):
        return Asked([], True, True, kind=kind)
    words = {lower: word for lower, word in words.items() if lower not in EVERY_STOP_WORD}
    if len(words) > MOST_WORDS or words.keys() - SAYING <= ORDINARY:
        return Asked([], False, False)
    telling = [word for word in words.values() if word not in UNTITLED | SAYING]  # "US", not "us"
    several = " ".join(names).endswith(PLURAL)
    without = several and LACKS.search(question) is not None
    return Asked(telling or [*words.values()], bool(names), several, without, kind)


def _every_document(scope: Scope, noun: str, passing: str) -> Listing:
    """List all documents of a scope, with their titles."""
    rows = _chunks(scope, [])
    documents = _numbers(rows)
    shown = [*documents][:MAX_TITLES]
    titles = titles_of_documents(scope.snapshot, shown)
    titles = {each: title for each, title in titles.items() if title != name_of(each)}
    named = [f"- {titles[each]} ({each})" if each in titles else f"- {each}" for each in shown]
    named += [f"- and {more:,} more"] if (more := len(documents) - len(shown)) else []
    ends = ":" if named else " by file name."
    text = "\n".join([f"{counted(len(documents), noun)}{passing}{ends}", *named])
    return Listing(text, [], [], rows.num_rows, dict(documents))


def _documents_without(
    scope: Scope, words: Sequence[str], last: str, noun: str, passing: str
) -> Listing:
    """List the documents that have no chunk with all words, or with any if "or" joins them."""
    groups = [[word] for word in words] if last == "or" else [words]
    found = {document for group in groups for document in _numbers(_chunks(scope, group))}
    every = _numbers(_chunks(scope, []))
    documents = {document: n for document, n in every.items() if document not in found}
    of = counted(len(every), f"{noun}(s){passing}")
    has = f"{'has' if len(documents) == 1 else 'have'} no chunk with {_joined(words, last)}"
    named = f": {shortened([*documents])}" if documents else ""
    text = f"{len(documents):,} of {of} {has}{named}."
    return Listing(text, [*words], [], sum(documents.values()), documents)


def _chunks(scope: Scope, words: Sequence[str]) -> "pa.Table":
    """Return the chunks of a scope that contain all words."""
    if words:
        return having(scope, words)
    return scope.snapshot.select(*scope.columns, where=scope.where)


def _numbers(chunks: "pa.Table") -> Counter[str]:
    """Return the number of chunks of each document, by document id."""
    return Counter(sorted(each for of in chunks["documents"].to_pylist() for each in of))


def _joined(words: Sequence[str], last: str) -> str:
    *others, word = (f'"{word}"' for word in words)
    return f"{', '.join(others)} {last} {word}" if others else word
