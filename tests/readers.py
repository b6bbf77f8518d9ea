"""A reader that asks while others publish, in a thread or in a process of its own."""

from fakes import HashingEmbedding
from llama_index.core.schema import MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from store.trees import NOUNS

from hierindex import SemanticHierarchy

QUESTION = "the lantern met a falcon"
OF_A = MetadataFilters(filters=[MetadataFilter(key="documents", value=["a.txt"], operator="any")])
WAYS = [
    {},
    {"level": 0},
    {"level": [0, 1]},
    {"by": "hybrid"},
    {"by": "text", "level": 0},
    {"by": "context", "level": 0},
    {"mode": "traversal"},
    {"mode": "traversal", "level": 1},
    {"mode": "document"},
    {"mode": "document", "whole_documents": True},
    {"mode": "collapsed"},
    {"filters": OF_A},
    {"filters": OF_A, "mode": "document"},
]


def tree(word, n_chunks=12):
    """A tree every text of which has a word; no id is of two such trees."""
    chunks = [
        TextNode(
            text=f"{word} {NOUNS[i % 20]} met the lantern {i}. {word} falcon saw {NOUNS[i % 7]}.",
            start_char_idx=100 * i,
            end_char_idx=100 * i + 50,
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"{'ab'[i % 2]}.txt")},
        )
        for i in range(n_chunks)
    ]
    grow = SemanticHierarchy(embed_model=HashingEmbedding(), summary_tokens=40, max_children=3)
    return grow(chunks)


TREES = {word: tree(word) for word in ("old", "new")}


def words_of(found):
    """Of which trees they are."""
    texts = [node.node.get_content(MetadataMode.NONE) for node in found]
    return {word for text in texts for word in TREES if word in text}
