"""Checks of what each row holds: JSON, columns derived from others, the vector and the quotes."""

import json
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from hierindex.core.identity import hash_text
from hierindex.store.hashed_metadata import row_digests
from hierindex.store.rows import matched_words, node_of, quotes_in
from hierindex.verify.links import Links
from hierindex.verify.quotes import UNREADABLE, Quotes
from hierindex.verify.report import Check

if TYPE_CHECKING:
    import pyarrow as pa

TOLERANCE = 1e-3  # of the length of a vector of 32-bit floats


def wrong_columns(row: dict[str, Any]) -> dict[str, Any]:
    """Return the derived columns of a row that should have another value, with that value.

    They are `text_hash`, `words` and `digests`, which follow from the node's own columns.
    """
    source = json.loads(row["source"])["metadata"] if row["source"] else {}
    values = {**source, **json.loads(row["metadata"])}
    derived = {
        "text_hash": hash_text(row["text"]),
        "words": matched_words(values, row["text"]),
        "digests": row_digests(row["id"], values, row["documents"]),
    }
    return {name: value for name, value in derived.items() if row[name] != value}


class Rows:
    """Checks of each row for itself; the places that quotes name are noted in `quotes`.

    Parameters
    ----------
    links : Links
        Of the same rows.
    is_built : bool
        Whether all vectors are unit vectors; those of chunks may be a pipeline's own.
    """

    def __init__(self, links: Links, *, is_built: bool) -> None:
        self.quotes = Quotes(links)
        self._links = links
        self._is_built = is_built
        self._readable, self._derived = Check("readable"), Check("derived columns")
        self._vectors = Check("vectors")

    def check(self, batches: "Iterable[pa.RecordBatch]") -> Sequence[Check]:
        """Check rows with all columns of the table, in the order of `links`."""
        nodes = count()
        for batch in batches:
            self._check_vectors(batch)
            for row in batch.drop_columns(["vector"]).to_pylist():
                try:
                    self._check_row(next(nodes), row)
                except UNREADABLE as error:
                    line = f"{type(error).__name__}: {error}".splitlines()[0]
                    self._readable.add(row["id"], f"its columns are not those of a node: {line}")
        return self._readable, self._derived, self._vectors

    def _check_row(self, node: int, row: dict[str, Any]) -> None:
        self._readable.checked += 1
        _ = node_of(row).embedded_text
        if wrong := wrong_columns(row):
            what = f"{', '.join(wrong)} differ from what its other columns give"
            self._derived.add(row["id"], what)
        self._derived.checked += 1
        if row["record"]:
            self.quotes.add(node, row["level"], row["text"], quotes_in(row["record"]))

    def _check_vectors(self, batch: "pa.RecordBatch") -> None:
        column = batch["vector"]
        self._vectors.checked += len(column)
        there = column.is_valid().to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(there)
        X = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, column.type.list_size)
        length = np.zeros(len(column))
        length[rows] = np.linalg.norm(X.astype(np.float64), axis=1)
        must_be_unit = there & ((batch["level"].to_numpy() > 0) | self._is_built)
        wrong = {
            "it has no vector": ~there,
            "its vector is not finite": ~np.isfinite(length),
            "its vector's length is not 1": must_be_unit & (np.abs(length - 1) > TOLERANCE),
        }
        for what, marked in wrong.items():
            self._vectors.add_all(
                np.flatnonzero(marked),
                lambda i: str(batch["id"][i]),
                lambda _, what=what: what,  # type: ignore[misc]
            )
