"""Taking rows out of a tree without leaving links to them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llama_index.core.schema import NodeRelationship

from hierindex.store.schema import LOST_CHILD, LOST_PARENT, NAMES, as_table

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import AsyncTable

    from hierindex.store.snapshot import Snapshot

BESIDE = (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)
LINKS = ("id", "parent_ids", "child_ids", "previous_id", "next_id", "level_max")


async def unlink(gone: set[str], snapshot: "Snapshot", table: "AsyncTable") -> None:
    """Take the links to rows that will be deleted out of a table.

    Parameters
    ----------
    gone : set[str]
        Their ids.
    snapshot : Snapshot
        The table as it is.
    table : AsyncTable
        To be written to.
    """
    links = await snapshot.select(*LINKS)
    near = await snapshot.rows(linked_to(links, gone), columns=NAMES)
    if near:
        rows = as_table(unlinked(near, gone, highest_level(links, gone)))
        await table.merge_insert("id").when_matched_update_all().execute(rows)


def linked_to(rows: "pa.Table", gone: set[str]) -> list[str]:
    """Ids of the rows that stay and are linked to one that goes.

    Parameters
    ----------
    rows : Table
        With the columns `LINKS`.
    gone : set[str]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    going = pa.array(sorted(gone), pa.string())
    linked: set[str] = set()
    for name in ("parent_ids", "child_ids"):
        column = rows[name]
        lost = pc.is_in(pc.list_flatten(column), value_set=going)
        at = pc.filter(pc.list_parent_indices(column), lost)
        linked.update(rows["id"].take(at).to_pylist())
    for name in ("previous_id", "next_id"):
        linked.update(rows["id"].filter(pc.is_in(rows[name], value_set=going)).to_pylist())
    return sorted(linked - gone)


def highest_level(rows: "pa.Table", gone: set[str]) -> int:
    """The highest cut that a row which stays belongs to; 0 if none stays."""
    import pyarrow as pa
    import pyarrow.compute as pc

    stays = pc.invert(pc.is_in(rows["id"], value_set=pa.array(sorted(gone), pa.string())))
    return pc.max(pc.filter(rows["level_max"], stays)).as_py() or 0


def unlinked(rows: Sequence[dict[str, Any]], gone: set[str], top: int) -> list[dict[str, Any]]:
    """Rows without links to what is gone, marked as stale where they lost a parent or a child.

    The weights of the parents that are left sum to 1 again. A row that has lost all becomes a
    root: it belongs to every cut up to `top`.
    """
    return [_unlinked(row, gone, top) for row in rows]


def _unlinked(row: dict[str, Any], gone: set[str], top: int) -> dict[str, Any]:
    pairs = zip(row["parent_ids"], row["parent_weights"], strict=True)
    left = [(parent, weight) for parent, weight in pairs if parent not in gone]
    total = sum(weight for _, weight in left)
    children = [child for child in row["child_ids"] if child not in gone]
    lost_parent = len(left) < len(row["parent_ids"])
    stale = row["stale"]
    if len(children) < len(row["child_ids"]):
        stale = LOST_CHILD
    elif lost_parent:
        stale = stale or LOST_PARENT
    return {
        **row,
        "parent_ids": [parent for parent, _ in left],
        "parent_weights": [weight / total for _, weight in left],
        "child_ids": children,
        "previous_id": "" if row["previous_id"] in gone else row["previous_id"],
        "next_id": "" if row["next_id"] in gone else row["next_id"],
        "level_max": top if lost_parent and not left else row["level_max"],
        "stale": stale,
    }
