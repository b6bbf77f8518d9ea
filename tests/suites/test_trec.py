"""TREC's evaluation program gives the figures that `evaluate` gives."""

from statistics import fmean

import pytrec_eval
from fakes import HashingEmbedding
from llama_index.core.schema import Document
from store.trees import documents

from hierindex.evaluate import Dataset, Question, evaluate
from hierindex.evaluate.runner import WAYS

N = 40  # documents of a sentence each, so that a document is a chunk


SENTENCES = [s for document in documents() for s in document.text.split("  ")][:N]
RELEVANT = {
    f"q{i}": {f"d{(i * 7 + j) % N}": 1 for j in range(i % 4) if j % 2}
    for i in range(N)
    if i % 4 > 1
}


def test_figures_are_those_of_trec_eval() -> None:
    rankings = {}
    questions = [
        Question(name, f"What met {SENTENCES[int(name[1:])].split()[1]}?", name, documents=(*gold,))
        for name, gold in RELEVANT.items()
    ]
    texts = [Document(text=text, id_=f"d{i}") for i, text in enumerate(SENTENCES)]
    data = Dataset("letters", texts, questions)

    def dense(asked, top_k, budget):
        everything = asked.index.as_retriever(level=0, by="dense", top_k=N, token_budget=10**6)
        found = [each.node.ref_doc_id for each in everything.retrieve(asked.bundle)]
        rankings[asked.question.id] = {name: -float(i) for i, name in enumerate(found[:10])}
        return WAYS["dense"](asked, top_k, budget)

    report = evaluate(data, ways={"dense": dense}, embed_model=HashingEmbedding(), budgets=[50])
    ours = {row.measure: row.mean for row in report.rows if row.budget is None}
    assert rankings.keys() == RELEVANT.keys()
    measures = {"hit@1": "success_1", "hit@5": "success_5", "MRR@10": "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(RELEVANT, {"success.1,5", "recip_rank"})
    of_questions = theirs.evaluate(rankings).values()
    for name, measure in measures.items():
        assert ours[name] == round(fmean(each[measure] for each in of_questions), 4)
        assert 0 < ours[name] < 1
