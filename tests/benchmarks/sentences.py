"""How well sentences of technical text are split: precision and recall of their boundaries.

`sentences.json` has paragraphs that were drawn at random from Python's and Debian's documentation,
manual pages (in English, German and Chinese) and the Warren report, without their text: the name
of a file, the start and length of the paragraph in what hierindex reads, a hash, and where
sentences other than the first begin, as a person judged. A quoted or bracketed part is not split,
code is one part up to a blank line, and so is a row. Paragraphs that other versions of the files
do not have are left out. The files are those of Debian 12: the HTML pages and sources of
python3.11-doc, debian-policy, postgresql-doc-15 and /usr/share/doc (.gz unpacked as .txt), and
manual pages from `MANWIDTH=80 man -Tutf8 FILE | col -bx` as .txt.

Usage: python tests/benchmarks/sentences.py FOLDER...   (folders with the files, in any order)
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from hierindex import read_documents
from hierindex.text.sentences import split_sentences

JUDGED = Path(__file__).with_suffix(".json")


def judged(folders: list[str]) -> Iterator[tuple[str, str, set[int]]]:
    """Yield the suffix, the text and the boundaries of each paragraph that is there."""
    documents, _ = read_documents(*folders)
    texts: dict[str, list[str]] = {}
    for document in documents:
        texts.setdefault(Path(document.id_).name, []).append(document.text)
    for name, start, length, digest, boundaries in json.loads(JUDGED.read_text()):
        for text in (text[start : start + length] for text in texts.get(name, ())):
            if sha256(text.encode()).hexdigest().startswith(digest):
                yield Path(name).suffix, text, set(boundaries)
                break


def main(*folders: str) -> None:
    """Print a table."""
    counts: dict[str, Counter[str]] = {}
    for suffix, text, expected in judged(list(folders)):
        sentences = split_sentences(text)
        found = {sentence.at for sentence in sentences[1:]}
        for key in (suffix, "all"):
            counts.setdefault(key, Counter()).update(
                paragraphs=1, judged=len(expected), found=len(found), both=len(found & expected)
            )
    print("| files | paragraphs | boundaries | precision | recall |\n|---|---|---|---|---|")
    for key, n in counts.items():
        shares = f"{n['both'] / max(1, n['found']):.3f} | {n['both'] / max(1, n['judged']):.3f}"
        print(f"| {key} | {n['paragraphs']} | {n['judged']} | {shares} |")


if __name__ == "__main__":
    main(*sys.argv[1:])
