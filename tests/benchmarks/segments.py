"""How well parents follow the sections that authors gave their documents.

Three sets of documents of 1,000 words and more, each without the words of its headings: files of
tech_books by their sections, its chapters by files and sections, and Markdown files whose headings
are blanked out. With structure, the places of headings are known to the splitter and to `Optimal`;
without it, to neither. Only the held-out third is cut; on the rest `crossing_costs` was chosen.
Beside LlamaIndex's `MarkdownNodeParser`, which gets the headings, its `HierarchicalNodeParser`
(nodes of 512 tokens), and as many equal and random segments as ours of level 1.

Agreement: Pk (Beeferman, Berger and Lafferty 1999) and WindowDiff (Pevzner and Hearst 2002) by
nltk over words, lower is better, against the headings of level 2, and of levels 2 and 3, where
level 1 is the title; means over documents with 95% bootstrap intervals.

Usage: python tests/benchmarks/segments.py DATA MARKDOWN   (evaluation data, a folder of files)
"""

import json
import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
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
from hierindex.core.membership import centroids, groups_of
from hierindex.core.optimal import Optimal
from hierindex.core.rows import NO_HEADINGS, Rows
from hierindex.core.segments import Rule, TargetSize
from hierindex.core.tree import BySegment
from hierindex.evaluate.measures import interval
from hierindex.models.embedder import Embedder
from hierindex.node import HEADINGS, Heading
from hierindex.read.markdown import read_markdown
from hierindex.tree.hierarchy import MAX_CHILDREN, MAX_TOKENS, SUMMARY_TOKENS
from hierindex.tree.leaves import headings_between

CAPS = Caps(MAX_TOKENS, MAX_CHILDREN)
ROWS = 6
OPTIMAL = Optimal(ROWS)
LEAST = 1_000  # words of a document, which has several parents
HEADER = """
| | segments | Pk, level 2 | WindowDiff | Pk, levels 2 and 3 | WindowDiff | cross | tear |
|---|---|---|---|---|---|---|---|"""
TITLE_LINE = re.compile(r"[^\n]*(\n[=-]+[ \t]*$)?", re.M)


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
        with path.open("rb") as file:
            text, _, headings = read_markdown(file)
        for heading in headings:
            line = TITLE_LINE.match(text, heading.start)
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
        arrays = X[start:end], n_tokens[start:end], np.zeros(end - start, int)
        rows = Rows(*arrays, heading=headings_between(of))
        found.append(Chunked(document, rows, np.array([chunk.start_char_idx for chunk in of])))
    return found


def levels(rows: Rows, rule: Rule) -> list[np.ndarray]:
    """First rows of the nodes of each level, as `SemanticHierarchy` makes them, of centroids."""
    starts = [np.arange(len(rows))]
    while (M := BySegment(rule, CAPS)(rows)) is not None:
        groups = groups_of(M)
        first = np.array([group[0] for group in groups])
        starts.append(starts[-1][first])
        n_tokens = [
            rows.n_tokens[g[0]] if len(g) == 1 else min(SUMMARY_TOKENS, rows.n_tokens[g].sum())
            for g in groups
        ]
        above = centroids(M, rows.X), np.array(n_tokens), rows.document[first]
        rows = Rows(*above, rows.level + 1, rows.heading[first])
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


def in_sections(document: Marked, found: list[int]) -> np.ndarray:
    """Numbers of segments, of those that cross a heading of level 2, and of those that tear a
    section, as they hold a part of it and something beside it.
    """
    n = len(document.words)
    level = {0: 0, n: 0}
    for heading in document.headings:
        (word,) = document.at([heading.start]) or [0]
        level[word] = min(level.get(word, heading.level), heading.level)
    places, ends = sorted(level), [0, *found, n]
    crossing = torn = 0
    for start, end in pairwise(ends):
        inside = places[bisect_left(places, start + 1) : bisect_left(places, end)]
        highest = min((level[word] for word in inside), default=n)
        crossing += highest <= 2
        torn += highest < n and any(level.get(word, n) > highest for word in (start, end))
    return np.array([len(found) + 1, crossing, torn])


def ways(
    documents: Sequence[Marked], with_structure: Sequence[Chunked], without: Sequence[Chunked]
) -> Iterator[tuple[str, list[list[int]]]]:
    """Ways to cut documents, and the words that segments of each document begin with."""
    of_level_1 = cut(with_structure, 1)
    chunks_alone = [replace(c, rows=replace(c.rows, heading=NO_HEADINGS)) for c in with_structure]
    yield "with structure, level 1", of_level_1
    yield "the same, level 2", cut(with_structure, 2)
    yield "structure of chunks alone, level 1", cut(chunks_alone, 1)
    yield "without structure, level 1", cut(without, 1)
    yield "the same, level 2", cut(without, 2)
    yield "`TargetSize(6)` without structure, level 1", cut(without, 1, TargetSize(ROWS))
    yield "`MarkdownNodeParser`", [d.at(by_markdown_parser(d)) for d in documents]
    yield "`HierarchicalNodeParser`", [d.at(by_hierarchical_parser(d)) for d in documents]
    sizes = [(len(d.words), 1 + len(found)) for d, found in zip(documents, of_level_1, strict=True)]
    yield "equal", [[n * i // k for i in range(1, k)] for n, k in sizes]
    rng = np.random.default_rng(0)
    yield "random", [sorted(1 + rng.choice(n - 1, k - 1, replace=False)) for n, k in sizes]


def cut(chunked: Sequence[Chunked], level: int, rule: Rule = OPTIMAL) -> list[list[int]]:
    trees = [levels(c.rows, rule) for c in chunked]
    return [
        c.marked.at(c.places[tree[min(level, len(tree) - 1)]])
        for c, tree in zip(chunked, trees, strict=True)
    ]


def report(name: str, documents: Sequence[Marked]) -> None:
    documents = [d for d in documents if len(d.words) >= LEAST]
    with_structure, without = (chunked(documents, structure=known) for known in (True, False))
    print(f"\n{name}: {len(documents)} documents")
    for label, of in (("with", with_structure), ("without", without)):
        trees = [levels(c.rows, OPTIMAL) for c in of]
        sizes = [
            np.diff([*np.searchsorted(below, above), len(below)])
            for tree in trees
            for below, above in pairwise(tree)
        ]
        children = np.concatenate(sizes)
        n, each = np.count_nonzero(children > 1), children[children > 1].mean()
        print(f"{label} structure: {sum(len(c.rows) for c in of):,} chunks, ", end="")
        print(f"{n:,} parents at all levels, {each:.1f} children each")
    print(HEADER)
    for way, found in ways(documents, with_structure, without):
        both = [*zip(documents, found, strict=True)]
        n, crossing, torn = sum(in_sections(d, starts) for d, starts in both)
        cells = [f"{n:,}"]
        for depth in (2, 3):
            errors = [
                disagreement(truth, starts, len(d.words))
                for d, starts in both
                if (truth := d.starts(depth))
            ]
            cells += [with_interval(np.array(values)) for values in zip(*errors, strict=True)]
        cells += [f"{crossing / n:.3f}", f"{torn / n:.3f}"]
        print(f"| {way} | {' | '.join(cells)} |", flush=True)


def with_interval(values: np.ndarray) -> str:
    low, high = interval(values, range(len(values)))
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def is_held_out(document: Marked) -> bool:
    return int(sha256(document.name.encode()).hexdigest(), 16) % 3 == 0


def main(data: Path, folder: Path) -> None:
    sets = {"files": files(data), "chapters": chapters(data), "Markdown": markdown(folder)}
    for name, documents in sets.items():
        report(name, [d for d in documents if is_held_out(d)])


if __name__ == "__main__":
    if len(sys.argv) != 3 or not all(Path(folder).is_dir() for folder in sys.argv[1:]):
        sys.exit("Usage: python tests/benchmarks/segments.py DATA MARKDOWN")
    main(*map(Path, sys.argv[1:]))
