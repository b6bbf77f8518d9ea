"""Ids of nodes, which are digests of content, and of documents, which may be parts of files."""

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b, sha256
from itertools import accumulate

N_HEX = 32  # 128 bits
# A part of an e-mail or a mailbox; its name has no "/", so "C.eml#/a.txt" is a file in a folder.
PART = re.compile(r"(.*?\.(?:eml|mbox|msg))#([^/]+)", re.DOTALL | re.IGNORECASE)


def digest(*fields: str) -> str:
    """Return a hexadecimal digest of length-prefixed fields.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    hashed = sha256()
    for field in fields:
        data = field.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()[:N_HEX]


def hash_text(text: str) -> int:
    """Return a hash of 64 bits, which another text may share.

    >>> hash_text("a") == hash_text("a"), hash_text("a") == hash_text("b")
    (True, False)
    """
    hashed = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(hashed.digest(), signed=True)


def leaf_ids(namespace: str, documents: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return an id for each chunk, from its document, its text and the occurrence of that text.

    Ids do not depend on positions, so the ids after an inserted chunk stay the same.

    >>> ids = leaf_ids("", ["a", "a", "a"], ["x", "y", "x"])
    >>> len(set(ids)), ids[1:] == leaf_ids("", ["a", "a"], ["y", "x"])
    (3, False)
    """
    seen: Counter[tuple[str, str]] = Counter()
    ids = []
    for key in zip(documents, texts, strict=True):
        ids.append(digest("leaf", namespace, *key, str(seen[key])))
        seen[key] += 1
    return ids


def parent_id(children: Sequence[str], text_key: str) -> str:
    """Return the id of a summary, from its children's ids and a digest of how it was written."""
    return digest("parent", text_key, *children)


def document_key(document_id: str) -> str:
    """Return the digest under which an index remembers a deleted document."""
    return digest("document", document_id)


def wholes(document_id: str) -> list[str]:
    """Return a document's id, followed by the ids of the documents that contain it, the file last.

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
    """Return the file name of a document, or the name of a part of a file.

    >>> name_of("in/tea.eml#menu.pdf"), name_of("in/tea#1.txt")
    ('menu.pdf', 'tea#1.txt')
    """
    whole, *around = wholes(document_id)
    return whole[len(around[0]) + 1 :] if around else whole.rpartition("/")[2]
