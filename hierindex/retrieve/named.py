"""Documents that a question names, by their ids, file names or titles."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from operator import itemgetter
from typing import Any, NamedTuple

from hierindex.core.identity import file_of, name_of, wholes
from hierindex.node import TITLE
from hierindex.retrieve.known_questions import ABOUT_THE_WHOLE
from hierindex.retrieve.selection import WHOLE
from hierindex.store.filters import Filters, of_documents, prefilter
from hierindex.store.rows import names_in
from hierindex.store.snapshot import Snapshot, once
from hierindex.text.characters import folded
from hierindex.text.words import EVERY_STOP_WORD

MAX_DOCUMENTS = 10  # documents that a question names
MOST_SIMILAR = 3  # documents whose names are similar to one
LONGEST = 20  # words of a name
INSTEAD = "it"  # "this document" makes any question one about the whole
POSSESSIVE = "'s", "\u2019s"  # after a name that is not a document's
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
# A path whose last part has a suffix, but no address, and no abbreviation such as "e.g.".
FILE = re.compile(r"(?<![\w@:./-])(?=[\w./-]*\w\w)[\w./-]*\w\.[^\W\d_]\w{0,7}(?!\w)")
ID = re.compile(r"^\S*[\d_./]\S*$")  # no word and no title
ZEROS = re.compile(r"\b0+(?=\d)")
# Words of questions about the whole, which alone are no name.
ORDINARY = EVERY_STOP_WORD | {*WORD.findall(" ".join(ABOUT_THE_WHOLE).lower())}
SUFFIX = re.compile(r"\.[^\W\d_]\w{0,7}$")
NUMBER = re.compile(r"^\d+[\W_]+(?=[^\W_]+[\W_])")  # before several words, as in "03-chapter-iii"


class Named(NamedTuple):
    """The documents that a question names, and the question with "it" in place of their names.

    `unknown` has the file names in the question that no document has. `files` has the documents
    named by a file name with suffix, or by an id with a number or "_".
    """

    documents: tuple[str, ...]
    question: str
    unknown: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def named(question: str, snapshot: Snapshot) -> Named:
    """Find the documents of a snapshot that a question names; see `named_in`."""
    names = names_of_documents(snapshot)
    documents = {form: names[form] for _, _, form in _forms(question) if form in names}
    for name, of in documents.items():
        if len(of) > MAX_DOCUMENTS and len({*map(file_of, of)}) == 1:
            documents[name] = []  # a mailbox, of which ten e-mails would be no answer
    return named_in(question, documents)


def named_in(question: str, documents: Mapping[str, Sequence[str]]) -> Named:
    """Find the documents that a question names, at most ten.

    Some names are not recognised: names that are words for asking about a text, such as "overview";
    a number or a word in lower case without its suffix; and names followed by "'s".

    Parameters
    ----------
    question : str
    documents : mapping of str to sequence of str
        Ids by name, in the form of `names_of_documents`.

    Examples
    --------
    >>> documents = {"chapter 3 md": ["b/chapter-03.md"], "overview": ["overview.md"]}
    >>> found = named_in("Give an overview of chapter-03.md.", documents)
    >>> found.files, found.question
    (('b/chapter-03.md',), 'Give an overview of it.')
    >>> named_in("Give an overview of chapter-04.md.", documents).unknown
    ('chapter-04.md',)
    """
    found, rest, at = dict[str, bool](), list[str](), 0  # found: whether by a file name or id
    for start, stop, form in _forms(question):
        if start >= at and form in documents and _is_name(question, start, stop):
            found |= {each: _is_file(question[start:stop], each) for each in documents[form]}
            rest += [question[at:start], INSTEAD]
            at = stop
    rest.append(question[at:])
    others = (file for between_names in rest[::2] for file in FILE.findall(between_names))
    unknown = dict.fromkeys(file for file in others if _form(file) not in documents)
    files = [document for document in found if found[document]][:MAX_DOCUMENTS]
    return Named(tuple(found)[:MAX_DOCUMENTS], "".join(rest), tuple(unknown), tuple(files))


def unknown_names(question: str, snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the file names in a question that no document has.

    The value of each is a list of the ids of at most three documents with similar names, the most
    similar first.
    """
    unknown = named(question, snapshot).unknown
    return {file: similar_documents(file, snapshot) for file in unknown}


def similar_documents(name: str, snapshot: Snapshot) -> list[str]:
    """Return the ids of at most three documents with names similar to `name`, best first.

    Folders in the name are ignored.
    """
    documents = names_of_documents(snapshot)
    near = get_close_matches(_form(name.rpartition("/")[2]), documents)
    return [*dict.fromkeys(d for form in near for d in documents[form])][:MOST_SIMILAR]


@once
def names_of_documents(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the ids of documents by their names.

    Names are ids, and the titles and file names in the metadata of documents' summaries: unchanged,
    without folders, without the suffix, and without a leading number. They are written as words in
    lower case, separated by spaces. Cached: for 100,000 documents, 5 s.
    """
    given = {(whole, each) for each in snapshot.document_ids() for whole in wholes(each)}
    whole = prefilter(Filters((WHOLE,)))
    for row in snapshot.select("whole_document", "metadata", where=whole).to_pylist():
        names = names_in(json.loads(row["metadata"]))
        given |= {(name, row["whole_document"]) for name in names if name}
    named = set[tuple[str, str]]()
    for name, document in given:
        base = name.rpartition("/")[2]
        stem = SUFFIX.sub("", base)
        named |= {(each, document) for each in (name, base, stem, NUMBER.sub("", stem))}
    documents = defaultdict[str, list[str]](list)
    for name, document in sorted(named, key=itemgetter(1)):
        form = _form(name)
        if document not in documents[form][-1:]:
            documents[form].append(document)
    return dict(documents)


def titles_of_documents(snapshot: Snapshot, documents: list[str] | None = None) -> dict[str, str]:
    """Return the titles in the metadata of documents, by default of all documents."""
    where = snapshot.of_each_document
    if documents is not None:
        where &= of_documents(documents)
    rows = snapshot.select("documents", "metadata", where=where)
    titles = dict[str, str]()
    for row in rows.to_pylist():
        if title := title_in(row):
            titles |= dict.fromkeys(row["documents"], title)
    return titles


def title_in(row: dict[str, Any]) -> str | None:
    """Return the title of a row's document from its metadata, or None."""
    title = json.loads(row["metadata"]).get(TITLE)
    return " ".join(title.split()) if isinstance(title, str) else None


def _forms(question: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and form of each run of words, the longest first at each start."""
    words = [*WORD.finditer(question)]
    for i, first in enumerate(words):
        for end in range(min(i + LONGEST, len(words)), i, -1):
            start, stop = first.start(), words[end - 1].end()
            yield start, stop, _form(question[start:stop])


def _form(name: str) -> str:
    """Return a name in the form of `names_of_documents`."""
    return ZEROS.sub("", " ".join(WORD.findall(folded(name).lower())))


def _is_file(name: str, document: str) -> bool:
    """Return whether a name is a file name, or an id that is neither a word nor a title."""
    names = {name_of(each).lower() for each in wholes(document)}
    has_suffix = FILE.fullmatch(name) is not None and name.lower().rpartition("/")[2] in names
    return has_suffix or (name.lower() == document.lower() and ID.search(name) is not None)


def _is_name(question: str, start: int, stop: int) -> bool:
    text = question[start:stop]
    if question.startswith(POSSESSIVE, stop) and not FILE.fullmatch(text):
        return False
    if text.isalpha():
        return start > 0 and text[0].isupper()
    words = set(WORD.findall(text.lower()))
    return not words <= ORDINARY and not all(map(str.isdecimal, words))
