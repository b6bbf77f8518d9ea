"""Rows of a level: the arrays that are clustered, made from its nodes."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from llama_index.core.schema import BaseNode

from hierindex.core.membership import Floats2d, Ints1d
from hierindex.core.rows import NO_HEADINGS, Rows
from hierindex.hierarchy.nodes import Draft
from hierindex.record import SECTION, shared_section, titles_of


def headings_between(chunks: Sequence[BaseNode]) -> Ints1d:
    """Return the level of the highest heading between each chunk and the one before it.

    >>> from llama_index.core.schema import TextNode
    >>> paths = ["Results", "Results › Timing", "Results › Timing", "Outlook", ""]
    >>> headings_between([TextNode(metadata={"section": path}) for path in paths]).tolist()
    [1, 2, 0, 1, 1]
    """
    known = [chunk.metadata.get(SECTION) for chunk in chunks]
    sections = [section if isinstance(section, str) else "" for section in known]
    levels = [
        0 if before == after else 1 + len(titles_of(shared_section([before, after])))
        for before, after in pairwise(["", *sections])
    ]
    return np.array(levels, dtype=np.int64)


def level_rows(
    drafts: Sequence[Draft], X: Floats2d, level: int, heading: Ints1d | None = None
) -> Rows:
    """Return the rows of nodes; see `Rows` for the arrays. Without `heading`, there are none."""
    records = [draft.record for draft in drafts]
    number = {d: i for i, d in enumerate(dict.fromkeys(d for r in records for d in r.documents))}
    document = [
        number[record.documents[0]] if len(record.documents) == 1 else -1 - i
        for i, record in enumerate(records)
    ]
    n_tokens = np.array([record.n_tokens for record in records], dtype=np.int64)
    heading = NO_HEADINGS if heading is None else heading
    return Rows(X, n_tokens, np.array(document, dtype=np.int64), level, heading)
