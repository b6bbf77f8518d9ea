"""Hashed metadata, by which LanceDB filters rows without parsing their JSON.

Each row lists one digest for each metadata key and one for each value. A filter then tests
whether that list contains a digest, which a LABEL_LIST index answers, and no user input enters
the SQL condition.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

from hierindex.store.filters import DOCUMENTS

MOST_ITEMS = 64  # longest list whose items are hashed; a root may have every document

Kind = Literal["has", "is", "item", "empty", "more", "node"]
Scalar = str | int | float | bool


def row_digests(node_id: str, metadata: Mapping[str, Any], documents: Sequence[str]) -> list[str]:
    """Return the digests of a row, distinct and sorted.

    The kind `node` hashes the row's id. For each metadata key, `has` hashes the key, `is` a scalar
    value and `item` each item of a list; `empty` marks an empty list and `more` a list of more
    than `MOST_ITEMS` items, which are not hashed.

    Parameters
    ----------
    node_id : str
    metadata : mapping of JSON values
        The user's metadata merged with the document's.
    documents : sequence of str
        Ids of the row's source documents.
    """
    entries = {**metadata, DOCUMENTS: list(documents)}
    digests = {digest for item in entries.items() for digest in _entry_digests(*item)}
    return sorted({hash_entry("node", node_id), *digests})


def _entry_digests(key: str, value: Any) -> Iterator[str]:
    if value is None:  # equivalent to a missing key
        return
    yield hash_entry("has", key)
    if isinstance(value, Scalar):
        yield hash_entry("is", key, value)
    elif isinstance(value, list) and not value:
        yield hash_entry("empty", key)
    elif isinstance(value, list) and len(value) > MOST_ITEMS:
        yield hash_entry("more", key)
    elif isinstance(value, list):
        items = (item for item in value if item is None or isinstance(item, Scalar))
        yield from (hash_entry("item", key, item) for item in items)


@lru_cache(maxsize=2**16, typed=True)  # untyped, it would take 1, 1.0 and True for one argument
def hash_entry(kind: Kind, key: str, value: Scalar | None = None) -> str:
    """Return a digest of 32 hexadecimal digits; equal numbers of different types have the same."""
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
    """Return the SQL condition that a row lists at least one of these digests."""
    listed = ", ".join(f"'{d}'" for d in sorted(set(digests)))
    return f"array_has_any(digests, [{listed}])" if listed else "false"
