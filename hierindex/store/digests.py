"""Metadata as hexadecimal digests: what an index can look up without reading JSON.

A row lists one digest for each key that it has and one for each value under it. Whether a
key has a value is then whether the list has a digest, which a LABEL_LIST index answers, and
nothing that a user wrote enters the condition.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

from hierindex.store.filters import DOCUMENTS, METADATA

MOST_ITEMS = 64  # of a list that are looked up one by one; a root may stand on every document

Kind = Literal["has", "is", "item", "empty", "more", "node"]
Scalar = str | int | float | bool


def digests_of(node_id: str, metadata: Mapping[str, Any], documents: Sequence[str]) -> list[str]:
    """The digests of a row, distinct and sorted.

    `node` is of its id. Of its metadata, `has` says that the key is there, `is` what it is where
    that is a scalar, `item` what its list has, `empty` that the list has nothing, `more` that it
    has too many to tell.

    Parameters
    ----------
    node_id : str
    metadata : mapping of JSON values
        The user's, with those of the document.
    documents : sequence of str
        Ids of the documents that the row stands on.
    """
    named = {_of_user(key): value for key, value in metadata.items()} | {DOCUMENTS: list(documents)}
    of_values = {d for key, value in named.items() for d in _of_key(key, value)}
    return sorted({digest("node", node_id), *of_values})


def _of_user(key: str) -> str:
    """The name that a user's key has here, apart from our own `documents`."""
    return METADATA + key if key == DOCUMENTS or key.startswith(METADATA) else key


def of_filter(key: str) -> str:
    """The name that a filter's key has here; `metadata.` before a key says that it is a user's."""
    if not key.startswith(METADATA):
        return key
    return _of_user(key.removeprefix(METADATA))


def _of_key(key: str, value: Any) -> Iterator[str]:
    if value is None:  # as if the key were missing
        return
    yield digest("has", key)
    if isinstance(value, Scalar):
        yield digest("is", key, value)
    elif isinstance(value, list) and not value:
        yield digest("empty", key)
    elif isinstance(value, list) and len(value) > MOST_ITEMS:
        yield digest("more", key)
    elif isinstance(value, list):
        yield from (digest("item", key, i) for i in value if i is None or isinstance(i, Scalar))


@lru_cache(maxsize=2**16, typed=True)  # 1, 1.0 and True are one key of a dictionary
def digest(kind: Kind, key: str, value: Scalar | None = None) -> str:
    """32 hexadecimal digits; equal numbers have one digest, whatever their type."""
    parts = [part.encode("utf-8", "surrogatepass") for part in (kind, key, _written(value))]
    # The lengths keep ("ab", "c") and ("a", "bc") apart.
    return blake2b(b"".join(b"%d:%b" % (len(p), p) for p in parts), digest_size=16).hexdigest()


def _written(value: Scalar | None) -> str:
    match value:
        case None:
            return "nothing"
        case str():
            return f"text {value}"
        case bool():
            return f"truth {value}"
        case float() if math.isfinite(value) and value.is_integer():
            return f"number {int(value):x}"
        case int():
            return f"number {value:x}"
    return f"number {value!r}"


def has_any(digests: Iterable[str]) -> str:
    """The condition that a row lists one of these."""
    listed = ", ".join(f"'{d}'" for d in sorted(set(digests)))
    return f"array_has_any(digests, [{listed}])" if listed else "false"
