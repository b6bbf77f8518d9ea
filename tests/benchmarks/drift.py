"""What a long life of edits does to a tree, beside trees that are built anew.

Grows an index from nothing by single edits: documents are added, changed, renamed and deleted, one
update or deletion each, with a draw that is repeated from the seed. Every 20 edits, an index is
built anew of the same documents, and both are asked the questions of the data set about documents
that they hold. Prints, for each such checkpoint, the mean share of gold that is found in 2,000
tokens by three ways (the default, the whole tree at once, and downwards from the root) in the
fresh index, the mean paired difference of the living one with its 95% interval over documents, the
summaries that were written so far, and those that building anew after each edit would have written.

Usage: python tests/benchmarks/drift.py DATA METHOD [N_EDITS] [SEED]
DATA is an evaluation set, METHOD is semantic, raptor or document.
"""

import random
import shutil
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from llama_index.core.schema import Document
from measures import read_labelled
from update import METHODS, Counting

from hierindex import HierarchicalIndex, load_embed_model
from hierindex.cache import cache_file
from hierindex.evaluate import Dataset, Question
from hierindex.evaluate.measures import Passage, fill, held, interval

WAYS = {"default": {}, "collapsed": {"mode": "collapsed"}, "traversal": {"mode": "traversal"}}
BUDGET = 2_000  # tokens
CHECKPOINT = 20  # edits
MOST_QUESTIONS = 150


class Life:
    """The documents as they are now; edits are at the ends of texts, so gold before them stays."""

    def __init__(self, dataset: Dataset, seed: int) -> None:
        self._draw = random.Random(seed)
        self._pool = [*dataset.documents]
        self._draw.shuffle(self._pool)
        self.texts: dict[str, str] = {}
        self.unchanged: dict[str, int] = {}  # characters of each text that are as they were
        self.original: dict[str, str] = {}  # names of documents that were renamed

    def edit(self) -> tuple[str, list[Document], list[str]]:
        """Return the kind of the next edit, documents to add or change, and names to delete."""
        kinds = ["add"] * 5 + ["change"] * 2 + ["rename", "delete"]
        kind = self._draw.choice(kinds) if len(self.texts) > 2 else "add"
        if kind == "add" and not self._pool:
            kind = "change"
        if kind == "add":
            document = self._pool.pop()
            self.texts[document.doc_id] = document.text
            self.unchanged[document.doc_id] = len(document.text)
            self.original[document.doc_id] = document.doc_id
            return kind, [self._document(document.doc_id)], []
        name = self._draw.choice(sorted(self.texts))
        if kind == "change":
            parts = self.texts[name].split("\n\n")
            moved = self._draw.choice(self._draw.choice([*self.texts.values()]).split("\n\n"))
            kept = "\n\n".join(parts[:-1])
            self.unchanged[name] = min(self.unchanged[name], len(kept))
            self.texts[name] = f"{kept}\n\n{moved}\n\n{parts[-1]}"
            return kind, [self._document(name)], []
        text, unchanged = self.texts.pop(name), self.unchanged.pop(name)
        original = self.original.pop(name)
        if kind == "delete":
            return kind, [], [name]
        new = f"{original}-{self._draw.randrange(10**6)}"
        self.texts[new], self.unchanged[new], self.original[new] = text, unchanged, original
        return kind, [self._document(new)], [name]

    def documents(self) -> list[Document]:
        return [self._document(name) for name in self.texts]

    def _document(self, name: str) -> Document:
        return Document(id_=name, text=self.texts[name])

    def questions(self, all_questions: Sequence[Question]) -> list[Question]:
        """The questions whose gold stands where it was, with the names of today."""
        now = {original: name for name, original in self.original.items()}
        kept = []
        for question in all_questions:
            stands = all(
                span.document in now and span.end <= self.unchanged[now[span.document]]
                for span in question.spans
            )
            if question.spans and stands:
                spans = tuple(s._replace(document=now[s.document]) for s in question.spans)
                within = question.within and now[question.within]
                kept.append(Question(question.id, question.text, question.group, "", within, spans))
        step = -(-len(kept) // MOST_QUESTIONS) if kept else 1
        return kept[::step]


def found(
    index: HierarchicalIndex, question: Question, texts: dict[str, str], options: dict
) -> float:
    retriever = index.as_retriever(top_k=40, token_budget=BUDGET, **options)
    passages = fill((Passage.of(each.node) for each in retriever.retrieve(question.text)), BUDGET)
    return held(question, texts, passages, BUDGET)["coverage", BUDGET]


def main(data: str, method: str, n_edits: int = 200, seed: int = 0) -> None:
    dataset, model = read_labelled(data), load_embed_model()
    life, living = Life(dataset, seed), Counting()
    n_anew, index = 0, None
    with TemporaryDirectory() as folder:
        uri = Path(folder) / "living"
        for number in range(1, n_edits + 1):
            _, changed, gone = life.edit()
            if index is None:
                hierarchy = METHODS[method](model, living)
                index = HierarchicalIndex.build(changed, uri, hierarchy=hierarchy)
            else:
                if changed:
                    index.update(changed, hierarchy=METHODS[method](model, living))
                if gone:
                    index.delete(*gone, hierarchy=METHODS[method](model, living))
            levels = index.info()["levels"]
            n_anew += sum(level["nodes"] for level in levels[1:])
            if number % CHECKPOINT:
                continue
            fresh_uri = Path(folder) / f"fresh-{number}"
            fresh_uri.mkdir()
            shutil.copy(cache_file(str(uri)), cache_file(str(fresh_uri)))
            hierarchy = METHODS[method](model)
            fresh = HierarchicalIndex.build(life.documents(), fresh_uri, hierarchy=hierarchy)
            report(number, life, dataset, index, fresh)
            print(
                f"  summaries {living.n_written} of {n_anew} ({living.n_written / n_anew:.1%})",
                flush=True,
            )
            shutil.rmtree(fresh_uri)


def report(
    number: int, life: Life, dataset: Dataset, living: HierarchicalIndex, fresh: HierarchicalIndex
) -> None:
    print(f"{number} edits, {len(life.texts)} documents")
    questions = life.questions(dataset.questions)
    figures = defaultdict[str, list[tuple[float, float]]](list)
    for question in questions:
        for way, options in WAYS.items():
            pair = [found(index, question, life.texts, options) for index in (fresh, living)]
            figures[way].append((pair[0], pair[1]))
    for way, pairs in figures.items():
        values = np.array(pairs)
        apart = values[:, 1] - values[:, 0]
        low, high = interval(apart, [question.group for question in questions])
        print(
            f"  {way}: {values[:, 0].mean():.3f}, {apart.mean():+.4f} [{low:+.4f}, {high:+.4f}]"
            f" of {len(questions)} questions"
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
