"""Answers without a language model: how much they say of what people answered, and when none is.

Sentences: ROUGE-1 and ROUGE-2 F (stemmed) at 150 words against QMSum's answers to specific
questions, each put to its meeting (`documents ANY [meeting]`), ours beside others on the same
nodes: the first words retrieved, the best sentences by BM25 and by likeness, and those by
maximal marginal relevance that are at least 0.6 as like the question as the likest. With the
mean difference of ours and its 95% interval by bootstrap over meetings.

Whether anything answers: the area under the ROC curve of the score, questions put to their own
index against the same put to another; how many are refused at the default.

Usage: python tests/benchmarks/answers.py DATA CORPORA [INDEX_FOLDER]
(folders of the evaluation data and of its corpora; indices are built in INDEX_FOLDER, or found)
"""

import json
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from extractive import Ranked, Remembering, count_words
from llama_index.core.schema import MetadataMode, NodeWithScore
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from rouge_score.rouge_scorer import RougeScorer
from sklearn.metrics import roc_auc_score
from ways import Bm25

from hierindex import ExtractiveSynthesizer, HierarchicalIndex, SemanticHierarchy, load_embed_model
from hierindex.core.salience import select_sentences
from hierindex.embed.embedder import Embedder
from hierindex.evaluate.measures import interval
from hierindex.respond.extractive_synthesizer import MIN_SCORE
from hierindex.summarize.summary import Budget
from hierindex.text.sentences import split_sentences, telling

CORPORA = ("meetings", "tech-books", "warren-report")
N_WORDS = 150
N_HEADINGS = 200
SEARCHES: dict[str, dict] = {"dense": {}, "context": {"level": 0, "by": "context"}}
ABOUT_KENNEDY = (
    "Who shot President Kennedy?",
    "How many shots were fired at the motorcade?",
    "From which floor of the Texas School Book Depository were the shots fired?",
    "What did Marina Oswald say about the rifle?",
    "Why did Oswald go to the Soviet Union?",
    "When did Lee Harvey Oswald return to the United States?",
    "Who killed Patrolman J. D. Tippit?",
    "How did Jack Ruby get into the basement of the police station?",
    "What did the autopsy of the President show?",
    "How was the rifle ordered and paid for?",
    "What did the doctors at Parkland Hospital do for the President?",
    "Did Oswald have contacts with the Cuban embassy in Mexico City?",
    "What is said about the bullet found on the stretcher?",
    "What was in the long brown paper bag?",
    "Who is Ruth Paine and how did she know the Oswalds?",
    "What recommendations were made on the protection of the President?",
    "How was the motorcade route chosen?",
    "Where was Oswald arrested?",
    "How did Oswald do in the Marine Corps?",
    "How fast was the President's car moving when the shots were fired?",
)


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()]


def apart(difference: np.ndarray, document: np.ndarray) -> str:
    low, high = interval(difference, document)
    return f"{difference.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def extracts(question: str, nodes: list[NodeWithScore], embedder: Embedder) -> dict[str, str]:
    """An answer of 150 words by each way that is not ours."""
    texts = [node.node.get_content(MetadataMode.NONE) for node in nodes]
    pool, budget = (
        [s for text in texts for s in split_sentences(text)],
        Budget(N_WORDS, count_words),
    )
    told = telling(pool)
    likeness = embedder.embed([s.text for s in told]).astype(float)
    towards = likeness @ np.array(embedder.embed_model.get_query_embedding(question))
    lexical = Bm25([s.text for s in told]).scores(question)
    by = {"BM25": lexical, "likeness": towards}
    best = {
        way: Ranked(lambda _, __, scores=scores: np.argsort(-scores, kind="stable"))
        for way, scores in by.items()
    }
    near = np.flatnonzero(towards >= 0.6 * towards.max())
    costs = budget.costs([told[i] for i in near])
    mmr = near[
        select_sentences(likeness[near], costs, towards[near], budget=N_WORDS, redundancy=0.3)
    ]
    return {
        "lead": " ".join(" ".join(texts).split()[:N_WORDS]),
        **{
            way: " ".join(s.text for s in ranked.extract([pool], budget)[0])
            for way, ranked in best.items()
        },
        "MMR": " ".join(told[i].text for i in mmr),
    }


def sentences(data: Path, index: HierarchicalIndex) -> None:
    scorer, embedder = (
        RougeScorer(["rouge1", "rouge2"], use_stemmer=True),
        Embedder(index.embed_model),
    )
    ours = ExtractiveSynthesizer(index.embed_model, min_score=None)
    ours._budget = Budget(N_WORDS, count_words)
    asked = [q for q in read(data / "qmsum" / "questions.jsonl") if q["kind"] == "specific"]
    for search, options in SEARCHES.items():
        scores, length = defaultdict(list), defaultdict(list)
        for q in asked:
            file = MetadataFilter(
                key="documents", value=[f"{q['doc_id']}.txt"], operator=FilterOperator.ANY
            )
            within = MetadataFilters(filters=[file])
            nodes = index.as_retriever(filters=within, **options).retrieve(q["question"])
            cited = str(ours.synthesize(q["question"], nodes))
            said = {
                **extracts(q["question"], nodes, embedder),
                "ours": re.sub(r" \[\d+\]", "", cited),
            }
            for way, text in said.items():
                found = scorer.score(q["answer"], text)
                scores[way].append([found["rouge1"].fmeasure, found["rouge2"].fmeasure])
                length[way].append(len(text.split()))
        document = np.array([q["doc_id"] for q in asked])
        print(f"\n{search}: {len(asked)} questions of {len(set(document))} meetings")
        mine = np.array(scores["ours"])
        for way, values in scores.items():
            of = np.array(values)
            told = [f"{of[:, i].mean():.3f}" for i in (0, 1)]
            told += [apart((mine - of)[:, i], document) for i in (0, 1) if way != "ours"]
            print(f"  {way:<10}{np.mean(length[way]):>6.0f} words  {'  '.join(told)}")


def refusals(data: Path, index: dict[str, HierarchicalIndex]) -> None:
    headings = read(data / "tech_books" / "questions.jsonl")
    drawn = np.sort(np.random.default_rng(0).permutation(len(headings))[:N_HEADINGS])
    asked = {
        "meetings": [q["question"] for q in read(data / "qmsum" / "questions.jsonl")],
        "tech-books": [headings[i]["question"] for i in drawn],
        "warren-report": list(ABOUT_KENNEDY),
    }
    print(f"\nrefused at {MIN_SCORE}, and the area under the ROC curve")
    for own, questions in asked.items():
        answered = {}
        for name in sorted(CORPORA, key=lambda name: name != own):
            engine = index[name].as_query_engine()
            told = [engine.query(question).metadata for question in questions]
            answered[name] = np.array([t["score"] for t in told])
            refused = np.mean([t["refused"] for t in told])
            truth = np.repeat([1, 0], len(questions))
            area = roc_auc_score(truth, np.concatenate([answered[own], answered[name]]))
            to = "" if name == own else f"   area {area:.3f}"
            print(f"  {len(questions)} of {own} put to {name}: {refused:.1%}{to}", flush=True)


def main(data: Path, corpora: Path, folder: Path) -> None:
    inner = load_embed_model()
    for name in CORPORA:
        if not (folder / name).exists():
            hierarchy = SemanticHierarchy(inner)
            HierarchicalIndex.build(str(corpora / name), folder / name, hierarchy=hierarchy)
    model = Remembering(inner=inner, model_name=inner.model_name, embed_batch_size=2048)
    index = {name: HierarchicalIndex.open(folder / name, model) for name in CORPORA}
    sentences(data, index["meetings"])
    refusals(data, index)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or not all(Path(path).is_dir() for path in sys.argv[1:3]):
        sys.exit("Usage: python tests/benchmarks/answers.py DATA CORPORA [INDEX_FOLDER]")
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1]), Path(sys.argv[2]), Path((*sys.argv, temporary)[3]))
