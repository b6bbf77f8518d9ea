"""Ids that follow from content, so that the same input has the same ids everywhere."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

N_HEX = 32  # 128 bits


def digest(*fields: str) -> str:
    """Hexadecimal digest of fields, each prefixed with its length.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    hashed = sha256()
    for field in fields:
        data = field.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()[:N_HEX]


def leaf_ids(namespace: str, documents: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Id of each chunk, from its document, its text and which occurrence of that text it is.

    Not from its position: a chunk inserted before it does not rename it.

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
    """Id of a summary, from its children's ids and a digest of all that shapes its text."""
    return digest("parent", text_key, *children)
