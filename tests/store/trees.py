"""A few documents whose sentences all differ, their chunks, and trees over them."""

import random
from functools import cache

from fakes import HashingEmbedding
from indexes import Hierarchy
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode

from hierindex import DocumentHierarchy, HierarchyStore, Node, RaptorHierarchy, SemanticHierarchy
from hierindex.summarize import ExtractiveSummarizer

NOUNS = (
    "harbour lantern orchard glacier copper thistle meadow granite sparrow violin "
    "saddle kettle compass barley anchor willow candle marble falcon ribbon"
).split()
AUTHORS = {"a.txt": "Ada", "b.txt": "Bo", "c.txt": "Ada", "d.txt": "Cy"}
SIZES = {"a.txt": 24, "b.txt": 12, "c.txt": 2, "d.txt": 9}  # sentences; c.txt is one chunk
CHUNK = 3  # sentences


def documents() -> list[Document]:
    rng = random.Random(0)
    return [
        Document(
            id_=name,
            text="  ".join(
                f"The {rng.choice(NOUNS)} of {name[0]}{i} met a {rng.choice(NOUNS)}, "
                f"a {rng.choice(NOUNS)} and a {rng.choice(NOUNS)}."
                for i in range(n_sentences)
            ),
            metadata={"author": AUTHORS[name]},
        )
        for name, n_sentences in SIZES.items()
    ]


def chunks(document: Document) -> list[TextNode]:
    """Chunks with their places in the document, each linked to those beside it."""
    sentences, nodes, at = document.text.split("  "), [], 0
    for i in range(0, len(sentences), CHUNK):
        text = "  ".join(sentences[i : i + CHUNK])
        node = TextNode(
            text=text,
            metadata=document.metadata,
            start_char_idx=at,
            end_char_idx=at + len(text),
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document.doc_id)},
        )
        if nodes:
            node.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(
                node_id=nodes[-1].node_id
            )
            nodes[-1].relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=node.node_id)
        nodes.append(node)
        at += len(text) + 2
    return nodes


def tree(hierarchy: type[Hierarchy] = SemanticHierarchy, **options) -> list[TextNode]:
    """Leaves and extracts of all levels, the semantic one with rows that pass up."""
    return [node.model_copy(deep=True) for node in _grown(hierarchy, **options)]


@cache
def _grown(hierarchy: type[Hierarchy], **options) -> list[TextNode]:
    caps = {} if hierarchy is DocumentHierarchy else {"max_children": 4}
    grow = hierarchy(embed_model=HashingEmbedding(), summary_tokens=60, **caps, **options)
    return grow([chunk for document in documents() for chunk in chunks(document)])


def record(node: TextNode) -> Node:
    return Node.of(node)


def linked(node: TextNode) -> set[str]:
    """Ids of the nodes that a node names, its document apart."""
    related = [r for kind, r in node.relationships.items() if kind != NodeRelationship.SOURCE]
    lists = [r if isinstance(r, list) else [r] for r in related]
    ids = {r.node_id for several in lists for r in several}
    return ids | {parent for parent, _ in record(node).parents}


HIERARCHIES = [SemanticHierarchy, RaptorHierarchy, DocumentHierarchy]


def seed_and_ids_of_trees() -> tuple[int, list[str]]:
    """The hash of a text, which differs by the seed of a process, and the ids of the trees."""
    return hash("a"), [node.node_id for kind in HIERARCHIES for node in tree(kind)]


def columns_of(store: HierarchyStore, *names: str) -> dict[str, list]:
    """Columns of a store's table, by name."""
    return store.snapshot().select(*names).to_pydict()


class CountingSummarizer(ExtractiveSummarizer):
    """Records the number of groups of each call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[int] = []

    def summarize(self, groups, budget, resources=None):
        self.calls.append(len(groups))
        return super().summarize(groups, budget, resources)
