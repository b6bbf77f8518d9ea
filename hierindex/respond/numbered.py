"""Nodes as a language model reads them: numbered passages between lines that none contains."""

from collections.abc import Iterator, Sequence
from itertools import count

from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, TextNode

from hierindex.core.identity import digest
from hierindex.node import TITLES_BETWEEN, shared_section, titles_of
from hierindex.respond.cited_text import numbers_in
from hierindex.text_node import from_text_node

N_HEX = 8  # of a boundary


class Passages:
    """The numbered passages that are read for one question.

    A passage stands between two equal lines, which end with its number: a digest of all texts,
    which stands in none of them. No number stands in brackets in a text, so a reference that a
    model copies from a passage cites nothing.

    Parameters
    ----------
    found : sequence of NodeWithScore
        In the order in which they are read.
    """

    def __init__(self, found: Sequence[NodeWithScore]) -> None:
        texts = [shown(node) for node in found]
        boundary = _boundary(texts)
        quoted = {number for text in texts for number in numbers_in(text)}
        free = (number for number in count(1) if number not in quoted)
        self.by_number: dict[int, NodeWithScore] = dict(zip(free, found, strict=False))
        self.nodes: list[NodeWithScore] = [
            _passage(each, f"==={boundary}===[{number}]") for number, each in self.by_number.items()
        ]


def _passage(found: NodeWithScore, line: str) -> NodeWithScore:
    """Return a node whose text stands between two lines."""
    node = TextNode(
        id_=found.node_id,
        text=f"{line}\n{shown(found)}\n{line}",
        metadata=found.metadata,
        excluded_llm_metadata_keys=[*found.metadata],
    )
    return NodeWithScore(node=node, score=found.score)


def shown(found: NodeWithScore) -> str:
    """Return a node's place, if it has a single one, and its text with its metadata."""
    place, text = _place(found.node), found.get_content(MetadataMode.LLM)
    return f"{place}\n{text}" if place else text


def _place(node: BaseNode) -> str:
    """Return the document, the section and the page of a node; empty if it has several.

    White space is collapsed, as titles come from documents.
    """
    spans = from_text_node(node).citations
    if len({span.document for span in spans}) != 1:
        return ""
    titles = titles_of(shared_section(span.section for span in spans))
    place = TITLES_BETWEEN.join([spans[0].document, *titles])
    pages = {span.page_label or span.page for span in spans} - {None}
    return " ".join(place.split()) + (f", page {pages.pop()}" if len(pages) == 1 else "")


def _boundary(texts: Sequence[str]) -> str:
    """Return hexadecimal digits that stand in none of the texts, the same for the same texts."""
    candidates: Iterator[str] = (digest("boundary", str(i), *texts)[:N_HEX] for i in count())
    return next(each for each in candidates if not any(each in text for text in texts))
