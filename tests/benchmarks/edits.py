"""Whether citations stay right while documents are edited.

Copies some files of a folder, builds an index of them by the command line and edits them, one kind
of edit after the other, with a build after each edit. Prints for each kind how many sources the
index's nodes then cited in all, and how many of those were wrong: outside their document, or not
the words that the node quotes.

Usage: python tests/benchmarks/edits.py FOLDER [METHOD]   (semantic, raptor or document)
"""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from typer.testing import CliRunner

from hierindex import HierarchyStore, Node
from hierindex.cli.app import app

N_FILES = 4
N_EDITS = 20  # of each kind
METHODS = ("semantic", "raptor", "document")

Edit = Callable[[random.Random, list[Path]], None]


def insert_at_the_top(draw: random.Random, files: list[Path]) -> None:
    file = draw.choice(files)
    write(file, f"A line on top, number {draw.randrange(1000)}.\n\n{read(file)}")


def delete_a_paragraph(draw: random.Random, files: list[Path]) -> None:
    file = draw.choice(files)
    lines = read(file).split("\n")
    at = draw.randrange(len(lines))
    write(file, "\n".join(lines[:at] + lines[at + 5 :]))


def reorder(draw: random.Random, files: list[Path]) -> None:
    """What stood last stands first."""
    file = draw.choice(files)
    lines = read(file).split("\n")
    at = draw.randrange(len(lines))
    write(file, "\n".join(lines[at:] + lines[:at]))


def rename(draw: random.Random, files: list[Path]) -> None:
    file = draw.choice(files)
    file.rename(file.with_stem(f"renamed-{draw.randrange(10**6)}"))


def duplicate(draw: random.Random, files: list[Path]) -> None:
    """A file's copy takes the place of another file."""
    file, other = draw.sample(files, 2)
    write(other, read(file))


def swap(draw: random.Random, files: list[Path]) -> None:
    one, other = draw.sample(files, 2)
    texts = read(one), read(other)
    write(other, texts[0])
    write(one, texts[1])


EDITS: list[Edit] = [insert_at_the_top, delete_a_paragraph, reorder, rename, swap, duplicate]


def read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def build(folder: Path, index: Path, method: str) -> None:
    arguments = ["build", str(folder), "--index", str(index), "--method", method, "--json"]
    CliRunner().invoke(app, arguments, catch_exceptions=False)


def citations(store: HierarchyStore, folder: Path) -> tuple[int, int]:
    """How many sources the nodes cite, and how many of them are wrong."""
    texts = {file.name: read(file) for file in folder.iterdir()}
    n_sources = n_wrong = 0
    for node in store.get_nodes():
        for quote in Node.of(node).quotes:
            for span in quote.sources:
                text = texts.get(span.document, "")
                said = node.get_content()[quote.at : quote.to]
                stretch = text[span.start : span.end]
                n_sources += 1
                n_wrong += span.end > len(text) or (quote.verbatim and stretch != said)
    return n_sources, n_wrong


def main(corpus: Path, method: str) -> None:
    draw = random.Random(0)
    print(f"{'':<20}{'citations':>11}{'wrong':>7}")
    with TemporaryDirectory() as here:
        folder, index = Path(here, "files"), Path(here, "index")
        folder.mkdir()
        for file in sorted(corpus.iterdir())[:N_FILES]:
            write(folder / file.name, read(file))
        build(folder, index, method)
        store = HierarchyStore(index)
        for edit in EDITS:
            n_sources = n_wrong = 0
            for _ in range(N_EDITS):
                edit(draw, sorted(folder.iterdir()))
                build(folder, index, method)
                cited, wrong = citations(store, folder)
                n_sources, n_wrong = n_sources + cited, n_wrong + wrong
            print(f"{edit.__name__:<20}{n_sources:>11}{n_wrong:>7}", flush=True)


if __name__ == "__main__":
    folder, method = (*sys.argv[1:], "semantic")[:2] if len(sys.argv) > 1 else ("", "")
    if not Path(folder).is_dir() or method not in METHODS:
        sys.exit("Usage: python tests/benchmarks/edits.py FOLDER [semantic | raptor | document]")
    main(Path(folder), method)
