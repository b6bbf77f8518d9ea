"""Whether similarity tells the sentences of a summary's own text from those of another.

Summaries that people wrote, of reports, chapters and meetings; what they were written from is
an extract of 900 tokens of the same text, or of the text half a set further on. Prints the area
under the ROC curve of a sentence's likeness to its nearest source, own against foreign, and the
share of sentences similar to own and to foreign sources at the model's calibrated threshold, and at
the one that 5% of the foreign sentences of the set reach, which takes a set to find. Then, of all
sentences of true summaries, also of stories and of answers about meetings, the share with a number
in digits that is nowhere in the text that they summarise.

Usage: python tests/benchmarks/grounding.py FOLDER   (of the evaluation data)
"""

import sys
from pathlib import Path

import numpy as np
from extractive import GOLD, rows
from sklearn.metrics import roc_auc_score

from hierindex import SalientSentences, load_embed_model
from hierindex.models.embedder import Embedder
from hierindex.summarize.grounding import has_other_number, known_threshold, numbers_in
from hierindex.summarize.summary import Budget
from hierindex.summarize.two_stage import EXTRACT_TOKENS
from hierindex.text.sentences import split_sentences


def with_other_numbers(folder: Path) -> None:
    asked = rows(folder / "qmsum", "questions.jsonl")
    told = rows(folder / "squality", "summaries.jsonl")
    more = {
        "qmsum": [([q["doc_id"]], q["answer"]) for q in asked],
        "squality": [([s["doc_id"]], text) for s in told for text in s["summaries"]],
    }
    for name, pairs in ({name: gold(folder / name) for name, gold in GOLD.items()} | more).items():
        known = {d["doc_id"]: numbers_in(d["text"]) for d in rows(folder / name)}
        other = [
            has_other_number(sentence.text, set().union(*(known[d] for d in docs)))
            for docs, summary in pairs
            for sentence in split_sentences(summary)
        ]
        print(f"{name:<16}{sum(other):>6} of {len(other)} with other numbers, {np.mean(other):.1%}")


def main(folder: Path) -> None:
    embedder = Embedder(load_embed_model())
    budget = Budget(EXTRACT_TOKENS, embedder.count_text_tokens)
    calibrated = known_threshold(embedder.embed)
    head = ("summaries", "sentences", "AUC", *["threshold", "own", "foreign"] * 2)
    print(f"{'':<16}" + "".join(f"{column:>12}" for column in head))
    for name, gold in GOLD.items():
        text_of = {d["doc_id"]: d["text"] for d in rows(folder / name)}
        pairs = gold(folder / name)
        groups = [split_sentences("\n\n".join(text_of[d] for d in docs)) for docs, _ in pairs]
        sources = SalientSentences().extract(groups, budget)
        told = [split_sentences(summary) for _, summary in pairs]
        vectors = [
            (embedder.embed([s.text for s in summary]), embedder.embed([s.text for s in source]))
            for summary, source in zip(told, sources, strict=True)
        ]
        away = len(vectors) // 2
        foreign_of = [vectors[(i + away) % len(vectors)][1] for i in range(len(vectors))]
        own = np.concatenate([(S @ T.T).max(axis=1) for S, T in vectors])
        foreign = np.concatenate(
            [(S @ T.T).max(axis=1) for (S, _), T in zip(vectors, foreign_of, strict=True)]
        )
        area = roc_auc_score([1] * len(own) + [0] * len(foreign), np.concatenate([own, foreign]))
        figures = f"{len(told):>12}{len(own):>12}{area:>12.3f}"
        for threshold in calibrated, np.quantile(foreign, 0.95):
            shares = ((x >= threshold).mean() for x in (own, foreign))
            figures += f"{threshold:>12.3f}" + "".join(f"{share:>12.1%}" for share in shares)
        print(f"{name:<16}{figures}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("Usage: python tests/benchmarks/grounding.py FOLDER")
    main(Path(sys.argv[1]))
    with_other_numbers(Path(sys.argv[1]))
