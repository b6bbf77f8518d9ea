"""Documents that a question names, by their ids, file names or titles."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from hierindex.core.identity import name_of, wholes
from hierindex.node import FILE_NAME, TITLE
from hierindex.retrieve.known_questions import ABOUT_THE_WHOLE
from hierindex.store.filters import WHOLE, of_documents
from hierindex.store.rows import names_in
from hierindex.store.snapshot import Snapshot, once
from hierindex.text.characters import UNSPACED, folded
from hierindex.text.words import EVERY_STOP_WORD

MOST_SIMILAR = 3  # documents whose names are similar to one
LONGEST = 20  # words of a name
INSTEAD = "it"  # "this document" makes any question one about the whole
NAMES = (  # nouns that name any document
    r"(?:articles?|books?|chapters?|documents?|e-?mails?|files?|letters?|mails|meetings?|messages?"
    r"|notes?|pages?|papers?|passages?|pdfs|presentations|reports?|slides|spreadsheets|texts?"
    r"|workbooks"
    r"|artikeln?|berichten?|briefen?|datei(?:en)?|dokumente?n?|kapiteln?|nachricht(?:en)?"
    r"|notiz(?:en)?|seiten?|stellen?|texten?"
    r"|archivos?|cap\u00edtulos?|correos?|documentos?|libros?|p\u00e1ginas?|textos?)"
)
KINDS = {  # of files: the nouns for them, and how their names end
    "e-mail": (r"(?:e-?)?mails?|correos?", (".eml", ".msg")),
    "PDF": ("pdfs?", (".pdf",)),
    "presentation": ("presentations?|slides", (".pptm", ".pptx")),
    "spreadsheet": ("spreadsheets?|workbooks?", (".csv", ".tsv", ".xlsm", ".xlsx")),
}
# Words around a name that say what it is, as in "the meeting ES2009a".
BEFORE = re.compile(rf"(?:the )?(?:(?:{NAMES}|folder) )?$", re.IGNORECASE)
AFTER = re.compile(rf" (?:{NAMES}|folder)\b(?! ?\d)", re.IGNORECASE)
JOINT = re.compile(r"[\s,]*(?:(?:and|or|in|und|oder|y|o)\b)?(?: the)?\s*", re.IGNORECASE)
POSSESSIVE = "'s", "\u2019s"  # after a name that is not a document's
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
# A path whose last part has a suffix, but no address, and no abbreviation such as "e.g.".
FILE = re.compile(r"(?<![\w@:./-])(?!www\.)(?=[\w./-]*\w\w)[\w./-]*\w\.[^\W\d_]\w{0,7}(?!\w)")
ID = re.compile(r"^\S*[\d_./]\S*$")  # no word and no title
OF_THE = re.compile(  # a document
    r"\b(?:about|describe|explain|in|of|summari[sz]e)\s+(?:all(?: the)?|my|our|that|the|these|this)"
    r"\s+(.+)",
    re.IGNORECASE,
)
SEVERAL = re.compile(rf"archive|corpus|data|folder|index|library|project|repository|{NAMES}(?<=s)")
ZEROS = re.compile(r"\b0+(?=\d)")
# Words of questions about the whole, which alone are no name.
ORDINARY = EVERY_STOP_WORD | {*WORD.findall(" ".join(ABOUT_THE_WHOLE).lower())}
SUFFIX = re.compile(r"\.[^\W\d_]\w{0,7}$")
NUMBER = re.compile(r"^\d+[\W_]+(?=[^\W_]+[\W_])")  # before several words, as in "03-chapter-iii"


class Named(NamedTuple):
    """The documents that a question names, and the question with "it" in place of their names.

    `unknown` has the file names in the question that no document has. `files` has the documents
    named by an id or file name, without suffix only if it has a number or "_".
    """

    documents: tuple[str, ...]
    question: str
    unknown: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def named(question: str, snapshot: Snapshot) -> Named:
    """Find the documents of a snapshot that a question names; see `named_in`."""
    documents, folders = names_of_documents(snapshot), names_of_folders(snapshot)
    named = dict[str, list[str]]()
    forms = {form for _, _, form in _forms(question)}
    for form in forms.intersection(documents) | forms.intersection(folders):
        inside = tuple(f"{folder}/" for folder in folders.get(form, ()))
        in_folders = [d for d in snapshot.document_ids() if d.startswith(inside)] if inside else []
        named[form] = [*documents.get(form, ()), *in_folders]
    return named_in(question, named)


def named_in(question: str, documents: Mapping[str, Sequence[str]]) -> Named:
    """Find the documents that a question names.

    For each name, they are the documents with most of the names, so "chapter 3 in north" names one
    document of the folder "north". Some names are not recognised: words for asking about a text,
    such as "overview"; a number without a suffix; the first word; names followed by "'s"; and words
    in lower case, if their documents have none of the other names and no "and" joins them.

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
    names, at = list[tuple[int, int, str]](), 0
    for start, stop, form in _forms(question):
        if start >= at and form in documents and _is_name(question, start, stop):
            names.append((start, stop, form))
            at = stop
    names = [name for name in names if _belongs(name, names, question, documents)]
    rest, at = list[str](), 0
    for start, stop, _ in names:
        rest += [BEFORE.sub("", question[at:start], count=1), INSTEAD]
        at = kind.end() if (kind := AFTER.match(question, stop)) else stop
    rest.append(question[at:])
    others = (file for between_names in rest[::2] for file in FILE.findall(between_names))
    unknown = dict.fromkeys(file for file in others if _form(file) not in documents)
    n_names = Counter(each for _, _, form in names for each in documents[form])
    most = dict.fromkeys(
        each
        for _, _, form in names
        for each in documents[form]
        if n_names[each] == max(map(n_names.__getitem__, documents[form]))
    )
    said = [question[start:stop] for start, stop, _ in names]
    files = [each for each in most if any(_is_file(name, each) for name in said)]
    return Named(tuple(most), "".join(rest), tuple(unknown), tuple(files))


def _belongs(
    name: tuple[int, int, str],
    names: Sequence[tuple[int, int, str]],
    question: str,
    documents: Mapping[str, Sequence[str]],
) -> bool:
    """Return whether a name is no ordinary word in lower case beside other names."""
    start, stop, form = name
    is_word = question[start:stop].isalpha() and question[start:stop].islower()
    of = {*documents[form]}
    return not is_word or all(
        of.intersection(documents[other])
        or JOINT.fullmatch(question, after, start)
        or JOINT.fullmatch(question, stop, before)
        for before, after, other in names
    )


def kind_of(noun: str) -> str | None:
    """Return the kind of files that a noun names, as "e-mail" for "mails"; None for other nouns."""
    named = (kind for kind, (nouns, _) in KINDS.items() if re.fullmatch(nouns, noun, re.I))
    return next(named, None)


def documents_of(kind: str, snapshot: Snapshot) -> list[str]:
    """Return the ids of the documents that are of a kind by their ids or file names."""
    documents, endings = list[str](), KINDS[kind][1]
    rows = snapshot.select("documents", "metadata", where=snapshot.of_each_document)
    for row in rows.to_pylist():
        file = str(json.loads(row["metadata"]).get(FILE_NAME)).lower()
        for document in row["documents"]:
            if file.endswith(endings) or document.lower().endswith(endings):
                documents.append(document)
    return documents


def called(question: str, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the only document whose title or file name has the words that a question ends with.

    So "Give an overview of the manual." names the document "Brewtek E2 manual". A noun for a kind
    of files, such as "the e-mails", names all of them. Other nouns for several documents, such as
    "the project" and "the notes", name none.
    """
    if (found := OF_THE.search(question)) is None:
        return ()
    if kind := kind_of(found[1].strip(" .?!")):
        return tuple(documents_of(kind, snapshot))
    words = {*_form(found[1]).split()} - ORDINARY
    if not words or any(SEVERAL.fullmatch(word) for word in words):
        return ()
    paths = {_form(each) for each in snapshot.document_ids() if "/" in each}
    names = ((name, of) for name, of in names_of_documents(snapshot).items() if name not in paths)
    documents = {each for name, of in names if words <= {*name.split()} for each in of}
    return tuple(documents) if len(documents) == 1 else ()


def unknown_names(question: str, snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the file names in a question that no document has.

    The value of each is a list of the ids of at most three documents with similar names, the most
    similar first.
    """
    unknown = named(question, snapshot).unknown if FILE.search(question) else ()
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
    for row in snapshot.select("whole_document", "metadata", where=WHOLE).to_pylist():
        names = names_in(json.loads(row["metadata"]))
        given |= {(name, row["whole_document"]) for name in names if name}
    named = set[tuple[str, str]]()
    for name, document in given:
        base = name.rpartition("/")[2]
        stem = SUFFIX.sub("", base)
        named |= {(each, document) for each in (name, base, stem, NUMBER.sub("", stem))}
    documents = defaultdict[str, list[str]](list)
    for form, document in sorted({(_form(name), document) for name, document in named}):
        documents[form].append(document)
    return dict(documents)


@once
def names_of_folders(snapshot: Snapshot) -> dict[str, set[str]]:
    """Return the paths of folders by their names, with and without the folders around them."""
    inner = {document.rpartition("/")[0] for document in snapshot.document_ids()}
    folders = defaultdict[str, set[str]](set)
    for path in {each for folder in inner for each in (*PurePosixPath(f"{folder}/x").parents,)}:
        for name in {str(path), path.name} - {"", ".", "/"}:
            folders[_form(name)].add(str(path))
    return dict(folders)


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
    known = {document.lower(), *(SUFFIX.sub("", each) for each in names)}
    return has_suffix or (name.lower() in known and ID.search(name) is not None)


def _is_name(question: str, start: int, stop: int) -> bool:
    text = question[start:stop]
    if question.startswith(POSSESSIVE, stop) and not FILE.fullmatch(text):
        return False
    words = set(WORD.findall(text.lower()))
    is_word = text.isalpha() and (start == 0 or UNSPACED.search(text) is not None)
    return not (is_word or words <= ORDINARY or all(map(str.isdecimal, words)))
