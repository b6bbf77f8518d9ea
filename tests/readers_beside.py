"""A reader of an index while others write to it."""

import hashlib
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from edited_index import MODEL
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode

from hierindex import HierarchyStore
from hierindex.errors import GenerationError

A_MOMENT = 0.01  # seconds between readings
COLUMNS = ("id", "text", "parent_ids", "child_ids")


@dataclass
class Seen:
    """What a reader has seen.

    `contents` are digests of all that was read of each generation: each must have one. `gone` are
    readings that a GenerationError ended. `mixtures` say what did not belong together.
    """

    contents: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    n_readings: int = 0
    gone: int = 0
    mixtures: list[str] = field(default_factory=list)

    @property
    def n_mixtures(self) -> int:
        """Readings of more than one state."""
        return len(self.mixtures) + sum(len(each) > 1 for each in self.contents.values())


def read(uri: Path) -> Seen:
    """Read an index again and again until there is a file `stop` beside it."""
    seen, stop, store = Seen(), uri.parent / "stop", None
    while not stop.exists():
        try:
            if store is None or seen.n_readings % 3 == 0:  # else that which is known
                newest = HierarchyStore(uri)
                store = newest.at(newest.snapshot())
            if store.snapshot().exists:
                _read_once(store, seen)
        except GenerationError:
            seen.gone += 1
            store = None
        time.sleep(A_MOMENT)
    return seen


def _read_once(store: HierarchyStore, seen: Seen) -> None:
    snapshot = store.snapshot()
    rows = snapshot.select(*COLUMNS).to_pydict()
    ids = {*rows["id"]}
    linked = {i for name in ("parent_ids", "child_ids") for row in rows[name] for i in row}
    if not linked <= ids:
        seen.mixtures.append(f"generation {snapshot.generation}: links to {linked - ids}")
    words = "keeper boat gate"
    for query in (
        VectorStoreQuery(query_str=words, mode=VectorStoreQueryMode.TEXT_SEARCH),
        VectorStoreQuery(MODEL.get_query_embedding(words)),
    ):
        found = {*store.query(query).ids}
        if not found <= ids:
            seen.mixtures.append(f"generation {snapshot.generation}: finds {found - ids}")
    content = repr(sorted(zip(*rows.values(), strict=True)))
    seen.contents[snapshot.generation].add(hashlib.sha256(content.encode()).hexdigest())
    seen.n_readings += 1
