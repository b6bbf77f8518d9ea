"""Node ids that are digests of content, so that equal input has equal ids."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

N_HEX = 32  # 128 bits


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


def leaf_ids(namespace: str, documents: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return an id per chunk, from its document, its text and the occurrence of that text.

    It does not depend on the position, so inserting a chunk keeps the ids of those after it.

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
    """Return the id of a summary, from its children's ids and a digest of how its text is made."""
    return digest("parent", text_key, *children)
