"""Checks of what nodes stand for: their documents, and the caps of their groups."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from hierindex.core.membership import Ints1d
from hierindex.verify.links import Links, Mask
from hierindex.verify.report import Findings
from hierindex.verify.tree import first_documents

SUMMARY_KINDS = ("extractive", "abstractive", "extractive_fallback")


def check_documents(
    links: Links, settings: Mapping[str, Any], *, one_per_document: bool
) -> Iterator[Findings]:
    """Check documents, kinds and sizes of groups.

    Nodes that may hold text of a deleted chunk are exempt: they wait to be grown again.

    Parameters
    ----------
    links : Links
    settings : Mapping
        Of the hierarchy; empty if they are not known.
    one_per_document : bool
        Whether each document has a summary, also one of a single chunk.
    """
    yield check_inherited(links)
    yield check_whole_documents(links)
    yield check_kinds(links)
    yield check_children(links, settings, one_per_document=one_per_document)


def check_inherited(links: Links) -> Findings:
    """The documents of a summary are those of its children, and each node has one, once."""
    found, n = Findings("documents"), max(len(links.document_ids), 1)
    found.checked = len(links)
    rows, documents = links.documents
    held, n_of = np.unique(rows * n + documents, return_counts=True)
    is_checked = (links.numbers("level") > 0) & ~links.incomplete & ~links.circular
    child, parent = links.edges
    down = _pairs(parent, child, (len(links), len(links)))
    above, inherited = (down @ _pairs(rows, documents, (len(links), n))).nonzero()
    expected = (above.astype(np.int64) * n + inherited)[is_checked[above]]
    own = held[is_checked[held // n]]
    without = np.setdiff1d(np.arange(len(links)), rows)
    found.add_all(without, links.id, lambda i: "it has no document")
    wrong = {
        "it names the document {} twice": held[n_of > 1],
        "it lacks the document {} of its children": np.setdiff1d(expected, own),
        "none of its children has its document {}": np.setdiff1d(own, expected),
    }
    for what, keys in wrong.items():
        found.add_all(
            keys,
            lambda k: links.id(k // n),
            lambda k, what=what: what.format(links.document_ids[k % n].as_py()),  # type: ignore[misc]
        )
    return found


def check_whole_documents(links: Links) -> Findings:
    """`whole_document` names the document whose chunks are those under a node and no higher one."""
    found = Findings("whole documents")
    document, n_documents = first_documents(links), len(links.document_ids)
    rows, documents = links.documents
    is_single = np.bincount(rows, minlength=len(links)) == 1
    is_chunk = links.numbers("level") <= 0
    unsound = np.zeros(n_documents + 1, dtype=np.bool_)  # the last one is that of no document
    broken = links.incomplete | links.circular | ~links.is_any("stale", "")
    unsound[documents[broken[rows]]] = True
    under = _chunks_under(links, is_single, is_chunk)
    n_under = np.diff(under.indptr)
    n_chunks = np.bincount(document[is_chunk & is_single], minlength=n_documents + 1)
    child, parent = links.edges
    is_highest = np.ones(len(links), dtype=np.bool_)
    is_highest[child[is_single[parent]]] = False
    claimed = links.document_numbers(links.table["whole_document"])
    claims = ~links.is_any("whole_document", "")
    found.checked = int(claims.sum())
    sound = ~unsound[document]
    right = claims & is_single & (claimed == document) & is_highest
    by_hierarchy = ~is_chunk | (links.numbers("source_similarity") >= 0)
    whole = by_hierarchy & is_single & is_highest & (n_under == n_chunks[document])
    covered = _covered(under, np.flatnonzero(right), document, n_documents)
    wrong = {
        "it is not the highest node of its whole_document alone": claims & ~right,
        "it has some chunks of its whole_document, and no such node the others": (
            right & (covered[document] < n_chunks[document])
        ),
        "it has all chunks of its document, but no whole_document": whole & ~claims,
    }
    found.add_nodes(links.id, {what: nodes & sound for what, nodes in wrong.items()})
    return found


def _chunks_under(links: Links, is_single: Mask, is_chunk: Mask) -> csr_array:
    """Return which chunks are under each node of one document, (n_nodes, n_nodes) bool."""
    n = len(links)
    child, parent = links.edges
    inside = is_single[child] & is_single[parent] & ~links.in_cycle
    down = _pairs(parent[inside], child[inside], (n, n))
    chunks = np.flatnonzero(is_chunk & is_single)
    reached = _pairs(chunks, chunks, (n, n))
    under = reached
    while reached.nnz:
        reached = down @ reached
        reached.data[:] = 1
        under = under + reached
    under.sum_duplicates()
    return csr_array(under)


def _pairs(rows: Ints1d, columns: Ints1d, shape: tuple[int, int]) -> csr_array:
    """Return the matrix that is 1 at these places."""
    return csr_array((np.ones(len(rows), np.int32), (rows, columns)), shape=shape)


def _covered(under: csr_array, nodes: Ints1d, document: Ints1d, n_documents: int) -> Ints1d:
    """Return how many chunks of each document are under one of these nodes."""
    rows = under[nodes]
    of = np.repeat(document[nodes], np.diff(rows.indptr))
    chunks = np.unique(np.stack([of, rows.indices.astype(np.int64)]), axis=1)
    return np.bincount(chunks[0], minlength=n_documents + 1)


def check_kinds(links: Links) -> Findings:
    """Chunks are chunks, summaries of a known kind; similarity is a share, tokens are counted."""
    found = Findings("kinds")
    found.checked = len(links)
    is_chunk, similarity = links.numbers("level") <= 0, links.numbers("source_similarity")
    wrong = {
        "it has level 0, but is no chunk": is_chunk & ~links.is_any("kind", "chunk"),
        "the kind of the summary is not known": ~is_chunk & ~links.is_any("kind", *SUMMARY_KINDS),
        "its similarity to the sources is not a share": ~(
            (similarity == -1) | ((similarity >= 0) & (similarity <= 1))
        ),
        "its number of tokens is negative": links.numbers("n_tokens") < 0,
        "what it lost is not known": ~links.is_any("stale", "", "child", "parent"),
    }
    found.add_nodes(links.id, wrong)
    return found


def check_children(
    links: Links, settings: Mapping[str, Any], *, one_per_document: bool
) -> Findings:
    """Summaries have two or more children, within the caps where these are known."""
    found = Findings("sizes of groups")
    child, parent = links.edges
    level = links.numbers("level")
    n_children = np.bincount(parent, minlength=len(links))
    tokens = np.bincount(parent, links.numbers("n_tokens")[child], minlength=len(links))
    fewest = np.where(one_per_document & (level == 1), 1, 2)
    is_capped = (level > one_per_document) & (n_children > 1)
    found.checked = int((level > 0).sum())
    is_summary = (level > 0) & ~links.incomplete
    wrong = {
        "it is a chunk, but has children": (level <= 0) & (n_children > 0),
        "it summarises fewer than two nodes": is_summary & (n_children < fewest),
    }
    for name, sizes in (("max_children", n_children), ("max_tokens", tokens)):
        if name in settings:
            what = f"its children exceed {name}={settings[name]}"
            wrong[what] = is_capped & (sizes > settings[name])
    found.add_nodes(links.id, wrong)
    return found
