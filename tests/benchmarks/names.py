"""Names of groups: from the names alone, which of several siblings has a given document?

The documents' titles are given, as an author does; files are named by their ids. A document is
looked for among the names of the groups beside its own: by the number of the title's words that a
name shares (ties count as fractions), and by the cosine similarity of the name to the title with
the first 180 words. Also the share of whole documents that are called by their own title, and the
first names.

Usage: python tests/benchmarks/names.py FOLDER   (with documents.jsonl)
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from llama_index.core.schema import Document
from measures import rows_of

from hierindex import HierarchicalIndex, load_embed_model

COMMON = frozenset("and for from how into more other the their use using via what with".split())

Group = tuple[str, list[str]]
"""The name of a group, and the ids of its documents."""


def words(text: str) -> set[str]:
    found = re.findall(r"[^\W\d_]{3,}", text.lower())
    return {word.rstrip("s") for word in found if word not in COMMON}


def documents_under(node: dict) -> list[str]:
    if node["document"]:
        return [node["document"]]
    return sorted({d for child in node["nodes"] for d in documents_under(child)})


def siblings(nodes: Sequence[dict]) -> Iterator[list[Group]]:
    groups = [(node["title"], documents_under(node)) for node in nodes if node["documents"] > 1]
    if len(groups) > 1:
        yield groups
    for node in nodes:
        yield from siblings(node["nodes"])


def wholes(nodes: Sequence[dict]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if node["document"]:
            yield node["document"], node["title"]
        yield from wholes(node["nodes"])


def main(folder: Path) -> None:
    given = {d["doc_id"]: d for d in rows_of(folder / "documents.jsonl")}
    documents = [
        Document(id_=i, text=d["text"], metadata={"title": d["title"]}) for i, d in given.items()
    ]
    with TemporaryDirectory() as where:
        tree = HierarchicalIndex.build(documents, where).tree(depth=99)["nodes"]
    model = load_embed_model()
    about = [f"{d['title']}. {' '.join(d['text'].split()[:180])}" for d in given.values()]
    vectors = dict(zip(given, model.get_text_embedding_batch(about), strict=True))
    by_words, by_vectors, names = [], [], []
    for groups in siblings(tree):
        N = np.array(model.get_text_embedding_batch([name for name, _ in groups]))
        names += [name for name, _ in groups]
        for i, (_, ids) in enumerate(groups):
            for each in ids:
                shared = [len(words(given[each]["title"]) & words(name)) for name, _ in groups]
                hit = shared[i] == max(shared)
                by_words.append(hit / shared.count(max(shared)))
                by_vectors.append(int(np.argmax(N @ np.array(vectors[each]))) == i)
    own = [given[i]["title"] == title for i, title in wholes(tree)]
    print(f"{len(by_words)} pairs: by words {np.mean(by_words):.2f}, ", end="")
    print(f"by vectors {np.mean(by_vectors):.2f}; documents by their title {np.mean(own):.2f}")
    print("\n".join(names[:12]))


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/names.py FOLDER")
    main(Path(sys.argv[1]))
