"""The overview of an index: its parts by their shares of the text, with quotes."""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from hierindex.core.arguments import Ints1d
from hierindex.core.forest import select_cut
from hierindex.core.identity import file_of
from hierindex.node import TITLE, Found
from hierindex.retrieve.outline import name_of_part, outline
from hierindex.retrieve.question import Search
from hierindex.retrieve.tree import reading_order, whole_tree
from hierindex.store.snapshot import Snapshot, once
from hierindex.summarize.extractive import SalientSentences
from hierindex.text.display import displayed
from hierindex.text.sentences import Sentence, split_sentences, tokens

BLOCKS = 240  # in a column
FEW = 24  # parts of the text, which have room for words
QUOTES = 6
WORDS_OF_PART = 200  # about, from which its quote is chosen
FILE = frozenset("folder file_name file_path encoding".split())  # metadata of a file
COLOURS = 7  # values of a key that have one of their own


@once
def of_whole(snapshot: Snapshot) -> dict[str, Any]:
    """Return the overview of an index; see `of_overview`. Cached."""
    return of_overview(snapshot)


def of_overview(snapshot: Snapshot, of: str | None = None) -> dict[str, Any]:
    """Return an overview of an index or of the node `of`: blocks, quotes, and questions to ask.

    There are up to three `columns`. The nodes of a column together cover all text, in reading
    order: few groups, more groups, documents, or parts of documents. A `share` is a share of the
    text. `keys` are properties that distinguish documents, each with its most frequent `values`:
    the folder, the type of the file, or a metadata key. The `values` of a block are
    indices into these lists, one for each key, for the value that most of its documents have; None
    if that value is not listed. `quotes` are from the largest parts, `parts` is the number of all
    parts, and `questions` are about the largest documents or sections.
    """
    order, tree = reading_order(snapshot), whole_tree(snapshot)
    forest, icicle = tree.forest, order.icicle
    inside = np.zeros(len(tree.ids), dtype=np.bool_)
    inside[icicle.row[icicle.part(None if of is None else order.position(of))]] = True
    text = np.where(inside & forest.is_text, tree.n_tokens, 0)
    if not text.any():
        numbers = {"documents": 0, "tokens": 0, "parts": 0}
        return {**numbers, "columns": [], "keys": [], "quotes": [], "questions": []}
    share = forest.summed(text) / text.sum()
    inside &= share > 0
    document = forest.highest(tree.is_whole & inside)
    groups = inside & (document == -1)
    tops = groups | (inside & (document == np.arange(len(document))))
    cuts = list[list[int]]()  # each of more nodes than the one before
    for may, most in ((groups, 6), (groups, FEW), (tops, BLOCKS), (inside, FEW), (inside, BLOCKS)):
        before = len(cuts[-1]) if cuts else 1
        rows = select_cut(forest, share, may, groups, most)
        if before < min(FEW + 1, len(rows)):
            cuts.append(sorted(rows.tolist(), key=icicle.position))
    columns = cuts[:3] or [rows.tolist()]
    ids = tree.ids.take([row for column in columns for row in column]).to_pylist()
    found = snapshot.rows({*ids}, columns=("id", "title", "level", "documents", "whole_document"))
    nodes = {node["id"]: node for node in found}
    documents = sorted({each for node in found for each in node["documents"]})
    properties = _properties(snapshot, documents)
    keys = _keys(properties)

    def block(row: int) -> dict[str, Any]:
        node = nodes[tree.ids[row].as_py()]
        return {
            "id": node["id"],
            "title": node["title"],
            "level": node["level"],
            "document": node["whole_document"] or None,
            "documents": len(node["documents"]),
            "share": round(float(share[row]), 6),
            "values": [
                values.index(value) if value in values else None
                for key, values in keys.items()
                for value in [_commonest(properties[key], node["documents"])]
            ],
        }

    blocks = [[*map(block, column)] for column in columns]
    every, named = Search(snapshot, "", []), None if of is None else [of]
    budget = WORDS_OF_PART * FEW
    parts = outline(every, budget, of=named, most=FEW, whole=True, count=_count_words)
    parts.sort(key=lambda part: -part.score)
    sentences = [
        sentence
        for k, (node, _) in enumerate(parts)
        for sentence in split_sentences(node.text, node.quotes, k, node.title)
    ]
    best = SalientSentences().ranked(sentences)
    chosen = [(part, best[k][0]) for k, part in enumerate(parts[:QUOTES]) if k in best]
    return {
        "columns": blocks,
        "documents": len(documents),
        "tokens": int(text.sum()),
        "keys": [{"key": key, "values": values} for key, values in keys.items()],
        "quotes": [quote for each in chosen if (quote := _quote(properties.get(TITLE, {}), *each))],
        "parts": len(parts),
        "questions": _questions([each for column in blocks for each in column]),
    }


def _quote(titles: Mapping[str, str], part: Found, sentence: Sentence) -> dict[str, Any] | None:
    """Return a sentence of a part, with its name, share and position; None if unknown."""
    node, share = part
    if (source := sentence.quote.source) is None:
        return None
    text = " ".join(displayed(sentence.text).split())
    about = {
        "node": node.id,
        "name": name_of_part(node),
        "share": share,
        "text": text,
        "title": titles.get(source.document, ""),
    }
    return {**source.to_json(), **about}


def _questions(blocks: Sequence[dict[str, Any]]) -> list[str]:
    """Return a question about the whole, and two about the largest documents or sections.

    Titles that are questions come first.
    """

    def rank(block: dict[str, Any]) -> tuple[bool, bool, float]:
        return not block["title"].endswith("?"), not block["document"], -block["share"]

    titled = [
        each for each in blocks if each["documents"] == 1 and (each["level"] or each["document"])
    ]
    titles = dict.fromkeys(block["title"] for block in sorted(titled, key=rank))
    asked = (title if title.endswith("?") else f"What is “{title}” about?" for title in titles)
    return ["What is this about?", *islice(asked, 2)]


def _properties(snapshot: Snapshot, documents: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the values of documents by key: the folder, the type of the file, and metadata."""
    import pyarrow as pa
    import pyarrow.compute as pc

    of_each = defaultdict[str, dict[str, str]](dict)
    of_each["folder"] = folders_of(documents)
    for each in documents:
        of_each["file type"][each] = PurePosixPath(file_of(each)).suffix.lower().lstrip(".")
    rows = snapshot.select("documents", "metadata", where=snapshot.of_each_document)
    lists = rows["documents"].combine_chunks()
    metadata = rows["metadata"].take(pc.list_parent_indices(lists))
    pairs = pa.table({"document": lists.flatten(), "metadata": metadata})
    for pair in pairs.group_by(pairs.column_names, use_threads=False).aggregate([]).to_pylist():
        if (document := pair["document"]) in of_each["folder"]:
            for key, value in json.loads(pair["metadata"]).items():
                if isinstance(value, str | int) and key not in FILE:
                    of_each[key][document] = str(value)
    return of_each


def _keys(properties: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the commonest values of each key that divides documents, the most frequent first.

    A key is kept if it has at least two values and at most one for two documents, and its seven
    commonest values cover half of them.
    """
    keys = dict[str, list[str]]()
    for key, of in properties.items():
        numbers = Counter(of.values())
        common = numbers.most_common(COLOURS)
        others = len(of) - sum(n for _, n in common)
        if len(common) > 1 and 2 * max(len(numbers), others) <= len(of):
            keys[key] = [value for value, _ in common]
    return keys


def _count_words(texts: Sequence[str]) -> Ints1d:
    """Return the numbers of words: loading a tokenizer takes longer than the rest."""
    return np.array([len(tokens(text)) for text in texts], dtype=np.int64)


def _commonest(of: Mapping[str, str], documents: Iterable[str]) -> str:
    return Counter(of.get(each, "") for each in documents).most_common(1)[0][0]


def folders_of(documents: Iterable[str]) -> dict[str, str]:
    """Return the folder of each document below the common folder of all, "" for the common one.

    >>> folders_of(["a/b/c.md", "a/d/e/f.md", "a/g.md"])
    {'a/b/c.md': 'b', 'a/d/e/f.md': 'd', 'a/g.md': ''}
    """
    parts = {each: PurePosixPath(each).parts[:-1] for each in documents}
    names = [*zip(*parts.values(), strict=False)]
    common = next((i for i, name in enumerate(names) if len({*name}) > 1), len(names))
    return {each: "".join(part[common : common + 1]) for each, part in parts.items()}
