"""TREC's evaluation program gives gold documents the figures that `evaluate` gives."""

from statistics import fmean

import pytrec_eval
from fakes import HashingEmbedding
from llama_index.core.schema import Document
from store.trees import documents

from hierindex.evaluate import Dataset, Question, evaluate
from hierindex.evaluate.runner import WAYS

N = 40  # documents of a sentence each, so that a document is a chunk


def test_figures_are_those_of_trec_eval() -> None:
    sentences = [s for document in documents() for s in document.text.split("  ")][:N]
    relevant = {f"q{i}": [f"d{(i * 7 + j) % N}" for j in range(1 + i % 3)] for i in range(N)}
    questions = [
        Question(name, f"What met {text.split()[1]}?", name, documents=tuple(relevant[name]))
        for name, text in zip(relevant, sentences, strict=True)
    ]
    texts = [Document(text=text, id_=f"d{i}") for i, text in enumerate(sentences)]
    rankings = {}

    def dense(asked, top_k, budget):
        everything = asked.index.as_retriever(level=0, by="dense", top_k=10, token_budget=10**6)
        found = [each.node.ref_doc_id for each in everything.retrieve(asked.bundle)]
        rankings[asked.question.id] = {name: -float(i) for i, name in enumerate(found)}
        return WAYS["dense"](asked, top_k, budget)

    data = Dataset("letters", texts, questions)
    report = evaluate(data, ways={"dense": dense}, embed_model=HashingEmbedding(), budgets=[50])
    ours = {row.measure: row.mean for row in report.rows if row.budget is None}
    measures = {"hit@1": "success_1", "hit@5": "success_5", "MRR@10": "recip_rank"}
    judged = {name: dict.fromkeys(gold, 1) for name, gold in relevant.items()}
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"success.1,5", "recip_rank"})
    of_questions = theirs.evaluate(rankings).values()
    for name, measure in measures.items():
        assert ours[name] == round(fmean(each[measure] for each in of_questions), 4)
        assert 0 < ours[name] < 1
