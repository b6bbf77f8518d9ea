"""What filters mean for a tree, said as plainly as can be: of every chunk under a node."""

import json
import math
import operator

from llama_index.core.vector_stores.types import FilterCondition, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import FilterOperator as Op

from hierindex import Node
from hierindex.store.filters import DOCUMENTS, OF_NODE, OURS

ORDERS = {Op.LT: operator.lt, Op.LTE: operator.le, Op.GT: operator.gt, Op.GTE: operator.ge}


def seen(node):
    """What filters see of a node."""
    node = Node.of(node)
    own = {key: getattr(node, key.removeprefix("hierindex_")) for key in OF_NODE}
    return {
        **node.source.get("metadata", {}),
        **json.loads(json.dumps(node.metadata)),
        DOCUMENTS: [*node.documents],
        **own,
    }


def holds(filters, values):
    """Whether values pass LlamaIndex's filters."""
    if isinstance(filters, MetadataFilter):
        return passes(filters, values.get(filters.key))
    results = [holds(each, values) for each in filters.filters]
    if filters.condition is FilterCondition.OR:
        return any(results)
    return not any(results) if filters.condition is FilterCondition.NOT else all(results)


def passes(one, found):
    """Whether a value passes a filter; None is a missing one."""
    if found is None:
        return one.operator in (Op.NE, Op.NIN, Op.IS_EMPTY)
    wanted = one.value
    many = wanted if isinstance(wanted, list) else [wanted]
    inside = found if isinstance(found, list) else [found]
    match one.operator:
        case Op.NE | Op.NIN:
            opposite = Op.EQ if one.operator is Op.NE else Op.IN
            return not passes(one.model_copy(update={"operator": opposite}), found)
        case Op.EQ if one.key == DOCUMENTS and isinstance(wanted, str):
            return wanted in found
        case Op.EQ:
            return same(found, wanted)
        case Op.IN if one.key != DOCUMENTS:
            return any(same(found, value) for value in many)
        case Op.IN | Op.ANY:
            return any(same(item, value) for item in inside for value in many)
        case Op.ALL:
            return all(any(same(item, value) for item in inside) for value in many)
        case Op.CONTAINS:
            return isinstance(found, list) and any(same(item, wanted) for item in found)
        case Op.IS_EMPTY:
            return found in ("", [])
        case Op.TEXT_MATCH:
            return isinstance(found, str) and str(wanted) in found
        case Op.TEXT_MATCH_INSENSITIVE:
            return isinstance(found, str) and str(wanted).upper() in found.upper()
    texts = isinstance(found, str) and isinstance(wanted, str) and "\ud800" not in wanted
    return (texts or (is_number(found) and is_number(wanted))) and ORDERS[one.operator](
        *((found, wanted) if texts else (float(found), float(wanted)))
    )


def is_number(value):
    return type(value) in (int, float) and math.isfinite(value)


def same(a, b):
    """Whether two values are equal; a number never equals a boolean."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b and isinstance(a, bool) == isinstance(b, bool)


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
