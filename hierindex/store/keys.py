"""The keys by which the metadata of an index can be filtered."""

import re
import warnings
from collections import Counter

from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.errors import InputError, nearest
from hierindex.store.failing import FILTERED
from hierindex.store.filters import DOCUMENTS, OURS, PREFIX, filtered_by, keys, with_known
from hierindex.store.prefilter import CHUNKS
from hierindex.store.table_snapshot import TableSnapshot

MOST_LISTED = 20
WORD = re.compile(r"[\w.-]+")


async def with_known_keys(
    snapshot: TableSnapshot, filters: MetadataFilters, *, strict: bool = False
) -> MetadataFilters:
    """Return filters that match nothing by a key that no chunk has, and warn of it.

    The key `documents` is ours unless a chunk has it in its metadata. Reads digests alone, and the
    metadata of all chunks for the message of an error.

    Raises
    ------
    InputError
        If `strict`, and no chunk has one of the keys; it names those that there are.
    """
    asked = keys(filters)
    known = {key: key for key in asked if key in OURS or await snapshot.has_key(key)}
    unprefixed = DOCUMENTS.removeprefix(PREFIX)
    if unprefixed in asked:
        known.setdefault(unprefixed, DOCUMENTS)
    for key in sorted(asked - known.keys()) if snapshot.exists else ():
        if strict:
            raise InputError(_unknown(key, [*await metadata_keys(snapshot), *OURS]))
        warnings.warn(f"The filter on {key!r} matches nothing: no node has this key.", stacklevel=2)
    return with_known(filters, known)


async def metadata_keys(snapshot: TableSnapshot) -> list[str]:
    """Return the keys of the chunks' metadata, the most common first."""
    counts = Counter[str]()
    for row in (await snapshot.select(*FILTERED, where=CHUNKS)).to_pylist():
        values = filtered_by(row).items()
        counts.update(key for key, value in values if value is not None and key not in OURS)
    return sorted(counts, key=lambda key: (-counts[key], key))


def _unknown(key: str, there: list[str]) -> str:
    """Return the message of an error on a key, given those that there are."""
    listed, n_more = map(_quoted, there[:MOST_LISTED]), len(there) - MOST_LISTED
    more = f" and {n_more} more" if n_more > 0 else ""
    ours = PREFIX + key
    near = nearest(ours if ours in OURS else key, map(_quoted, there))
    return f"No chunk has the key {key!r}{near}; there are {', '.join(listed)}{more}."


def _quoted(key: str) -> str:
    """Return a key, in quotes unless it is one word."""
    return key if WORD.fullmatch(key) else repr(key)
