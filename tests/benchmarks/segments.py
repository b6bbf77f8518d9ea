"""How well parents follow the sections that authors gave their documents.

Three sets, each without the words of its headings: the files of tech_books by their sections, its
chapters by files and sections, and Markdown files, whose headings are blanked out. With structure,
the places of headings are known to the splitter and to `Optimal`; without it, to neither.
Beside LlamaIndex's `MarkdownNodeParser`, which gets the headings, `HierarchicalNodeParser` (its
middle level), and equal and random cuts into as many segments as ours.

Agreement: Pk (Beeferman, Berger and Lafferty 1999) and WindowDiff (Pevzner and Hearst 2002) by
nltk over words, lower is better, against the headings of one level and those above it; means over
documents with 95% bootstrap intervals. The cost of a tree: how many parents it has.

Usage: python tests/benchmarks/segments.py DATA MARKDOWN   (evaluation data, a folder of files)
"""

import json
import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
from llama_index.core import Document
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    MarkdownNodeParser,
    get_deeper_nodes,
)
from nltk.metrics.segmentation import pk, windowdiff

sys.path.insert(0, str(Path(__file__).parent))
from rows import embedded

from hierindex import load_embed_model, sentence_splitter
from hierindex.core.bounds import Caps
from hierindex.core.groupers import BySegment
from hierindex.core.membership import centroids, groups_of
from hierindex.core.rows import Rows
from hierindex.core.segments import Rule
from hierindex.embed.embedder import Embedder
from hierindex.hierarchy.growth import _headings
from hierindex.hierarchy.hierarchy import MAX_CHILDREN, MAX_TOKENS, SUMMARY_TOKENS
from hierindex.read.markdown import markdown_headings
from hierindex.record import HEADINGS, SECTION, Heading

CAPS = Caps(MAX_TOKENS, MAX_CHILDREN)
SMALL = 2  # chunks; a section of as many shares its parent with its siblings


@dataclass(frozen=True)
class Marked:
    """A text without the words of its headings, which stand at their places."""

    name: str
    text: str
    headings: Sequence[Heading]

    @cached_property
    def words(self) -> list[int]:
        return [match.start() for match in re.finditer(r"\S+", self.text)]

    def starts(self, depth: int) -> list[int]:
        """Words that sections of at most a depth begin with."""
        return self.at([h.start for h in self.headings if h.level <= depth])

    def at(self, places: Iterable[int]) -> list[int]:
        """Words that follow places, without the first word."""
        return sorted({bisect_left(self.words, place) for place in places} - {0, len(self.words)})


def files(folder: Path) -> list[Marked]:
    documents = [json.loads(line) for line in (folder / "tech_books/documents.jsonl").open()]
    return [Marked(d["doc_id"], d["text"], list(sections_of(d))) for d in documents]


def sections_of(document: dict) -> Iterator[Heading]:
    for section in document["sections"]:
        yield Heading(len(section["path"]), section["path"][-1], section["start"])


def chapters(folder: Path) -> list[Marked]:
    """The files of each chapter as one document."""
    rows = [json.loads(line) for line in (folder / "tech_books/documents.jsonl").open()]
    found = []
    for chapter, group in groupby(rows, key=lambda d: d["chapter_id"]):
        text, headings = "", [Heading(1, chapter, 0)]
        for document in group:
            headings += [
                Heading(h.level + 1, h.title, h.start + len(text)) for h in sections_of(document)
            ]
            text += document["text"] + "\n\n"
        found.append(Marked(chapter, text, headings))
    return found


def markdown(folder: Path) -> list[Marked]:
    """Files whose headings are blanked out."""
    found = []
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        headings = list(markdown_headings(text))
        for heading in headings:
            line = re.compile(r"[^\n]*(\n[=-]+[ \t]*$)?", re.M).match(text, heading.start)
            text = text[: heading.start] + re.sub(r"\S", " ", line[0]) + text[line.end() :]
        found.append(Marked(path.name, text, headings))
    return found


@dataclass(frozen=True)
class Chunked:
    """The chunks of a document as rows, with the places where they begin."""

    marked: Marked
    rows: Rows
    places: np.ndarray


def chunked(documents: Sequence[Marked], *, structure: bool) -> list[Chunked]:
    model = load_embed_model()
    splitter = sentence_splitter(model)
    chunks = []
    for d in documents:
        known = {HEADINGS: [list(heading) for heading in d.headings]} if structure else {}
        chunks.append(splitter([Document(text=d.text, metadata=known)]))
    texts = [chunk.text for of in chunks for chunk in of]
    X, n_tokens = embedded(texts), Embedder(model).count_tokens(texts)
    ends = np.cumsum([0, *map(len, chunks)])
    found = []
    for document, of, start, end in zip(documents, chunks, ends, ends[1:], strict=False):
        heading = _headings([chunk.metadata.get(SECTION, "") for chunk in of])
        rows = Rows(X[start:end], n_tokens[start:end], np.zeros(end - start, int), heading=heading)
        found.append(Chunked(document, rows, np.array([chunk.start_char_idx for chunk in of])))
    return found


def levels(rows: Rows, rule: Rule, caps: Caps = CAPS) -> list[np.ndarray]:
    """First rows of the nodes of each level, as `SemanticHierarchy` makes them, of centroids."""
    starts = [np.arange(len(rows))]
    while (M := BySegment(rule, caps)(rows)) is not None:
        groups = groups_of(M)
        first = np.array([group[0] for group in groups])
        starts.append(starts[-1][first])
        n_tokens = [
            rows.n_tokens[g[0]] if len(g) == 1 else min(SUMMARY_TOKENS, rows.n_tokens[g].sum())
            for g in groups
        ]
        rows = Rows(
            centroids(M, rows.X),
            np.array(n_tokens),
            rows.document[first],
            rows.level + 1,
            rows.heading[first],
        )
    return starts


def by_markdown_parser(document: Marked) -> list[int]:
    """Places where nodes of LlamaIndex's parser begin, which gets headings of other words."""
    text, end = "", 0
    for i, heading in enumerate(document.headings):
        text += f"{document.text[end : heading.start]}\n{'#' * heading.level} Heading {i}\n"
        end = heading.start
    nodes = MarkdownNodeParser()([Document(text=text + document.text[end:])])
    found = [re.match(r"#+ Heading (\d+)$", node.text.split("\n")[0]) for node in nodes]
    return [document.headings[int(match[1])].start for match in found if match]


def by_hierarchical_parser(document: Marked) -> list[int]:
    """Places where nodes of LlamaIndex's parser begin, of 512 of 2048, 512 and 128 tokens."""
    parser = HierarchicalNodeParser.from_defaults(chunk_overlap=0)
    nodes = get_deeper_nodes(parser([Document(text=document.text)]), depth=1)
    places, end = [], 0
    for node in nodes:
        places.append(document.text.index(node.text, end))
        end = places[-1] + len(node.text)
    return places


def disagreement(truth: list[int], found: list[int], n: int) -> tuple[float, float]:
    """Pk and WindowDiff over half a mean section."""
    marks = ["".join("01"[word in at] for word in range(1, n)) for at in (set(truth), set(found))]
    half = min(max(2, round(n / (2 * (1 + len(truth))))), n - 1)
    return pk(*marks, half), windowdiff(*marks, half)


def crossed(document: Marked, starts: Sequence[int]) -> list[tuple[int, bool]]:
    """For each segment the highest level of a heading in it, 0 for none, and if it is torn.

    A segment is torn if it crosses a heading and holds only a part of a section of that level.
    """
    n = len(document.words)
    level = {0: 0, n: 0}
    for heading in document.headings:
        word = bisect_left(document.words, heading.start)
        level[word] = min(level.get(word, heading.level), heading.level)
    inner = sorted(level)
    found = []
    for start, end in pairwise([0, *starts, n]):
        within = inner[bisect_left(inner, start + 1) : bisect_left(inner, end)]
        highest = min((level[word] for word in within), default=0)
        torn = highest > 0 and any(level.get(word, 99) > highest for word in (start, end))
        found.append((highest, torn))
    return found


def small_sections(c: Chunked, first: np.ndarray) -> tuple[int, int, int]:
    """Number of sections of one or two chunks, those whole in a parent, and those not alone."""
    parent = np.searchsorted(first, np.arange(len(c.rows)), side="right")
    n = whole = shared = 0
    for section in np.split(np.arange(len(c.rows)), np.flatnonzero(c.rows.heading[1:]) + 1):
        if len(section) <= SMALL < len(c.rows):
            n += 1
            is_whole = parent[section[0]] == parent[section[-1]]
            whole += is_whole
            shared += is_whole and (parent == parent[section[0]]).sum() > len(section)
    return n, whole, shared
