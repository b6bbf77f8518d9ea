"""TREC's evaluation program gives BEIR data the figures that `evaluate` gives."""

import json
from statistics import fmean

import pytest
import pytrec_eval
from fakes import HashingEmbedding
from store.trees import documents

from hierindex.evaluate import evaluate, read_dataset
from hierindex.evaluate.runner import WAYS

N = 40  # documents of a sentence each, so that a document is a chunk


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data in BEIR's form, whose questions have none to three relevant documents."""
    folder = tmp_path_factory.mktemp("beir") / "letters"
    (folder / "qrels").mkdir(parents=True)
    sentences = [s for document in documents() for s in document.text.split("  ")][:N]
    corpus = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(sentences)]
    queries = [
        {"_id": f"q{i}", "text": f"What met {s.split()[1]}?"} for i, s in enumerate(sentences)
    ]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    scores = [(f"q{i}", f"d{(i * 7 + j) % N}", j % 2) for i in range(N) for j in range(i % 4)]
    rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in scores)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(rows))
    return folder


def test_figures_are_those_of_trec_eval(folder) -> None:
    rankings = {}

    def dense(asked, top_k, budget):
        nodes = WAYS["dense"](asked, top_k, budget)
        if budget is None:
            places = enumerate(node.ref_doc_id for node in nodes)
            rankings[asked.question.id] = {document: -float(place) for place, document in places}
        return nodes

    report = evaluate(folder, ways={"dense": dense}, embed_model=HashingEmbedding(), budgets=[50])
    ours = {row.measure: row.mean for row in report.rows if row.budget is None}
    relevant = {q.id: dict.fromkeys(q.documents, 1) for q in read_dataset(folder).questions}
    measures = {"hit@1": "success_1", "hit@5": "success_5", "MRR@10": "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(relevant, {"success.1,5", "recip_rank"})
    of_questions = theirs.evaluate(rankings).values()
    for name, measure in measures.items():
        assert ours[name] == round(fmean(each[measure] for each in of_questions), 4)
        assert 0 < ours[name] < 1
