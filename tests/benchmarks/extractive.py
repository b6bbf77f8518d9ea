"""Extractive summaries: how good against what people wrote, and how fast.

ROUGE-1 and ROUGE-2 F (stemmed) at the length of the gold in words, each text's document
or documents as one group: reports by their summaries, chapters by their authors' summaries,
meetings by the answers to general questions. Beside leading sentences, SumBasic
(Nenkova and Vanderwende 2005) and bert-extractive-summarizer's choice of the same sentences.
Means with 95% bootstrap intervals over texts, and seconds a text, vectors included.

Usage: python tests/benchmarks/extractive.py FOLDER [SET ...]   (of the evaluation data)
"""

import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field
from measures import rows_of, with_interval

from hierindex import Quote, Span, load_embed_model
from hierindex.summarize import BertExtractor, Budget, Extractor, SalientSentences
from hierindex.summarize.extractive import informative
from hierindex.text import Sentence
from hierindex.text.sentences import TOKEN, split_sentences

GOLD = {
    "govreport_mini": lambda folder: [
        ([d["doc_id"]], d["summary"]) for d in rows_of(folder / "documents.jsonl")
    ],
    "tech_books": lambda folder: [
        (s["targets"], s["summary"]) for s in rows_of(folder / "summaries.jsonl")
    ],
    "qmsum": lambda folder: [
        ([q["doc_id"]], q["answer"])
        for q in rows_of(folder / "questions.jsonl")
        if q["kind"] == "general"
    ],
}


class Remembering(BaseEmbedding):
    """Embeds a text once for all methods; `saved` sums the seconds that this has saved."""

    inner: BaseEmbedding
    known: dict[str, tuple[list[float], float]] = Field(default_factory=dict)
    saved: float = 0.0

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        new = [text for text in texts if text not in self.known]
        start = time.perf_counter()
        vectors = self.inner.get_text_embedding_batch(new) if new else []
        each = (time.perf_counter() - start) / max(len(new), 1)
        self.saved += sum(self.known[text][1] for text in texts if text in self.known)
        self.known |= {text: (v, each) for text, v in zip(new, vectors, strict=True)}
        return [self.known[text][0] for text in texts]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class Ranked:
    """Sentences in an order of preference, each taken if it fits."""

    def __init__(self, order: Callable[[list[Sentence], Budget], Sequence[int]]) -> None:
        self.order = order

    def extract(self, groups, budget):
        return [self._extract(informative(group)[0], budget) for group in groups]

    def _extract(self, pool, budget):
        n, left, chosen = budget.count([s.text for s in pool]), budget.max_tokens, []
        for i in self.order(pool, budget):
            if n[i] <= left:
                chosen.append(i)
                left -= n[i]
        return [pool[i] for i in sorted(chosen)]


def sum_basic(pool: list[Sentence], budget: Budget) -> Iterator[int]:
    """The sentence of the likeliest words, whose words are unlikelier after; until none fits."""
    words = [re.findall(TOKEN, s.text.lower()) for s in pool]
    counts = Counter(word for sentence in words for word in sentence)
    p = {word: n / counts.total() for word, n in counts.items()}
    n_words, left = budget.count([s.text for s in pool]), budget.max_tokens
    free = {i for i in range(len(pool)) if words[i]}
    while free := {i for i in free if n_words[i] <= left}:
        best = max(sorted(free), key=lambda i: np.mean([p[word] for word in words[i]]))
        yield best
        left -= n_words[best]
        free.discard(best)
        p.update({word: p[word] ** 2 for word in set(words[best])})


def extractors(model: Remembering) -> dict[str, Callable[[], Extractor | Ranked]]:
    return {
        "lead": lambda: Ranked(lambda pool, _: range(len(pool))),
        "SumBasic": lambda: Ranked(sum_basic),
        "bert-extractive-summarizer": lambda: BertExtractor(model),
        "ours": SalientSentences,
    }


def count_words(texts: Sequence[str]) -> np.ndarray:
    return np.array([len(text.split()) for text in texts], dtype=np.int64)


def texts_of(folder: Path, name: str) -> list[tuple[str, list[Sentence], str]]:
    """Name, sentences and gold of each text; its children are six runs of sentences."""
    text = {d["doc_id"]: d["text"] for d in rows_of(folder / name / "documents.jsonl")}
    texts = []
    for documents, gold in GOLD[name](folder / name):
        group = [
            sentence
            for d in documents
            for sentence in split_sentences(
                text[d], [Quote(0, len(text[d]), Span(d, 0, len(text[d])))]
            )
        ]
        group = [replace(s, child=6 * i // len(group)) for i, s in enumerate(group)]
        texts.append((documents[0], group, gold))
    return texts


def main(folder: Path, names: Sequence[str]) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rouge1", "rouge2"], use_stemmer=True)
    sets = {name: texts_of(folder, name) for name in names}
    for name, texts in sets.items():
        print(f"{name}: {len(texts)} golds, {np.mean([len(g) for _, g, _ in texts]):.0f} sentences")
    print(f"\n{'':<36}" + "".join(f"{name + ', ROUGE-1 and 2':>46}{'s':>7}" for name in sets))
    inner = load_embed_model()
    model = Remembering(inner=inner, model_name=inner.model_name, embed_batch_size=2048)
    for label, made in extractors(model).items():
        line = f"{label:<36}"
        for texts in sets.values():
            scores, seconds = defaultdict(list), 0.0
            for text, group, gold in texts:
                budget = Budget(len(gold.split()), count_words)
                saved, extractor, start = model.saved, made(), time.perf_counter()
                (extract,) = extractor.extract([group], budget)
                seconds += time.perf_counter() - start + model.saved - saved
                found = scorer.score(gold, " ".join(s.text for s in extract))
                scores[text].append([found["rouge1"].fmeasure, found["rouge2"].fmeasure])
            means = np.array([np.mean(of, axis=0) for of in scores.values()])
            figures = map(with_interval, means.T)
            line += f"{'   '.join(figures):>46}{seconds / len(texts):7.3f}"
        print(line, flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not Path(sys.argv[1]).is_dir() or not set(sys.argv[2:]) <= set(GOLD):
        sys.exit("Usage: python tests/benchmarks/extractive.py FOLDER [SET ...]")
    main(Path(sys.argv[1]), sys.argv[2:] or list(GOLD))
