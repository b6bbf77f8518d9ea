"""How well parents follow the sections that authors gave their documents.

Three sets of documents of 1,000 words and more, each without the words of its headings: files of
tech_books by their sections, its chapters by files and sections, and Markdown files whose headings
are blanked out. With structure, the places of headings are known to the splitter and to `Optimal`;
without it, to neither. Of tech_books only the held-out third is asked; on the rest the costs in
`crossing_costs` were chosen. Beside LlamaIndex's `MarkdownNodeParser`, which gets the headings, its
`HierarchicalNodeParser` (nodes of 512 tokens), and as many equal and random segments as ours.

Agreement: Pk (Beeferman, Berger and Lafferty 1999) and WindowDiff (Pevzner and Hearst 2002) by
nltk over words, lower is better, against the headings of level 2, and of levels 2 and 3, where
level 1 is the title; means over documents with 95% bootstrap intervals.

Usage: python tests/benchmarks/segments.py DATA MARKDOWN [all]   (folders)
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
from hierindex.core.breakpoints import TargetSize
from hierindex.core.groupers import BySegment
from hierindex.core.membership import centroids, groups_of
from hierindex.core.optimal import Optimal
from hierindex.core.rows import Rows
from hierindex.core.segments import Rule
from hierindex.embed.embedder import Embedder
from hierindex.evaluate.intervals import interval
from hierindex.hierarchy.growth import _headings
from hierindex.hierarchy.hierarchy import MAX_CHILDREN, MAX_TOKENS, SUMMARY_TOKENS
from hierindex.read.markdown import read_markdown
from hierindex.record import HEADINGS, SECTION, Heading

CAPS = Caps(MAX_TOKENS, MAX_CHILDREN)
ROWS = 6
SMALL = 2  # chunks; a section of as many may share its parent with its siblings
LEAST = 1_000  # words of a document, which has several parents
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


def crossed(document: Marked, starts: Sequence[int]) -> tuple[int, int]:
    """Number of segments that cross a heading of level 2, and of those that tear a section.

    A segment tears a section if it holds a part of it, and something beside it.
    """
    n = len(document.words)
    level = {0: 0, n: 0}
    for heading in document.headings:
        word = bisect_left(document.words, heading.start)
        level[word] = min(level.get(word, heading.level), heading.level)
    places = sorted(level)
    n_crossing = n_torn = 0
    for start, end in pairwise([0, *starts, n]):
        inside = places[bisect_left(places, start + 1) : bisect_left(places, end)]
        highest = min((level[word] for word in inside), default=n)
        n_crossing += highest <= 2
        n_torn += highest < n and any(level.get(word, n) > highest for word in (start, end))
    return n_crossing, n_torn


def small_sections(of: Chunked, first: np.ndarray) -> tuple[int, int]:
    """Number of sections of one or two chunks, and of those with siblings in their parent."""
    parent = np.searchsorted(first, np.arange(len(of.rows)), side="right")
    sections = np.split(np.arange(len(of.rows)), np.flatnonzero(of.rows.heading[1:]) + 1)
    small = [section for section in sections if len(section) <= SMALL]
    with_siblings = [
        section
        for section in small
        if len({*parent[section].tolist()}) == 1
        and np.count_nonzero(parent == parent[section[0]]) > len(section)
    ]
    return len(small), len(with_siblings)


Ways = dict[str, list[list[int]]]  # the words that segments of each document begin with


def ways(documents: Sequence[Marked], trees: dict[str, list[list[np.ndarray]]], sets) -> Ways:
    rng = np.random.default_rng(0)
    found: Ways = {}
    for name, of in sets.items():
        for level in (1, 2):
            found[f"{name}, level {level}"] = [
                each.marked.at(each.places[starts[min(level, len(starts) - 1)]])
                for each, starts in zip(of, trees[name], strict=True)
            ]
    plain = sets["without structure"]
    found["`TargetSize(6)` without structure"] = [
        each.marked.at(each.places[levels(each.rows, TargetSize(ROWS))[1]]) for each in plain
    ]
    found["`MarkdownNodeParser`"] = [d.at(by_markdown_parser(d)) for d in documents]
    found["`HierarchicalNodeParser`, 512 tokens"] = [
        d.at(by_hierarchical_parser(d)) for d in documents
    ]
    numbers = [len(starts) for starts in found["with structure, level 1"]]
    sizes = [len(d.words) for d in documents]
    found["equal, as many as level 1"] = [
        [n * (i + 1) // (k + 1) for i in range(k)] for n, k in zip(sizes, numbers, strict=True)
    ]
    found["random, as many as level 1"] = [
        sorted((1 + rng.choice(n - 1, k, replace=False)).tolist())
        for n, k in zip(sizes, numbers, strict=True)
    ]
    return found


def report(name: str, documents: Sequence[Marked]) -> None:
    documents = [d for d in documents if len(d.words) >= LEAST]
    sets = {
        "with structure": chunked(documents, structure=True),
        "without structure": chunked(documents, structure=False),
    }
    sets["chunks end at headings, parents do not"] = [
        replace(of, rows=replace(of.rows, heading=0 * of.rows.heading))
        for of in sets["with structure"]
    ]
    trees = {way: [levels(each.rows, Optimal(ROWS)) for each in of] for way, of in sets.items()}
    print(f"\n{name}: {len(documents)} documents\n")
    print("| segments | number | Pk, level 2 | WindowDiff | Pk, levels 2 and 3 | WindowDiff |")
    print("|---|---|---|---|---|---|")
    for way, found in ways(documents, trees, sets).items():
        cells = [f"{sum(map(len, found)) + len(found):,}"]
        for depth in (2, 3):
            errors = [
                disagreement(truth, starts, len(d.words))
                for d, starts in zip(documents, found, strict=True)
                if (truth := d.starts(depth))
            ]
            cells += [with_interval(np.array(values)) for values in zip(*errors, strict=True)]
        print(f"| {way} | {' | '.join(cells)} |", flush=True)
    print(
        "\n| tree | chunks | parents, all levels | children | cross a level 2 | tear a section "
        "| short sections with siblings |\n|---|---|---|---|---|---|---|"
    )
    for way, of in sets.items():
        print(f"| {way} | {' | '.join(of_trees(sets['with structure'], of, trees[way]))} |")


def of_trees(
    marked: Sequence[Chunked], of: Sequence[Chunked], trees: Sequence[list[np.ndarray]]
) -> Iterator[str]:
    """Cells on the trees of documents: their costs, and how parents of level 1 lie in sections."""
    sizes = [
        np.diff([*np.searchsorted(below, above), len(below)])
        for tree in trees
        for below, above in pairwise(tree)
    ]
    children = np.concatenate(sizes)
    children = children[children > 1]
    first = [tree[min(1, len(tree) - 1)] for tree in trees]
    n_first = sum(map(len, first))
    pairs = [*zip(of, first, strict=True)]
    crossing, torn = np.sum(
        [crossed(each.marked, each.marked.at(each.places[starts])) for each, starts in pairs],
        axis=0,
    )
    yield f"{sum(len(each.rows) for each in of):,}"
    yield f"{len(children):,}"
    yield f"{children.mean():.1f}"
    yield f"{crossing / n_first:.3f}"
    yield f"{torn / n_first:.3f}"
    if all(len(one.rows) == len(each.rows) for one, each in zip(marked, of, strict=True)):
        n, shared = np.sum(
            [small_sections(one, starts) for one, starts in zip(marked, first, strict=True)], axis=0
        )
        yield f"{shared:,} of {n:,}"
    else:
        yield ""


def with_interval(values: np.ndarray) -> str:
    low, high = interval(values, range(len(values)))
    return f"{values.mean():.3f} [{low:.3f}, {high:.3f}]"


def is_held_out(document: Marked) -> bool:
    return int(sha256(document.name.encode()).hexdigest(), 16) % 3 == 0


def main(data: Path, folder: Path, *, every: bool) -> None:
    for name, documents in (("tech_books, files", files(data)), ("chapters", chapters(data))):
        report(name, [d for d in documents if every or is_held_out(d)])
    report("Markdown files", markdown(folder))


if __name__ == "__main__":
    match sys.argv[1:]:
        case [data, folder, *rest] if Path(data).is_dir() and Path(folder).is_dir():
            main(Path(data), Path(folder), every=rest == ["all"])
        case _:
            sys.exit("Usage: python tests/benchmarks/segments.py DATA MARKDOWN [all]")
