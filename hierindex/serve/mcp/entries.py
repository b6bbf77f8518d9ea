"""Nodes of an index as entries of a reply."""

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore

from hierindex.record import NodeRecord
from hierindex.retrieve.retrieved import placed
from hierindex.serve.mcp.replies import LONGEST_NAME, Ancestor, Entry, place_of
from hierindex.store.snapshot import Snapshot

MOST_PLACES = 3


def entry(node: BaseNode, n_characters: int) -> Entry:
    """Return a node with the first characters of its text and the first three places it cites."""
    record = NodeRecord.from_metadata(node.metadata)
    text, places = node.get_content(MetadataMode.NONE), record.citations
    made: Entry = {
        "id": node.node_id,
        "title": record.title[:LONGEST_NAME],
        "level": record.level,
        "text": text[:n_characters],
        "citations": [*map(place_of, places[:MOST_PLACES])],
    }
    if len(text) > n_characters:
        made["cut"] = True
    if len(places) > MOST_PLACES:
        made["more_citations"] = len(places) - MOST_PLACES
    if node.child_nodes:
        made["children"] = len(node.child_nodes)
    return made


async def ancestors(snapshot: Snapshot, node: BaseNode) -> list[Ancestor]:
    """Return the nodes from the root down to a node's strongest parent."""
    (found,) = await placed([NodeWithScore(node=node)], snapshot)
    rows = await snapshot.rows(found.path[::-1], columns=("id", "title", "level"))
    return [
        {"id": row["id"], "title": row["title"][:LONGEST_NAME], "level": row["level"]}
        for row in rows
    ]


async def title_of(snapshot: Snapshot, node_id: str) -> str:
    """Return the title of a node."""
    (row,) = await snapshot.rows([node_id], columns=("id", "title"))
    return str(row["title"][:LONGEST_NAME])
