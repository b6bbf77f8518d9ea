"""The keys by which the metadata of an index can be filtered."""

import re
from collections import Counter

from llama_index.core.vector_stores.types import MetadataFilters

from hierindex.errors import InputError, nearest
from hierindex.store.failing import FILTERED
from hierindex.store.filters import DOCUMENTS, METADATA, OF_NODE, filtered_by, keys
from hierindex.store.prefilter import CHUNKS
from hierindex.store.table_snapshot import TableSnapshot

MOST_LISTED = 20
OURS = (DOCUMENTS, *OF_NODE)
WORD = re.compile(r"[\w.-]+")


async def check_keys(snapshot: TableSnapshot, filters: MetadataFilters) -> None:
    """Raise InputError if no chunk has one of the keys of filters; name those that there are.

    Reads digests alone, and the metadata of all chunks for the message.
    """
    for key in sorted(keys(filters)):
        if not await snapshot.has_key(key):
            there = [*await metadata_keys(snapshot), *OURS]
            listed, n_more = map(_quoted, there[:MOST_LISTED]), len(there) - MOST_LISTED
            more = f" and {n_more} more" if n_more > 0 else ""
            raise InputError(
                f"No chunk has the key {key!r}{nearest(key, map(_quoted, there))}; there are "
                f"{', '.join(listed)}{more}."
            )


async def metadata_keys(snapshot: TableSnapshot) -> list[str]:
    """Return the keys of the chunks' metadata, the most common first.

    One that could be taken for a key of ours has the prefix `metadata.`.
    """
    counts = Counter[str]()
    for row in (await snapshot.select(*FILTERED, where=CHUNKS)).to_pylist():
        values = filtered_by(row).items()
        counts.update(key for key, value in values if value is not None and _is_plain(key))
    return sorted(counts, key=lambda key: (-counts[key], key))


def _quoted(key: str) -> str:
    """Return a key, in quotes unless it is one word."""
    return key if WORD.fullmatch(key) else repr(key)


def _is_plain(key: str) -> bool:
    """Return whether a key is a user's, with the prefix only if it needs one."""
    user_key = key.removeprefix(METADATA)
    needs_prefix = user_key in OURS or user_key.startswith(METADATA)
    return key.startswith(METADATA) == needs_prefix
