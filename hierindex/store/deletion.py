"""Deletion of rows and of the links to them."""

from collections.abc import Collection, Mapping, Set
from typing import Any

from hierindex.store.filters import Filters, incomplete, with_known_keys
from hierindex.store.rows import LOST_CHILD, LOST_PARENT, NAMES, as_table
from hierindex.store.snapshot import Snapshot
from hierindex.store.table import Table

LINKS = ("id", "parent_ids", "child_ids", "previous_id", "next_id", "level_max")


def delete_nodes(table: Table, node_ids: Collection[str] | None, filters: Filters | None) -> int:
    """Delete nodes by ids, by filters or by both, together with their links."""
    if not table.snapshot().exists:
        return 0
    with table.writing("delete", None):  # a later deletion must see the links that this one removes
        snapshot = table.snapshot()
        gone = ids_to_delete(snapshot, node_ids, filters)
        if gone:
            _delete_rows(gone, snapshot, table)
    return len(gone)


def ids_to_delete(
    snapshot: Snapshot, node_ids: Collection[str] | None, filters: Filters | None
) -> set[str]:
    """Return the ids of the nodes that a deletion by ids, by filters or by both removes.

    A deletion by filters alone also removes a summary if it loses a child and is derived from the
    document of a deleted chunk, because its text may contain that chunk.
    """
    if filters is not None:
        filters = with_known_keys(snapshot, filters, strict=True)
    columns = ["id", "level", "documents"]
    going = snapshot.rows(node_ids, filters, partial_summaries=True, columns=columns)
    gone = {row["id"] for row in going}
    if node_ids is None:
        documents = {each for row in going if row["level"] == 0 for each in row["documents"]}
        lost = snapshot.rows(incomplete(snapshot) - gone, columns=columns)
        gone |= {row["id"] for row in lost if not documents.isdisjoint(row["documents"])}
    return gone


def _delete_rows(gone: set[str], snapshot: Snapshot, table: Table) -> None:
    """Write the remaining rows again, without links to deleted rows; remove all other files."""
    linked, top = list[str](), 0
    for batch in snapshot.batches(*LINKS):
        for row in batch.to_pylist():
            if row["id"] not in gone:
                top = max(top, row["level_max"])
                beside = row["previous_id"], row["next_id"]
                if not gone.isdisjoint([*row["parent_ids"], *row["child_ids"], *beside]):
                    linked.append(row["id"])
    changed = [unlinked(row, gone, top) for row in snapshot.rows(linked, columns=NAMES)]
    rows = as_table(changed) if changed else None
    changes = {"nodes_removed": len(gone)}
    table.revise(rows, gone, snapshot.report(), changes=changes, purge=True)


def unlinked(row: Mapping[str, Any], gone: Set[str], top: int) -> dict[str, Any]:
    """Remove a row's links to deleted rows, and mark it as stale if it lost a parent or a child.

    The weights of the remaining parents are rescaled to sum to 1. A row that has lost all
    parents becomes a root: its `level_max` is `top`. A chunk that has lost a neighbour has no
    `document_hash`, so that the next update reads its document again.
    """
    pairs = zip(row["parent_ids"], row["parent_weights"], strict=True)
    parents = [(parent, weight) for parent, weight in pairs if parent not in gone]
    total = sum(weight for _, weight in parents)
    children = [child for child in row["child_ids"] if child not in gone]
    is_beside = bool({row["previous_id"], row["next_id"]} & gone)
    lost_parent = len(parents) < len(row["parent_ids"])
    stale = row["stale"]
    if len(children) < len(row["child_ids"]):
        stale = LOST_CHILD
    elif lost_parent:
        stale = stale or LOST_PARENT
    return {
        **row,
        "parent_ids": [parent for parent, _ in parents],
        "parent_weights": [weight / total for _, weight in parents],
        "child_ids": children,
        "document_hash": "" if is_beside else row["document_hash"],
        "previous_id": "" if row["previous_id"] in gone else row["previous_id"],
        "next_id": "" if row["next_id"] in gone else row["next_id"],
        "level_max": top if lost_parent and not parents else row["level_max"],
        "stale": stale,
    }
