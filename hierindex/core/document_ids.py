"""Ids of documents: the paths of files and, after "#", the names of parts of a file."""

import re
from itertools import accumulate

from hierindex.core.identity import digest

# A part of an e-mail or a mailbox; its name has no "/", so "C.eml#/a.txt" is a file in a folder.
PART = re.compile(r"(.*?\.(?:eml|mbox|msg))#([^/]+)", re.DOTALL | re.IGNORECASE)


def document_key(document_id: str) -> str:
    """Return a digest by which an index remembers a document that was deleted."""
    return digest("document", document_id)


def wholes(document_id: str) -> list[str]:
    """Return a document's id, and the ids of all that it is a part of, the file's last.

    The parts of a file are the e-mails of a mailbox and the attachments of an e-mail.

    >>> wholes("in/box.mbox#Tea.eml#menu.pdf")
    ['in/box.mbox#Tea.eml#menu.pdf', 'in/box.mbox#Tea.eml', 'in/box.mbox']
    >>> wholes("C#/notes#1.txt")
    ['C#/notes#1.txt']
    """
    if (held := PART.fullmatch(document_id)) is None:
        return [document_id]
    return [*accumulate([held[1], *held[2].split("#")], "{}#{}".format)][::-1]


def file_of(document_id: str) -> str:
    """Return the id of the file that a document is, or is a part of."""
    return wholes(document_id)[-1]


def name_of(document_id: str) -> str:
    """Return the name of a document's file, or of the part that the document is.

    >>> name_of("in/tea.eml#menu.pdf"), name_of("in/tea#1.txt")
    ('menu.pdf', 'tea#1.txt')
    """
    whole, *around = wholes(document_id)
    return whole[len(around[0]) + 1 :] if around else whole.rpartition("/")[2]
