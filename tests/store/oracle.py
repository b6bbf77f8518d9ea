"""What filters mean for a tree, said as plainly as can be: of every chunk under a node."""

from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters

from hierindex.store.filters import OF_NODE, filtered_by, holds
from hierindex.store.rows import row_of


def seen(node):
    """What filters see of a node."""
    return filtered_by(row_of(node))


class Oracle:
    """Which nodes of a tree pass filters."""

    def __init__(self, nodes):
        self.seen = {node.node_id: seen(node) for node in nodes}
        self._below = {n.node_id: [c.node_id for c in n.child_nodes or ()] for n in nodes}

    def chunks_under(self, node_id):
        """The chunks under a node, through any membership; a chunk is its own."""
        if self.seen[node_id]["level"] == 0:
            return [node_id]
        below = [child for child in self._below[node_id] if child in self.seen]
        return [chunk for child in below for chunk in self.chunks_under(child)]

    def each(self, filters, node_id):
        """Whether each chunk under a node passes, with the node's own place."""
        own = {key: self.seen[node_id][key] for key in OF_NODE}
        return [holds(filters, self.seen[chunk] | own) for chunk in self.chunks_under(node_id)]

    def passes(self, filters, node_id, *, partial=False):
        """Whether a node passes."""
        if each := self.each(filters, node_id):
            return any(each) if partial else all(each)
        return certainly(filters, {key: self.seen[node_id][key] for key in OF_NODE}) is True

    def passing(self, filters, **options):
        """Ids of the nodes that pass."""
        return {node_id for node_id in self.seen if self.passes(filters, node_id, **options)}


def passing(filters, nodes):
    """Ids of the nodes that pass."""
    return Oracle(nodes).passing(filters)


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
