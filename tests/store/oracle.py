"""What filters mean for a tree, said as plainly as can be: of every chunk under a node."""

from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters

from hierindex import Node
from hierindex.store.filters import OF_NODE, OURS, Filters, filtered_by
from hierindex.store.filters import holds as ours
from hierindex.store.rows import row_of


def seen(node):
    """What filters see of a node."""
    return filtered_by(row_of(Node.of(node)))


def holds(filters, values):
    """Whether values pass LlamaIndex's filters."""
    return ours(Filters.of(filters) or Filters(), values)


class Oracle:
    """Which nodes of a tree pass filters."""

    def __init__(self, nodes):
        self.seen = {node.node_id: seen(node) for node in nodes}
        self.below = {n.node_id: [c.node_id for c in n.child_nodes or ()] for n in nodes}
        chunks = [told for told in self.seen.values() if told["hierindex_level"] == 0]
        values = [item for told in chunks for item in told.items()]
        self.known = {*OURS, *(key for key, value in values if value is not None)}

    def chunks_under(self, node_id):
        """The chunks under a node, through any membership; a chunk is its own."""
        if self.seen[node_id]["hierindex_level"] == 0:
            return [node_id]
        below = [child for child in self.below[node_id] if child in self.seen]
        return [chunk for child in below for chunk in self.chunks_under(child)]

    def each(self, filters, node_id):
        """Whether each chunk under a node passes, with the node's own place."""
        own = {key: self.seen[node_id][key] for key in OF_NODE}
        chunks = self.chunks_under(node_id)
        return [self.certainly(filters, self.seen[chunk] | own, self.known) for chunk in chunks]

    def passes(self, filters, node_id, *, partial=False):
        """Whether a node passes."""
        if each := self.each(filters, node_id):
            return True in each if partial else {*each} == {True}
        return self.certainly(filters, self.seen[node_id], OF_NODE) is True

    def passing(self, filters, **options):
        """Ids of the nodes that pass."""
        return {node_id for node_id in self.seen if self.passes(filters, node_id, **options)}

    def certainly(self, filters, values, known):
        """True or False, or None where a key that is not known decides (Kleene's logic)."""
        if isinstance(filters, MetadataFilter):
            key = filters.key
            if key == "documents" and key not in self.known:
                key = "hierindex_documents"
            one = filters.model_copy(update={"key": key})
            return holds(MetadataFilters(filters=[one]), values) if key in known else None
        parts = [self.certainly(each, values, known) for each in filters.filters]
        if filters.condition in (FilterCondition.OR, FilterCondition.NOT):
            either = True if True in parts else None if None in parts else False
            if filters.condition is FilterCondition.OR or either is None:
                return either
            return not either
        return False if False in parts else None if None in parts else True


def passing(filters, nodes):
    """Ids of the nodes that pass."""
    return Oracle(nodes).passing(filters)
