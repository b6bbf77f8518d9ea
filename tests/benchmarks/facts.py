"""Answers without a language model: how often they say the fact that is asked for.

Questions with a short gold string (as SQuAD's): those of four data sets, at most 200 of each,
drawn by document, without those answered by yes or no; and `questions.jsonl`, twenty on each of two
corpora, written for this. Gold stands in a text if its words do after SQuAD's normalisation. A
question counts if the five best passages of `level=0, by="hybrid"` hold its gold. Which do is
written into `facts_denominator.json` once, and read from there ever after, so that shares can be
compared between versions.

Printed are the shares of these questions whose gold stands in the answer of `ask` with its
defaults (a refusal holds none) and with `min_score=None`, both of at most 150 tokens; in the best
sentence of the five passages, by vectors and words; and in the first of the five and the best of
them by `context`, cut to 150 tokens at the end of a sentence. With 95% intervals by bootstrap over
documents, the mean words of an answer that is not refused, and the median processor milliseconds
of `ask`, which other work on the machine hardly changes.

Usage: python tests/benchmarks/facts.py DATA CORPORA INDEX_FOLDER [SET ...]
(folders of the evaluation data and of its corpora; indices are built in INDEX_FOLDER, or found)
"""

import json
import re
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import punctuation
from unicodedata import category

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from measures import LabelledQuestion, read_labelled

from hierindex import HierarchicalIndex, load_embed_model
from hierindex.core.ranking import blended, shared_words
from hierindex.embed.embedder import Embedder
from hierindex.evaluate.measures import interval
from hierindex.store.vector_store import HierarchyStore
from hierindex.text.sentences import TOKEN, split_all, split_sentences, telling

SETS = ("squad", "hotpotqa100", "nq_long", "qasper")
WRITTEN = ("warren-report", "tech-books")
HERE = Path(__file__).parent
QUESTIONS, DENOMINATOR = HERE / "questions.jsonl", HERE / "facts_denominator.json"
MOST, SEED = 200, 0
ANSWER_TOKENS, N_PASSAGES = 150, 5
LONGEST = 10  # words of a gold string; longer ones are sentences of an annotator
NOT_FACTS = {"", "yes", "no", "unanswerable"}
WAYS = ("ask", "never refused", "best sentence", "first passage", "best passage")


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def normalised(text: str) -> str:
    """Lower case without articles and punctuation, as SQuAD's script, that of Unicode included."""
    plain = "".join(c for c in text.lower() if not (c in punctuation or category(c)[0] == "P"))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", plain).split())


def says(text: str, answers: tuple[str, ...]) -> bool:
    """Whether one of the answers stands in a text, at the bounds of words."""
    return any(f" {normalised(answer)} " in f" {normalised(text)} " for answer in answers)


def short(answers: list[str]) -> tuple[str, ...]:
    """The gold strings that are facts; none if the question is answered by yes or no."""
    words = [normalised(answer) for answer in answers]
    if NOT_FACTS.intersection(words):
        return ()
    return tuple(a for a, w in zip(answers, words, strict=True) if len(w.split()) <= LONGEST)


def drawn(questions: list[LabelledQuestion]) -> list[LabelledQuestion]:
    """At most 200 questions, one of each document in turn."""
    groups, rng = defaultdict(list), np.random.default_rng(SEED)
    for question in questions:
        groups[question.group].append(question)
    turns = [(turn, q) for of in groups.values() for turn, q in enumerate(rng.permutation(of))]
    return [q for _, q in sorted(turns, key=lambda pair: pair[0])[:MOST]]


def questions_of(name: str, data: Path) -> list[LabelledQuestion]:
    """The questions of a set with short gold strings, and how many there are, printed."""
    if name in WRITTEN:
        rows = [row for row in read(QUESTIONS) if row["set"] == name]
        return [
            LabelledQuestion(
                row["qid"], row["question"], row["file"], answers=tuple(row["answers"])
            )
            for row in rows
        ]
    gold = {row["qid"]: row for row in read(data / name / "questions.jsonl")}
    usable = [
        replace(q, answers=short(gold[q.id].get("answers") or [gold[q.id]["answer"]]))
        for q in read_labelled(data / name).questions
    ]
    facts = [q for q in usable if q.answers]
    kept = drawn(facts)
    print(
        f"{name}: {len(gold)} questions, {len(facts)} with a short gold string, {len(kept)} drawn"
    )
    return kept


def index_of(name: str, data: Path, corpora: Path, folder: Path) -> HierarchicalIndex:
    """The index of a set, built if it is not found."""
    model, sources = load_embed_model(), corpora / name
    if not HierarchyStore(folder / name).snapshot().exists:
        documents = [str(sources)] if name in WRITTEN else read_labelled(data / name).documents
        HierarchicalIndex.build(list(documents), folder / name)
    return HierarchicalIndex.open(folder / name, model)


def within(question: LabelledQuestion) -> dict:
    """The options that search only the document that a question is asked of."""
    if question.within is None:
        return {}
    return {"filters": of_documents([question.within])}


def of_documents(documents: Sequence[str]) -> MetadataFilters:
    """A filter for the nodes that stand on these documents alone."""
    of = MetadataFilter(key="hierindex_documents", value=[*documents], operator=FilterOperator.ANY)
    return MetadataFilters(filters=[of])


def passages(index: HierarchicalIndex, question: LabelledQuestion) -> dict[str, str]:
    """The five best passages by id, the best first."""
    retriever = index.as_retriever(level=0, by="hybrid", top_k=N_PASSAGES, **within(question))
    found = retriever.retrieve(question.text)
    return {node.node_id: node.get_content(MetadataMode.NONE) for node in found}


def cut(text: str, embedder: Embedder) -> str:
    """As many whole sentences as fit 150 tokens, or as many words of the first."""
    kept = [sentence.text for sentence in split_sentences(text)]
    while len(kept) > 1 and tokens(" ".join(kept), embedder) > ANSWER_TOKENS:
        kept.pop()
    words = " ".join(kept).split()
    while tokens(" ".join(words), embedder) > ANSWER_TOKENS:
        words.pop()
    return " ".join(words)


def tokens(text: str, embedder: Embedder) -> int:
    return int(embedder.count_text_tokens([text])[0])


def best_sentence(question: str, texts: list[str], model: BaseEmbedding) -> str:
    """The sentence with the best score by vectors and words."""
    pool = [s.text for s in telling(split_all((text, ()) for text in texts))]
    words = list(dict.fromkeys(re.findall(TOKEN, question.lower())))
    told = [set(re.findall(TOKEN, sentence.lower())) for sentence in pool]
    has = np.array([[word in of for word in words] for of in told], dtype=bool)
    similarity = Embedder(model).embed(pool) @ np.array(model.get_query_embedding(question))
    scores = blended(similarity.astype(float), shared_words(has))
    return pool[int(scores.argmax())]


def said(index: HierarchicalIndex, question: LabelledQuestion, five: dict[str, str]) -> dict:
    """What each way says, whether `ask` refuses, and its processor time."""
    embedder, options = Embedder(index.embed_model), within(question)
    start = time.process_time()
    answer = index.ask(question.text, **options)
    milliseconds = 1000 * (time.process_time() - start)
    told = answer
    if answer.refused:
        told = index.ask(question.text, synthesizer={"min_score": None}, **options)
    plain = re.sub(r" \[\d+\]", "", told.answer)
    order = index.as_retriever(level=0, by="context", top_k=100, token_budget=None, **options)
    ranked = [n.node_id for n in order.retrieve(question.text) if n.node_id in five]
    first, texts = next(iter(five)), list(five.values())
    by_way = (
        "" if answer.refused else plain,
        plain,
        best_sentence(question.text, texts, index.embed_model),
        cut(five[first], embedder),
        cut(five[(ranked or [first])[0]], embedder),
    )
    assert tokens(plain, embedder) <= ANSWER_TOKENS, f"{question.id}: {plain}"
    return {
        **dict(zip(WAYS, by_way, strict=True)),
        "refused": answer.refused,
        "milliseconds": milliseconds,
    }


def measured(name: str, index: HierarchicalIndex, questions: list[LabelledQuestion]) -> str:
    """A row of the table; the denominator is written if it is not known."""
    known = json.loads(DENOMINATOR.read_text()) if DENOMINATOR.exists() else {}
    five = {q.id: passages(index, q) for q in questions}
    if name not in known:
        known[name] = [q.id for q in questions if says("\n".join(five[q.id].values()), q.answers)]
        lines = [f"{json.dumps(key)}: {json.dumps(ids)}" for key, ids in known.items()]
        DENOMINATOR.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    asked = [q for q in questions if q.id in set(known[name])]
    told = [said(index, q, five[q.id]) for q in asked]
    groups, cells = [q.group for q in asked], [name, f"{len(asked)} of {len(questions)}"]
    for way in WAYS:
        held = [says(of[way], q.answers) for q, of in zip(asked, told, strict=True)]
        shares = np.array(held, dtype=float)
        low, high = interval(shares, groups)
        cells.append(f"{shares.mean():.3f} [{low:.2f}, {high:.2f}]")
    missed = [q.id for q, of in zip(asked, told, strict=True) if not says(of[WAYS[1]], q.answers)]
    print(f"{name}: not said: {' '.join(missed)}")
    words = np.mean([len(of[WAYS[1]].split()) for of in told])
    refused = np.mean([of["refused"] for of in told])
    median = np.median([of["milliseconds"] for of in told])
    return f"| {' | '.join(cells)} | {refused:.1%} | {words:.0f} | {median:.0f} |"


def main(data: Path, corpora: Path, folder: Path, names: list[str]) -> None:
    table = [f"| | questions | {' | '.join(WAYS)} | refused | words | ms |", "|---" * 10 + "|"]
    for name in names or [*SETS, *WRITTEN]:
        questions = questions_of(name, data)
        index = index_of(name, data, corpora, folder)
        index.ask("What is loaded before the first question?")
        table.append(measured(name, index, questions))
        print(table[-1], flush=True)
    print("\n" + "\n".join(table))


if __name__ == "__main__":
    if len(sys.argv) < 4 or not all(Path(path).is_dir() for path in sys.argv[1:3]):
        sys.exit("Usage: python tests/benchmarks/facts.py DATA CORPORA INDEX_FOLDER [SET ...]")
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
