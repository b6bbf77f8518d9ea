"""What a cache holds: vectors, texts that models wrote, and readings of files."""

import json
import zlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hierindex.cache.cache import ALWAYS, Cache, Entry
from hierindex.core.arrays import Floats1d, Floats2d
from hierindex.core.identity import digest, hash_text

LEVEL = 1  # of compression; higher ones save little, and take longer than reading some files


@dataclass(frozen=True)
class Vectors:
    """Unit vectors by embedded text and model, so that one text always has bit-identical ones.

    Parameters
    ----------
    cache : Cache
    model : str or None
        Fingerprint of the embedding model; without one, nothing is kept.
    texts : Mapping[str, str]
        The text of the node whose vector it is, by what is embedded of it, if that is more.
    """

    cache: Cache
    model: str | None
    texts: Mapping[str, str] = field(default_factory=dict)

    def recall(self, embedded: Sequence[str]) -> dict[str, Floats1d]:
        """Return the known vectors by text, each (n_dims,) float32."""
        keys = self._keys(embedded)
        found = self.cache.recall([*keys])
        return {keys[key]: np.frombuffer(x, dtype=np.float32) for key, x in found.items()}

    def keep(self, embedded: Sequence[str], X: Floats2d) -> None:
        """Store the vectors of texts, (n_texts, n_dims)."""
        self.cache.keep(
            Entry(key, x.astype(np.float32).tobytes(), hash_text(self.texts.get(text, text)))
            for (key, text), x in zip(self._keys(embedded).items(), X, strict=False)
        )

    def _keys(self, embedded: Sequence[str]) -> dict[str, str]:
        if self.model is None:
            return {}
        return {digest("vector", self.model, text): text for text in embedded}


@dataclass(frozen=True)
class Texts:
    """Texts that models wrote: completions, by their prompts, and the summaries made of them."""

    cache: Cache

    def recall(self, key: str) -> str | None:
        """Return the completion under a key; None if there is none."""
        found = self.cache.recall([key]).get(key)
        return None if found is None else found.decode("utf-8", "surrogatepass")

    def keep(self, key: str, text: str) -> None:
        """Store a completion."""
        entry = Entry(key, text.encode("utf-8", "surrogatepass"))  # lone ones occur
        self.cache.keep([entry], is_costly=True)

    def assign(self, keys: Sequence[str], summary: str) -> None:
        """Note which summary completions were used for, so that they are deleted with it."""
        self.cache.mark(keys, hash_text(summary))

    def recall_summaries(self, keys: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return the summaries under these keys: the text and details of each."""
        found = self.cache.recall(keys)
        return {key: tuple(json.loads(value)) for key, value in found.items()}

    def keep_summaries(self, summaries: Mapping[str, tuple[str, str]]) -> None:
        """Store the texts and details of summaries by key, in one transaction."""
        self.cache.keep(
            (
                Entry(key, json.dumps(summary).encode(), hash_text(summary[0]))
                for key, summary in summaries.items()
            ),
            is_costly=True,
        )


@dataclass
class Readings:
    """JSON values that reading and splitting compute, by digests of their input."""

    cache: Cache
    _recent: set[str] = field(default_factory=set)

    def recall(self, key: str) -> Any:
        """Return the value under a key; None if there is none, or if it is damaged."""
        found = self.cache.recall([key]).get(key)
        if found is None:
            return None
        try:
            value = json.loads(zlib.decompress(found).decode("utf-8", "surrogatepass"))
        except (zlib.error, ValueError, TypeError):
            return None
        self._recent.add(key)
        return value

    def keep(self, key: str, value: Any) -> None:
        """Store a JSON value; a string says why nothing was read, and stays."""
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
        of = ALWAYS if isinstance(value, str) else None
        self.cache.keep([Entry(key, zlib.compress(data, LEVEL), of)])
        if of is None:
            self._recent.add(key)

    def recent(self) -> set[str]:
        """Return the keys of what was recalled and stored since the last call."""
        recent, self._recent = self._recent, set()
        return recent

    def note(self, document: str, keys: Set[str]) -> None:
        """Note that what is under these keys was read for a document, given its hash."""
        self.cache.mark(keys, hash_text(document))
