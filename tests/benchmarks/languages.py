"""Finding and refusing in four languages and across them.

Prints for each pair of languages how many questions find the paragraph that answers them first,
and among the first five, with vectors alone and in the default way; and how many questions are
refused whose article the index has, and whose it has not, when it has every other article. The
paragraphs and questions are XQuAD's, which people translated, so a question of one language can
be asked of the paragraphs of another. A part is a half of the questions, by their paragraphs;
constants are chosen on `tuning`. With `--every`, only each Nth of them is asked.

Usage: python tests/benchmarks/languages.py DATA [--embed-model NAME] [--part tuning|held-out]
           [--languages LANGUAGE,...] [--every N]
"""

import argparse
import tempfile
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from llama_index.core import Document
from llama_index.core.base.embeddings.base import BaseEmbedding
from measures import rows_of

from hierindex import HierarchicalIndex, SemanticHierarchy, load_embed_model

WAYS = {"vectors alone": {"by": "dense"}, "default": {"by": "context"}}
FIRST = 1, 5


def part_of(question: dict[str, Any]) -> str:
    return ("tuning", "held-out")[sha256(question["doc_id"].encode()).digest()[0] % 2]


def is_indexed(line: dict[str, Any]) -> bool:
    """Whether an article is in the index that refuses questions about the others."""
    return int(line["doc_id"].partition("-")[0]) % 2 == 0


def built(
    data: Path, language: str, model: BaseEmbedding, folder: Path, *, whole: bool = True
) -> HierarchicalIndex:
    """An index of a language's paragraphs, or of those of every other article."""
    documents = [
        Document(doc_id=line["doc_id"], text=line["text"])
        for line in rows_of(data / language / "documents.jsonl")
        if whole or is_indexed(line)
    ]
    hierarchy = SemanticHierarchy(embed_model=model)
    folder = folder / f"{language}-{whole}"
    return HierarchicalIndex.build(documents, folder, hierarchy=hierarchy)


def hits(index: HierarchicalIndex, questions: list[dict[str, Any]], way: dict[str, str]) -> str:
    """The share of questions whose paragraph is first, and among the first five."""
    retriever = index.as_retriever(level=0, top_k=15, token_budget=None, **way)
    n_hits = dict.fromkeys(FIRST, 0)
    for question in questions:
        found = retriever.retrieve(question["question"])
        documents = [*dict.fromkeys(each.node.ref_doc_id for each in found)]
        for first in FIRST:
            n_hits[first] += question["doc_id"] in documents[:first]
    return " / ".join(f"{n / len(questions):.3f}" for n in n_hits.values())


def refused(index: HierarchicalIndex, questions: list[dict[str, Any]]) -> str:
    """The share of questions that are refused, of those about its articles and about others."""
    shares = []
    for answerable in (True, False):
        asked = [q["question"] for q in questions if is_indexed(q) == answerable]
        shares.append(sum(index.ask(question).refused for question in asked) / len(asked))
    return " / ".join(f"{share:.3f}" for share in shares)


def main(given: argparse.Namespace, model: BaseEmbedding) -> None:
    questions = {
        language: [
            line
            for line in rows_of(given.data / language / "questions.jsonl")
            if given.part in (None, part_of(line))
        ][:: given.every]
        for language in given.languages
    }
    with tempfile.TemporaryDirectory() as folder:
        indices, halves, seconds = {}, {}, []
        for language in given.languages:
            start = time.perf_counter()
            indices[language] = built(given.data, language, model, Path(folder))
            seconds.append(f"{language} {time.perf_counter() - start:.1f}")
            halves[language] = built(given.data, language, model, Path(folder), whole=False)
        print(f"{model.model_name}, {given.part or 'all'}; builds in seconds: {', '.join(seconds)}")
        print(
            "\n| questions | paragraphs |", " | ".join(WAYS), "| refused |\n|---|---|---|---|---|"
        )
        for asked in given.languages:
            for language, index in indices.items():
                cells = [hits(index, questions[asked], way) for way in WAYS.values()]
                cells.append(refused(halves[language], questions[asked]))
                print("|", " | ".join([asked, language, *cells]), "|", flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--embed-model")
    parser.add_argument("--part", choices=("tuning", "held-out"))
    parser.add_argument("--languages", type=lambda given: given.split(","), default="en,de,es,zh")
    parser.add_argument("--every", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    GIVEN = arguments()
    NAMES = [GIVEN.embed_model] if GIVEN.embed_model else []
    main(GIVEN, load_embed_model(*NAMES))
