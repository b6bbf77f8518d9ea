"""What filters mean for a tree, said as plainly as can be: of every chunk under a node."""

from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters

from hierindex.store.filters import OF_NODE, filtered_by, holds
from hierindex.store.schema import row_of


def seen(node):
    """What filters see of a node."""
    return filtered_by(row_of(node))


def chunks_under(node, by_id):
    """The chunks under a node, through any membership; a chunk is its own."""
    if row_of(node)["level"] == 0:
        return [node]
    children = [by_id[child.node_id] for child in node.child_nodes or () if child.node_id in by_id]
    return [chunk for child in children for chunk in chunks_under(child, by_id)]


def passes(filters, node, nodes, *, partial=False):
    """Whether a node passes: its own place, with the metadata of each chunk under it."""
    chunks = chunks_under(node, {n.node_id: n for n in nodes})
    own = {key: seen(node)[key] for key in OF_NODE}
    if not chunks:
        return certainly(filters, own) is True
    each = [holds(filters, seen(chunk) | own) for chunk in chunks]
    return any(each) if partial else all(each)


def passing(filters, nodes, **options):
    """Ids of the nodes that pass."""
    return {node.node_id for node in nodes if passes(filters, node, nodes, **options)}


def certainly(filters, own):
    """True or False, or None where chunks, which are not known, decide (Kleene's logic)."""
    if isinstance(filters, MetadataFilter):
        return holds(MetadataFilters(filters=[filters]), own) if filters.key in OF_NODE else None
    values = [certainly(each, own) for each in filters.filters]
    if filters.condition in (FilterCondition.OR, FilterCondition.NOT):
        either = True if True in values else None if None in values else False
        if filters.condition is FilterCondition.OR or either is None:
            return either
        return not either
    return False if False in values else None if None in values else True
